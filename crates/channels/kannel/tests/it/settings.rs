//! Settings: every fault at once, no secret in any text.

use nuncio_channel::{Receipts, Sessions};
use serde_json::json;

use crate::support::{GATEWAY, PASSWORD, SECRET};

#[test]
fn the_least_that_works() {
    let adapter = GATEWAY.offline(json!({}));
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (20, Receipts::ByAttempt));
    assert_eq!(adapter.sessions(), Sessions::None);
    let adapter = GATEWAY.offline(json!({"url": "http://gateway.example", "receipts": "none", "window": "7"}));
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (7, Receipts::Never));
    let text = format!("{adapter:?}");
    assert!(text.contains("gateway.example") && !text.contains(PASSWORD) && !text.contains(SECRET), "{text}");
}

#[test]
fn all_faults_at_once() {
    assert_eq!(GATEWAY.faults(json!({}), json!({})), ["secrets.callback_secret", "secrets.password", "settings.url", "settings.username"]);
    let settings = json!({
        "url": "gateway.example/sendsms", "username": "a\nb", "method": "put", "from": "a\r\nb", "numbers": "e164", "receipts": "some",
        "window": 0, "timeout_seconds": 301, "port": 1
    });
    let found = GATEWAY.faults(settings, json!({"password": "hunter2\n", "callback_secret": "hunter2"}));
    let wanted = [
        "secrets.callback_secret",
        "secrets.password",
        "settings.from",
        "settings.method",
        "settings.numbers",
        "settings.port",
        "settings.receipts",
        "settings.timeout_seconds",
        "settings.url",
        "settings.username",
        "settings.window",
    ];
    assert_eq!(found, wanted);
    let with_query = json!({"url": "http://gateway.example/sendsms?x=1", "username": "a"});
    assert_eq!(GATEWAY.faults(with_query, json!({"password": "p", "callback_secret": SECRET})), ["settings.url"]);
}
