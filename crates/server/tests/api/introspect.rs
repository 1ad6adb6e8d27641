//! Looking up recipients without sending.

use nuncio_domain::Channel;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::contacts::write;

// holds: introspect.phone
#[tokio::test]
async fn a_phone_number_is_looked_up_in_the_numbering_plans() {
    let app = TestApp::start().await;
    let look = async |number: &str| app.post("/v1/introspect/phone", json!({"phoneNumber": number})).await;
    let spanish = look("+34600111222").await.expect(200).json();
    let expected = json!({
        "phoneNumber": "+34600111222", "countryCode": "ES", "validNumber": true, "nationalFormat": "600 11 12 22",
        "lineType": "mobile", "availableChannels": ["sms", "voice"],
    });
    assert_eq!(spanish, expected);
    let fixed = look("+34911234567").await.expect(200).json();
    assert_eq!((&fixed["lineType"], &fixed["availableChannels"]), (&json!("landline"), &json!(["voice"])));
    let american = look(" 14155552671").await.expect(200).json();
    assert_eq!((&american["lineType"], &american["countryCode"]), (&json!("mobile"), &json!("US")), "may be either");
    assert_eq!(american["availableChannels"], json!(["sms", "voice"]));
    for (number, line, channels) in [
        ("+18005550199", "toll_free", json!(["voice"])),
        ("+445601234567", "voip", json!(["sms", "voice"])),
        ("+34803123456", "unknown", json!(["voice"])),
    ] {
        let seen = look(number).await.expect(200).json();
        assert_eq!((&seen["lineType"], &seen["availableChannels"]), (&json!(line), &channels), "{number}");
    }
    let document = app.get("/openapi.json").await.expect(200).json();
    let types = &document["components"]["schemas"]["LineType"]["enum"];
    assert_eq!(types, &json!(["mobile", "landline", "voip", "toll_free", "unknown"]));
    let nowhere = look("+34100000000").await.expect(200).json();
    assert_eq!(
        (&nowhere["validNumber"], &nowhere["lineType"], &nowhere["availableChannels"]),
        (&json!(false), &json!("unknown"), &json!([]))
    );
    write(&app, Channel::Whatsapp, "+34911234567", "hi", None).await;
    assert_eq!(look("+34911234567").await.expect(200).json()["availableChannels"], json!(["whatsapp", "voice"]));
    for bad in ["nonsense", "+1", "a@example.org", ""] {
        let answer = look(bad).await.expect(400).json();
        assert_eq!(answer["details"]["errors"][0]["path"], "phoneNumber");
    }
    app.post("/v1/introspect/phone", json!({})).await.expect(400);
}

// holds: introspect.email
#[tokio::test]
async fn an_email_address_is_judged_by_itself_and_by_the_suppressions() {
    let app = TestApp::start().await;
    let suppress = async |body: Value| app.post("/v1/suppressions", body).await;
    suppress(json!({"identifier": "bounced@example.org", "reason": "bounce"})).await.expect(201);
    suppress(json!({"identifier": "angry@example.org", "reason": "complaint"})).await.expect(201);
    suppress(json!({"identifier": "gone@example.org", "reason": "opt_out"})).await.expect(201);
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the world");
    let sender = world.default_sender().expect("a sender").id;
    suppress(json!({"identifier": "half@example.org", "senderId": sender})).await.expect(201);
    for (email, verdict, reasons) in [
        ("Ada@Example.ORG", "deliverable", json!(["mx_not_checked"])),
        ("bounced@example.org", "undeliverable", json!(["bounced", "mx_not_checked"])),
        ("angry@example.org", "undeliverable", json!(["complained", "mx_not_checked"])),
        ("gone@example.org", "undeliverable", json!(["opted_out", "mx_not_checked"])),
        ("half@example.org", "risky", json!(["opted_out_from_some", "mx_not_checked"])),
        ("x@eu.mailinator.com", "risky", json!(["disposable_domain", "mx_not_checked"])),
        ("Sales+spring@example.org", "risky", json!(["role_account", "mx_not_checked"])),
        ("a@b", "undeliverable", json!(["invalid_syntax"])),
        ("a b@example.org", "undeliverable", json!(["invalid_syntax"])),
    ] {
        let answer = app.post("/v1/introspect/email", json!({"email": email})).await.expect(200).json();
        assert_eq!((&answer["verdict"], &answer["reasons"]), (&json!(verdict), &reasons), "{email}");
    }
    let body = Some(json!({"email": "ada@shop.test"}));
    let answer = app.with_key(&app.live_key, "POST", "/v1/introspect/email", body).await.expect(200).json();
    assert_eq!(answer, json!({"email": "ada@shop.test", "verdict": "undeliverable", "reasons": ["reserved_domain", "mx_not_checked"]}));
    app.post("/v1/introspect/email", json!({"email": 5})).await.expect(400);
}
