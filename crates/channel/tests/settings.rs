//! Settings are checked against their description: every fault at once, by name, without showing a secret.

use nuncio_channel::{Account, Field, FieldKind, Settings};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::{Channel, ConnectionId, FieldError, Redacted, TenantId, Timestamp};
use serde_json::{Value, json};

const fn field(name: &'static str, kind: FieldKind, secret: bool, required: bool) -> Field {
    Field { name, kind, secret, required, help: "what it is for" }
}

const FIELDS: &[Field] = &[
    field("host", FieldKind::Text, false, true),
    field("port", FieldKind::Integer(1, 65_535), false, false),
    field("pipelining", FieldKind::Flag, false, false),
    field("tls", FieldKind::OneOf(&["required", "wrapped"]), false, false),
    field("password", FieldKind::Text, true, true),
    field("pin", FieldKind::Integer(0, 9_999), true, false),
];

fn account(settings: Value, secrets: Value) -> Account {
    let (Value::Object(settings), Value::Object(secrets)) = (settings, secrets) else { panic!("objects are needed") };
    let id = ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(0), [0; 10]));
    Account { id, tenant: TenantId(1), channel: Channel::Email, settings, secrets: Redacted::new(secrets), trusted: false }
}

fn faults(settings: Value, secrets: Value) -> Vec<FieldError> {
    Settings::new(FIELDS, &account(settings, secrets)).finish().err().unwrap_or_default()
}

/// The faults of one setting beside otherwise right ones.
fn fault_of(name: &str, value: Value) -> Option<String> {
    let mut settings = json!({"host": "mail.example.org"});
    settings[name] = value;
    let faults = faults(settings, json!({"password": "correct-horse"}));
    assert!(faults.len() <= 1 && faults.iter().all(|f| f.path == format!("settings.{name}")), "{faults:?}");
    faults.into_iter().next().map(|f| f.message)
}

#[test]
fn right_settings_are_read() {
    let account = account(
        json!({"host": "mail.example.org", "port": 25, "pipelining": true, "tls": "wrapped"}),
        json!({"password": "correct-horse", "pin": 0}),
    );
    let settings = Settings::new(FIELDS, &account);
    assert_eq!(settings.text("host"), Some("mail.example.org"));
    assert_eq!(settings.integer("port"), Some(25));
    assert_eq!(settings.flag("pipelining"), Some(true));
    assert_eq!(settings.text("tls"), Some("wrapped"));
    assert_eq!(settings.text("password"), Some("correct-horse"));
    assert_eq!(settings.integer("pin"), Some(0));
    assert_eq!(settings.finish(), Ok(()));
}

#[test]
fn numbers_and_flags_may_be_written_as_text() {
    let account = account(json!({"host": "h", "port": "587", "pipelining": "false"}), json!({"password": "p", "pin": "9999"}));
    let settings = Settings::new(FIELDS, &account);
    assert_eq!((settings.integer("port"), settings.flag("pipelining"), settings.integer("pin")), (Some(587), Some(false), Some(9_999)));
    assert_eq!(settings.finish(), Ok(()));
    assert_eq!((fault_of("port", json!(587.0)), fault_of("port", json!(587.5)).is_some()), (None, true), "587.0 is whole");
}

#[test]
fn what_is_absent_or_null_is_not_there() {
    let account = account(json!({"host": "h", "port": null}), json!({"password": "p"}));
    let settings = Settings::new(FIELDS, &account);
    assert_eq!((settings.integer("port"), settings.flag("pipelining"), settings.text("tls")), (None, None, None));
    assert_eq!(settings.text("never_described"), None);
    assert_eq!(settings.finish(), Ok(()));
}

#[test]
fn what_is_required_must_be_there() {
    for (settings, secrets) in [(json!({}), json!({})), (json!({"host": null}), json!({"password": null}))] {
        let faults = faults(settings, secrets);
        let told: Vec<_> = faults.iter().map(|f| (f.path.as_str(), f.message.as_str())).collect();
        let message = "is required: what it is for";
        assert_eq!(told, [("settings.host", message), ("secrets.password", message)]);
    }
}

