//! The business profile and its picture.

use nuncio_channel::{Picture, ProfileError};
use nuncio_channel_meta::scripted::{Api, Reply, refusal};
use nuncio_domain::profile::{BusinessAccount, MethodStatus, ProfileChange, SetupStatus, Vertical};
use serde_json::{Value, json};

use crate::support::{CLOUD, NUMBER, TOKEN, start};

fn profile() -> Value {
    json!({"data": [{
        "about": "Bikes", "address": "Plaza 1", "description": "We mend bikes", "email": "hi@example.com",
        "profile_picture_url": "https://pps.whatsapp.net/x.jpg", "websites": ["https://example.com/"], "vertical": "RETAIL",
        "messaging_product": "whatsapp"
    }]})
}

fn number(errors: Value) -> Value {
    json!({
        "display_phone_number": "+34 600 111 222", "id": NUMBER,
        "health_status": {"can_send_message": "AVAILABLE", "entities": [
            {"entity_type": "PHONE_NUMBER", "id": NUMBER, "can_send_message": "AVAILABLE"},
            {"entity_type": "WABA", "id": "1", "can_send_message": "BLOCKED", "errors": errors}
        ]}
    })
}

async fn meta(errors: Value) -> Api {
    start(move |seen| match (seen.method.as_str(), seen.path.split('?').next().unwrap()) {
        ("GET", path) if path.ends_with("/whatsapp_business_profile") => Reply::json(200, &profile()),
        ("GET", _) => Reply::json(200, &number(errors.clone())),
        (_, path) if path.ends_with("/uploads") => Reply::json(200, &json!({"id": "upload:MTphdHRhY2htZW50?sig=ARZqkGCA_uQMxC8nHKI"})),
        (_, path) if path.contains("/upload:") => Reply::json(200, &json!({"h": "4:VGVzdC5wbmc=:e"})),
        _ => Reply::json(200, &json!({"success": true})),
    })
    .await
}

#[tokio::test]
async fn the_account_as_meta_tells_it() {
    let api = meta(json!([])).await;
    let adapter = CLOUD.open(&api, json!({}));
    let account = adapter.profile().unwrap().get(&BusinessAccount::default()).await.unwrap();
    assert_eq!((account.phone_number_id.as_str(), account.display_phone_number.as_str()), (NUMBER, "+34 600 111 222"));
    assert!(account.can_send_templates());
    assert_eq!((account.profile.vertical, account.profile.websites.len()), (Vertical::Retail, 1));
    assert_eq!((account.profile.about.as_str(), account.profile.profile_picture_url.as_str()), ("Bikes", "https://pps.whatsapp.net/x.jpg"));
}

#[tokio::test]
async fn a_faulty_means_of_payment_stops_templates() {
    let api = meta(json!([{"error_code": 141_006, "error_description": "There is an error with the payment method."}])).await;
    let account = CLOUD.open(&api, json!({})).profile().unwrap().get(&BusinessAccount::default()).await.unwrap();
    assert_eq!((account.setup_status, account.method_status), (SetupStatus::NotStarted, MethodStatus::None));
    let api = meta(json!([{"error_code": 141_010, "error_description": "Something else."}])).await;
    assert!(CLOUD.open(&api, json!({})).profile().unwrap().get(&BusinessAccount::default()).await.unwrap().can_send_templates());
}

#[tokio::test]
async fn only_what_changes_is_told() {
    let api = meta(json!([])).await;
    let change =
        ProfileChange { about: Some("New".into()), email: Some(String::new()), vertical: Some(Vertical::Auto), ..ProfileChange::default() };
    let account = CLOUD.open(&api, json!({})).profile().unwrap().update(&BusinessAccount::default(), &change).await.unwrap();
    assert_eq!(account.profile.about, "Bikes", "the answer is what Meta says afterwards");
    assert_eq!(api.seen()[0].json(), json!({"messaging_product": "whatsapp", "about": "New", "email": "", "vertical": "AUTO"}));
}

#[tokio::test]
async fn a_picture_is_uploaded_in_two_steps_and_then_shown() {
    let api = meta(json!([])).await;
    let picture = Picture { url: "https://x.example/logo.png".into(), mime_type: "image/png", bytes: vec![0x89, b'P', b'N', b'G'] };
    let adapter = CLOUD.open(&api, json!({}));
    adapter.profile().unwrap().set_picture(&BusinessAccount::default(), &picture).await.unwrap();
    let seen = api.seen();
    assert_eq!(seen[0].path, "/v23.0/670843887433847/uploads?file_name=picture.png&file_length=4&file_type=image%2Fpng");
    assert_eq!(seen[1].path, "/v23.0/upload:MTphdHRhY2htZW50?sig=ARZqkGCA_uQMxC8nHKI");
    assert_eq!((seen[1].header("file_offset"), &seen[1].body), (Some("0"), &picture.bytes));
    assert_eq!(seen[2].json(), json!({"messaging_product": "whatsapp", "profile_picture_handle": "4:VGVzdC5wbmc=:e"}));
    let mut account = CLOUD.account(&api.base(), json!({}));
    account.settings.remove("app_id");
    let adapter = CLOUD.try_open(&account).unwrap();
    let error = adapter.profile().unwrap().set_picture(&BusinessAccount::default(), &picture).await.unwrap_err();
    assert!(matches!(&error, ProfileError::Refused(why) if why.contains("app_id")), "{error}");
}

#[tokio::test]
async fn refusals_and_troubles_are_told_apart() {
    for (reply, refused) in [
        (refusal(400, 100, &format!("(#100) Param about must be at most 139 characters {TOKEN}")), true),
        (refusal(500, 2, "Service temporarily unavailable"), false),
        (refusal(401, 190, "Expired"), false),
        (Reply::HangUp, false),
    ] {
        let api = start(move |_| reply.clone()).await;
        let adapter = CLOUD.open(&api, json!({}));
        let error = adapter.profile().unwrap().update(&BusinessAccount::default(), &ProfileChange::default()).await.unwrap_err();
        assert_eq!(matches!(error, ProfileError::Refused(_)), refused, "{error}");
        assert!(!error.to_string().contains(TOKEN), "{error}");
    }
}
