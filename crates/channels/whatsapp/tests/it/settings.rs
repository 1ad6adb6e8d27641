//! Settings: every fault at once, no secret in any text.

use nuncio_channel::testing::object;
use nuncio_channel::{Receipts, Sessions};
use serde_json::json;

use crate::support::{CLOUD, SECRET, TOKEN, WORD};

#[test]
fn the_least_that_works() {
    let mut least = CLOUD.account("x", json!({}));
    least.settings = object(json!({"phone_number_id": "1065"}));
    let adapter = CLOUD.try_open(&least).unwrap();
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (40, Receipts::ByAttempt));
    assert_eq!(adapter.sessions(), Sessions::None);
    assert_eq!(CLOUD.offline(json!({"mark_read": "true", "window": "7"})).sessions(), Sessions::EveryNode, "flags may come as text");
}

#[test]
fn all_faults_at_once() {
    assert_eq!(
        CLOUD.faults(json!({}), json!({})),
        ["secrets.access_token", "secrets.app_secret", "secrets.verify_token", "settings.phone_number_id"]
    );
    let settings = json!({
        "phone_number_id": "../me", "waba_id": "x", "app_id": "1/2", "mark_read": 7, "window": 0, "timeout_seconds": 301,
        "base_url": "graph.facebook.com", "api_version": "23", "token": "x"
    });
    let found = CLOUD.faults(settings, json!({"access_token": "hunter2 \n", "app_secret": "hunter2", "verify_token": "hunter2"}));
    assert_eq!(
        found,
        [
            "secrets.access_token",
            "settings.api_version",
            "settings.app_id",
            "settings.base_url",
            "settings.mark_read",
            "settings.phone_number_id",
            "settings.timeout_seconds",
            "settings.token",
            "settings.waba_id",
            "settings.window"
        ]
    );
}

#[test]
fn no_secret_is_printed() {
    let text = format!("{:?}", CLOUD.offline(json!({})));
    assert!(text.contains("106540352242922") && ![TOKEN, SECRET, WORD].iter().any(|secret| text.contains(secret)), "{text}");
}