#[test]
fn every_fault_is_told_at_once() {
    let faults = faults(
        json!({"host": "", "port": 0, "pipelining": "yes", "tls": "none", "colour": "red"}),
        json!({"password": 5, "pin": 10_000, "token": "t"}),
    );
    let mut paths: Vec<_> = faults.iter().map(|f| f.path.as_str()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "secrets.password", "secrets.pin", "secrets.token", "settings.colour", "settings.host", "settings.pipelining", "settings.port",
            "settings.tls",
        ]
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_known_ones() {
    let faults = faults(json!({"host": "h", "hots": "h"}), json!({"password": "p", "host": "h"}));
    let told: Vec<_> = faults.iter().map(|f| (f.path.as_str(), f.message.as_str())).collect();
    assert_eq!(
        told,
        [
            ("settings.hots", "is not a known name; known names are host, port, pipelining, tls"),
            ("secrets.host", "is not a known name; known names are password, pin"),
        ]
    );
}

#[test]
fn a_secret_among_the_settings_is_refused_without_showing_it() {
    let faults = faults(json!({"host": "h", "password": "correct-horse"}), json!({"password": "correct-horse"}));
    assert_eq!(faults.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["settings.password"]);
    assert!(!format!("{faults:?}").contains("correct-horse"));
}

#[test]
fn a_wrong_value_is_shown_with_what_would_be_right() {
    assert_eq!(fault_of("port", json!(70_000)).as_deref(), Some("70000 is wrong; must be a whole number from 1 to 65535"));
    assert_eq!(fault_of("pipelining", json!("maybe")).as_deref(), Some("\"maybe\" is wrong; must be true or false"));
    assert_eq!(fault_of("tls", json!("none")).as_deref(), Some("\"none\" is wrong; must be one of required, wrapped"));
    assert_eq!(fault_of("host", json!([1])).as_deref(), Some("[1] is wrong; must be a text"));
}

#[test]
fn a_wrong_secret_is_not_shown() {
    let faults = faults(json!({"host": "h"}), json!({"password": ["correct-horse"], "pin": "correct-horse"}));
    assert_eq!(faults.len(), 2, "{faults:?}");
    assert!(!format!("{faults:?}").contains("correct-horse"), "{faults:?}");
}

#[test]
fn the_ends_of_a_range_belong_to_it() {
    for (value, right) in [(json!(1), true), (json!(65_535), true), (json!("1"), true), (json!(0), false), (json!(65_536), false)] {
        assert_eq!(fault_of("port", value.clone()).is_none(), right, "{value}");
    }
    for wrong in [json!(25.5), json!(true), json!("25 "), json!("")] {
        assert!(fault_of("port", wrong.clone()).is_some(), "{wrong}");
    }
}

#[test]
fn an_adapters_own_fault_joins_the_others() {
    let account = account(json!({"host": "h", "port": 0}), json!({"password": "p"}));
    let mut settings = Settings::new(FIELDS, &account);
    settings.error("host", "is no name of a host");
    let faults = settings.finish().expect_err("two faults");
    assert_eq!(faults.iter().map(|f| f.path.as_str()).collect::<Vec<_>>(), ["settings.port", "settings.host"]);
}

#[test]
fn a_text_of_the_wrong_shape_is_shown_unless_it_is_secret() {
    let account = account(json!({"host": "a b"}), json!({"password": "hunter 2"}));
    let mut settings = Settings::new(FIELDS, &account);
    for name in ["host", "password", "tls"] {
        settings.check_text(name, |text| !text.contains(' '), "a single word");
    }
    let faults = settings.finish().expect_err("two faults");
    let faults: Vec<_> = faults.iter().map(|f| (f.path.as_str(), f.message.as_str())).collect();
    let wanted = [
        ("settings.host", "\"a b\" is wrong; must be a single word"),
        ("secrets.password", "the value given is wrong; must be a single word"),
    ];
    assert_eq!(faults, wanted);
}
