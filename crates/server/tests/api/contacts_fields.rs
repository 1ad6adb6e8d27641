//! Fields of a contact.

use nuncio_domain::Channel;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::contacts::{create, get, list, text, write};

/// Returns the names of the fields, in order.
fn fields(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

// holds: contacts.fields, contacts.required, contacts.channel.fields, contacts.deprecated
#[tokio::test]
async fn a_contact_has_all_its_fields() {
    for app in TestApp::on_each().await {
        write(&app, Channel::Telegram, "77", "hi", None).await;
        let bare = list(&app).await[0].clone();
        let always =
            ["availableChannels", "channels", "createdAt", "defaultChannel", "id", "metadata", "profileName", "updatedAt", "verified"];
        assert_eq!(fields(&bare), always);
        assert_eq!((&bare["metadata"], &bare["profileName"], &bare["verified"]), (&json!({}), &Value::Null, &json!(true)));

        // Two probable duplicates, one of them with all fields.
        create(&app, json!({"displayName": "Ada", "channels": [{"channel": "instagram", "identifier": "78"}]})).await;
        let channels = json!([{"channel": "email", "identifier": "a@example.org"}, {"channel": "whatsapp", "identifier": "+34600111222", "label": "own"}]);
        let id = create(&app, json!({"displayName": "Ada", "metadata": {"k": [1]}, "channels": channels})).await["id"].clone();
        write(&app, Channel::Whatsapp, "+34600111222", "hi", Some("Ada W.")).await;
        app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
        app.drain().await;
        let whole = get(&app, &id).await;
        let mut all =
            [&always[..], &["countryCode", "displayName", "phoneNumber", "primaryEmail", "primaryPhone", "suggestedMergeWith"]].concat();
        all.sort_unstable();
        assert_eq!(fields(&whole), all);
        assert_eq!((&whole["phoneNumber"], text(&whole["primaryPhone"])), (&whole["primaryPhone"], "+34600111222"));
        assert_eq!((text(&whole["profileName"]), text(&whole["displayName"]), &whole["metadata"]), ("Ada W.", "Ada", &json!({"k": [1]})));
        assert_eq!((&whole["availableChannels"], text(&whole["countryCode"])), (&json!(["whatsapp", "email"]), "ES"));

        let path = format!("/v1/contacts/{}/channels/{}", text(&id), text(&whole["channels"][1]["id"]));
        let channel = app.request("PATCH", &path, Some(json!({"metadata": {"k": 1}}))).await.expect(200).json()["channel"].clone();
        assert_eq!(
            fields(&channel),
            [
                "channel", "countryCode", "createdAt", "id", "identifier", "isPrimary", "label", "lastInboundAt", "metadata", "metrics",
                "updatedAt", "verified", "windowExpiresAt"
            ]
        );
        assert_eq!(fields(&channel["metrics"]), ["avgDeliveryTimeMs", "failureCount", "lastSuccessAt", "successCount", "totalAttempts"]);
        assert_eq!((&channel["metrics"]["successCount"], &channel["metadata"]), (&json!(1), &json!({"k": 1})));
    }
}
