//! Settings: every fault at once, no secret in any text.

use serde_json::{Value, json};

use crate::support::{key_text, try_open};

fn faults(settings: Value, secrets: Value) -> Vec<String> {
    let errors = try_open(settings, secrets).unwrap_err();
    let text = format!("{errors:?}");
    assert!(!text.contains("hunter2"), "{text}");
    errors.into_iter().map(|e| e.path).collect()
}

#[test]
fn the_least_that_works() {
    let adapter = try_open(json!({"host": "smtp.example.org", "from": "hello@example.org"}), json!({})).unwrap();
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (20, nuncio_channel::Receipts::Never));
    let adapter =
        try_open(json!({"host": "10.0.0.1", "from": "Ñ <hello@example.org>", "connections": "3", "port": "2525"}), json!({})).unwrap();
    assert_eq!(adapter.capabilities().window, 3, "numbers may come as text, from the command line");
}

#[test]
fn all_faults_at_once() {
    assert_eq!(faults(json!({}), json!({})), ["settings.host", "settings.from"]);
    let wrong = json!({
        "host": "not a host", "port": 0, "tls": "maybe", "from": "nobody", "connections": 101, "timeout_seconds": 0, "helo_name": "x\r\nMAIL",
        "username": "me", "dkim_domain": "example.org", "tls_ca": "none", "speed": 1
    });
    let mut found = faults(wrong, json!({"dkim_key": "hunter2"}));
    found.sort();
    assert_eq!(
        found,
        [
            "secrets.password",
            "settings.connections",
            "settings.dkim_domain",
            "settings.from",
            "settings.helo_name",
            "settings.host",
            "settings.port",
            "settings.speed",
            "settings.timeout_seconds",
            "settings.tls",
            "settings.tls_ca"
        ]
    );
}

#[test]
fn settings_that_contradict_each_other() {
    let base = |more: Value| {
        let mut all = json!({"host": "smtp.example.org", "from": "hello@example.org"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    assert_eq!(faults(base(json!({})), json!({"password": "hunter2"})), ["settings.username"]);
    assert_eq!(faults(base(json!({"tls": "opportunistic", "username": "me"})), json!({"password": "hunter2"})), ["settings.tls"]);
    assert_eq!(
        faults(base(json!({"dkim_domain": "a b", "dkim_selector": "s;1"})), json!({"dkim_key": "hunter2"})),
        ["settings.dkim_domain", "settings.dkim_selector", "secrets.dkim_key"]
    );
    assert_eq!(faults(base(json!({"from": "a@example.org\r\nBcc: b@example.org"})), json!({})), ["settings.from"]);
    assert_eq!(
        faults(base(json!({"tls_ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"})), json!({})),
        ["settings.tls_ca"]
    );
}

#[test]
fn no_secret_is_printed() {
    let key = key_text("dkim-rsa-pkcs8.pem");
    let settings = json!({"host": "smtp.example.org", "from": "hello@example.org", "username": "me", "dkim_domain": "example.org", "dkim_selector": "s1"});
    let adapter = try_open(settings, json!({"password": "hunter2", "dkim_key": key})).unwrap();
    let text = format!("{adapter:?}");
    assert!(text.contains("smtp.example.org") && !text.contains("hunter2") && !text.contains("BEGIN"), "{text}");
}
