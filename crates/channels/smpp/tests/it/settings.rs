//! Settings: every fault at once, no secret in any text.

use nuncio_channel::Receipts;
use serde_json::{Value, json};

use crate::support::{PASSWORD, account, try_open};

fn faults(more: Value) -> Vec<String> {
    let errors = try_open(&account(2775, more)).unwrap_err();
    let text = format!("{errors:?}");
    assert!(!text.contains(PASSWORD), "{text}");
    let mut paths: Vec<_> = errors.into_iter().map(|e| e.path).collect();
    paths.sort();
    paths
}

#[test]
fn what_follows_from_settings() {
    let open = |more| try_open(&account(2775, more)).unwrap();
    let adapter = open(json!({}));
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (10, Receipts::ByReference));
    let adapter = open(json!({"binds": "3", "window": 50, "registered_delivery": "none"}));
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (150, Receipts::Never));
    let text = format!("{adapter:?}");
    assert!(text.contains("acme") && !text.contains(PASSWORD), "{text}");
}

#[test]
fn all_faults_at_once() {
    let wrong = json!({
        "host": "not a host", "system_id": "ä", "system_type": "thirteen chars", "service_type": "sixsix", "from": "TwelveLetters",
        "binds": 0, "window": 1001, "multipart": "maybe", "tls": true, "tls_ca": "none", "address_range": "a\nb", "speed": 1
    });
    let expected =
        ["address_range", "binds", "from", "host", "multipart", "service_type", "speed", "system_id", "system_type", "tls_ca", "window"];
    assert_eq!(faults(wrong), expected.map(|name| format!("settings.{name}")));
}

#[test]
fn a_list_of_statuses_names_what_is_wrong() {
    let fault = |more| {
        let errors = try_open(&account(2775, more)).unwrap_err();
        errors.into_iter().map(|error| format!("{}: {}", error.path, error.message)).collect::<Vec<_>>().join("; ")
    };
    let wrong = fault(json!({"retry_statuses": "0x400, no credit", "pause_statuses": "0"}));
    assert_eq!(
        wrong,
        "settings.retry_statuses: \"no credit\" is not a status; must be numbers with commas between, such as 0x400, 1043; \
         settings.pause_statuses: \"0\" is not a status; must be numbers with commas between, such as 0x400, 1043"
    );
    let both = fault(json!({"retry_statuses": "0x0400,0x401", "pause_statuses": "1025"}));
    assert_eq!(both, "settings.pause_statuses: 0x401 is in retry_statuses too");
}
