//! Settings: every fault at once, no secret in any text.

use nuncio_channel::testing::account;
use nuncio_channel::{Receipts, Sessions};
use nuncio_domain::{Channel, MessageType};
use serde_json::json;

use crate::support::{SID, TOKEN, TWILIO};

#[test]
fn the_least_that_works() {
    let least = account(Channel::Sms, json!({"account_sid": SID}), json!({}), json!({"auth_token": TOKEN}));
    let adapter = TWILIO.try_open(&least).unwrap();
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (20, Receipts::ByAttempt));
    assert_eq!(adapter.sessions(), Sessions::None);
    let text = format!("{adapter:?}");
    assert!(text.contains(SID) && text.contains("https://api.twilio.com") && !text.contains(TOKEN), "{text}");
    let carried = |channel, message_type| TWILIO.on(channel).offline(json!({})).capabilities().message_types.contains(&message_type);
    assert!(carried(Channel::Sms, MessageType::Buttons) && !carried(Channel::Voice, MessageType::Buttons));
    assert!(carried(Channel::Voice, MessageType::Audio));
}

#[test]
fn all_faults_at_once() {
    assert_eq!(TWILIO.faults(json!({}), json!({})), ["secrets.auth_token", "settings.account_sid"]);
    let settings = json!({
        "account_sid": "../AC1", "messaging_service_sid": "MG 1", "base_url": "api.twilio.com", "mms": 7, "repeat": 0, "ring_seconds": 601,
        "window": 0, "timeout_seconds": 301, "api_key": "x"
    });
    let wanted = [
        "settings.account_sid",
        "settings.api_key",
        "settings.base_url",
        "settings.messaging_service_sid",
        "settings.mms",
        "settings.repeat",
        "settings.ring_seconds",
        "settings.timeout_seconds",
        "settings.window",
    ];
    assert_eq!(TWILIO.faults(settings, json!({"auth_token": "hunter2"})), wanted);
}
