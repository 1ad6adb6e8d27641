//! Faults of the settings.

use serde_json::{Value, json};

use crate::support::{account, factory, services};

fn faults(more: Value, trusted: bool) -> Vec<String> {
    let mut account = account(5060, more);
    account.trusted = trusted;
    let opened = factory().open(&account, &services().0);
    opened.err().unwrap_or_default().into_iter().map(|fault| format!("{}: {}", fault.path, fault.message)).collect()
}

#[test]
fn faults_are_told() {
    for (more, wanted) in [
        (json!({ "host": "sip.example.org/x" }), "settings.host: \"sip.example.org/x\" is not a host name or an IP address"),
        (json!({ "domain": "a b" }), "settings.domain: \"a b\" is not a host name or an IP address"),
        (json!({ "from": "+34 600" }), "settings.from: is wrong"),
        (json!({ "username": "a@b" }), "settings.username: is wrong"),
        (json!({ "rtp_port_low": 20_000 }), "settings.rtp_port_low: is not a known name"),
        (json!({ "public_address": "sip.example.org" }), "settings.public_address: \"sip.example.org\" is not"),
        (json!({ "tts_command": " " }), "settings.tts_command: names no program"),
        (json!({ "transport": "tls", "tls_ca": "x" }), "settings.tls_ca: holds no certificate"),
    ] {
        let told = faults(more, true);
        assert!(told.len() == 1 && told[0].starts_with(wanted), "{told:?}");
    }
    for good in [json!({ "host": "2001:db8::1" }), json!({ "transport": "tcp" }), json!({ "public_address": "192.0.2.1" })] {
        assert_eq!(faults(good, true), Vec::<String>::new());
    }
}

#[test]
fn a_login_is_whole_or_absent() {
    let mut half = account(5060, json!({}));
    half.secrets = nuncio_domain::Redacted::default();
    assert_eq!(factory().open(&half, &services().0).unwrap_err()[0].path, "secrets.password");
    let mut half = account(5060, json!({}));
    half.settings.remove("username");
    assert_eq!(factory().open(&half, &services().0).unwrap_err()[0].path, "settings.username");
}

/// The program runs as the server does.
#[test]
fn only_the_operator_chooses_the_program() {
    let told = faults(json!({}), false);
    assert_eq!(told, ["settings.tts_command: can be set by the operator only, with `nuncio connections set`"]);
    assert_eq!(faults(json!({ "tts_command": null }), false), Vec::<String>::new());
}
