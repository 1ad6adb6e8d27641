//! Settings: every fault at once, no secret in any text.

use nuncio_channel::testing::{object, paths};
use nuncio_channel::{Receipts, Sessions};
use nuncio_domain::Redacted;
use serde_json::{Value, json};

use crate::support::{PASSWORD, SECRET, account, offline, try_open};

fn faults(settings: Value, secrets: Value) -> Vec<String> {
    let mut account = account("http://gateway.example", json!({}));
    (account.settings, account.secrets) = (object(settings), Redacted::new(object(secrets)));
    paths(try_open(&account).unwrap_err(), "hunter2")
}

#[test]
fn the_least_that_works() {
    let adapter = offline();
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (20, Receipts::ByAttempt));
    assert_eq!(adapter.sessions(), Sessions::None);
    let adapter = try_open(&account("http://gateway.example", json!({"receipts": "none", "window": "7"}))).unwrap();
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (7, Receipts::Never));
    let text = format!("{adapter:?}");
    assert!(text.contains("gateway.example") && !text.contains(PASSWORD) && !text.contains(SECRET), "{text}");
}

#[test]
fn all_faults_at_once() {
    assert_eq!(faults(json!({}), json!({})), ["secrets.callback_secret", "secrets.password", "settings.url", "settings.username"]);
    let settings = json!({
        "url": "gateway.example/sendsms", "username": "a\nb", "method": "put", "from": "a\r\nb", "numbers": "e164", "receipts": "some",
        "window": 0, "timeout_seconds": 301, "port": 1
    });
    let found = faults(settings, json!({"password": "hunter2\n", "callback_secret": "hunter2"}));
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
    assert_eq!(faults(with_query, json!({"password": "p", "callback_secret": SECRET})), ["settings.url"]);
}
