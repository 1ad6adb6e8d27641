//! Permissions: a row for every operation of the document.

use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::Environment;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

/// An operation with a valid call. A word in braces is replaced by the fixture of that name.
pub(crate) struct Row {
    pub(crate) operation: &'static str,
    pub(crate) method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
    permission: Option<&'static str>,
}

const fn row(
    operation: &'static str,
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
    permission: Option<&'static str>,
) -> Row {
    Row { operation, method, path, body, permission }
}

/// Operations that need a second permission.
const ALSO: &[(&str, &str)] = &[
    ("test_broadcast", "broadcasts:read"),
    ("select_broadcast_contacts", "contacts:read"),
    ("rotate_sender_webhook_secret", "senders:write"),
];

pub(crate) const ROWS: &[Row] = &[
    row("send_message", "POST", "/v1/messages", Some(r#"{"to":"+34600111222","text":"x"}"#), Some("messages:send")),
    row("send_messages", "POST", "/v1/messages/batch", Some(r#"{"messages":[{"to":"+34600111222","text":"x"}]}"#), Some("messages:send")),
    row("list_messages", "GET", "/v1/messages", None, Some("messages:read")),
    row("get_message", "GET", "/v1/messages/{message}", None, Some("messages:read")),
    row("cancel_message", "POST", "/v1/messages/{message}/cancel", None, Some("messages:send")),
    row("resolve_message", "POST", "/v1/messages/{message}/resolve", Some(r#"{"action":"sent"}"#), Some("messages:send")),
    row("react_to_message", "POST", "/v1/messages/{whatsapp}/reactions", Some(r#"{"emoji":"👍"}"#), Some("messages:send")),
    row(
        "play_inbound",
        "POST",
        "/v1/sandbox/inbound",
        Some(r#"{"channel":"sms","from":"+34600111222","text":"x"}"#),
        Some("messages:send"),
    ),
    row("list_message_attachments", "GET", "/v1/messages/{message}/attachments", None, Some("messages:read")),
    row("list_message_receipts", "GET", "/v1/messages/{message}/receipts", None, Some("messages:read")),
    row("list_stray_receipts", "GET", "/v1/stray-receipts", None, Some("messages:read")),
    row(
        "create_contact",
        "POST",
        "/v1/contacts",
        Some(r#"{"channels":[{"channel":"telegram","identifier":"99"}]}"#),
        Some("contacts:write"),
    ),
    row("list_contacts", "GET", "/v1/contacts", None, Some("contacts:read")),
    row("get_contact", "GET", "/v1/contacts/{contact}", None, Some("contacts:read")),
    row("list_contact_messages", "GET", "/v1/contacts/{contact}/messages", None, Some("messages:read")),
    row("get_contact_by_phone", "GET", "/v1/contacts/phone/{phone}", None, Some("contacts:read")),
    row("update_contact", "PATCH", "/v1/contacts/{contact}", Some(r#"{"displayName":"x"}"#), Some("contacts:write")),
    row("delete_contact", "DELETE", "/v1/contacts/{contact}", None, Some("contacts:write")),
    row("merge_contacts", "POST", "/v1/contacts/{contact}/merge", Some(r#"{"sourceContactId":"{source}"}"#), Some("contacts:write")),
    row("dismiss_merge_suggestion", "DELETE", "/v1/contacts/{contact}/merge-suggestion", None, Some("contacts:write")),
    row(
        "add_contact_channel",
        "POST",
        "/v1/contacts/{contact}/channels",
        Some(r#"{"channel":"instagram","identifier":"99"}"#),
        Some("contacts:write"),
    ),
    row("update_contact_channel", "PATCH", "/v1/contacts/{contact}/channels/{channel}", Some(r#"{"label":"x"}"#), Some("contacts:write")),
    row("remove_contact_channel", "DELETE", "/v1/contacts/{contact}/channels/{channel}", None, Some("contacts:write")),
    row("make_contact_channel_primary", "POST", "/v1/contacts/{contact}/channels/{channel}/primary", None, Some("contacts:write")),
    row("create_suppression", "POST", "/v1/suppressions", Some(r#"{"identifier":"+34600999999"}"#), Some("contacts:write")),
    row("list_suppressions", "GET", "/v1/suppressions", None, Some("contacts:read")),
    row("delete_suppression", "DELETE", "/v1/suppressions/{suppression}", None, Some("contacts:write")),
    row("introspect_phone", "POST", "/v1/introspect/phone", Some(r#"{"phoneNumber":"+34600111222"}"#), Some("contacts:read")),
    row("introspect_email", "POST", "/v1/introspect/email", Some(r#"{"email":"a@example.org"}"#), Some("contacts:read")),
    row("list_events", "GET", "/v1/events", None, Some("messages:read")),
    row("list_webhook_deliveries", "GET", "/v1/webhooks/deliveries", None, Some("webhooks:read")),
    row("get_webhook_delivery", "GET", "/v1/webhooks/deliveries/{delivery}", None, Some("webhooks:read")),
    row("replay_webhook_delivery", "POST", "/v1/webhooks/deliveries/{delivery}/replay", None, Some("webhooks:write")),
    row("test_sender_webhook", "POST", "/v1/senders/{sender}/webhook/test", None, Some("webhooks:write")),
    row("list_senders", "GET", "/v1/senders", None, Some("senders:read")),
    row("create_sender", "POST", "/v1/senders", Some(r#"{"name":"x"}"#), Some("senders:write")),
    row("get_sender", "GET", "/v1/senders/{sender}", None, Some("senders:read")),
    row("update_sender", "PATCH", "/v1/senders/{sender}", Some(r#"{"name":"y"}"#), Some("senders:write")),
    row("delete_sender", "DELETE", "/v1/senders/{sender}", None, Some("senders:write")),
    row("get_sender_channel", "GET", "/v1/senders/{sender}/channels/sms", None, Some("senders:read")),
    row("put_sender_channel", "PUT", "/v1/senders/{sender}/channels/sms", Some(r#"{"kind":"sim"}"#), Some("senders:write")),
    row("request_sender_channel_code", "POST", "/v1/senders/{sender}/channels/email/verification", None, Some("senders:write")),
    row(
        "verify_sender_channel",
        "POST",
        "/v1/senders/{sender}/channels/email/verify",
        Some(r#"{"code":"12345678"}"#),
        Some("senders:write"),
    ),
    row("delete_sender_channel", "DELETE", "/v1/senders/{sender}/channels/sms", None, Some("senders:write")),
    row("test_sender_channel", "POST", "/v1/senders/{sender}/channels/sms/test", None, Some("senders:write")),
    row("get_sender_profile", "GET", "/v1/senders/{sender}/profile", None, Some("senders:read")),
    row("update_sender_profile", "PATCH", "/v1/senders/{sender}/profile", Some(r#"{"about":"x"}"#), Some("senders:write")),
    row(
        "set_sender_profile_picture",
        "POST",
        "/v1/senders/{sender}/profile/picture",
        Some(r#"{"imageUrl":"https://127.0.0.1/x.png","mimeType":"image/png"}"#),
        Some("senders:write"),
    ),
    row("rotate_sender_webhook_secret", "POST", "/v1/senders/{sender}/webhook/secret", None, Some("webhooks:write")),
    row("get_webhook", "GET", "/v1/webhook", None, Some("webhooks:read")),
    row("put_webhook", "PUT", "/v1/webhook", Some(r#"{"url":"https://example.com/x"}"#), Some("webhooks:write")),
    row("delete_webhook", "DELETE", "/v1/webhook", None, Some("webhooks:write")),
    row("test_webhook", "POST", "/v1/webhook/test", None, Some("webhooks:write")),
    row("rotate_webhook_secret", "POST", "/v1/webhook/secret", None, Some("webhooks:write")),
    row("list_audit_entries", "GET", "/v1/audit-log", None, Some("audit:read")),
    row("list_keys", "GET", "/v1/keys", None, Some("keys:read")),
    row("create_key", "POST", "/v1/keys", Some(r#"{"name":"x"}"#), Some("keys:write")),
    row("revoke_key", "DELETE", "/v1/keys/{key}", None, Some("keys:write")),
    row("get_balance", "GET", "/v1/balance", None, Some("messages:read")),
    row("list_phone_numbers", "GET", "/v1/phone-numbers", None, Some("numbers:read")),
    row("list_available_phone_numbers", "GET", "/v1/phone-numbers/available?countryCode=US", None, Some("numbers:read")),
    row("acquire_phone_number", "POST", "/v1/phone-numbers", Some(r#"{"phoneNumber":"{available}"}"#), Some("numbers:write")),
    row("get_phone_number", "GET", "/v1/phone-numbers/{number}", None, Some("numbers:read")),
    row("update_phone_number", "PATCH", "/v1/phone-numbers/{number}", Some(r#"{"name":"x"}"#), Some("numbers:write")),
    row("release_phone_number", "DELETE", "/v1/phone-numbers/{number}", None, Some("numbers:write")),
    row("create_invitation", "POST", "/v1/invitations", Some("{}"), Some("invitations:write")),
    row("list_invitations", "GET", "/v1/invitations", None, Some("invitations:read")),
    row("get_invitation", "GET", "/v1/invitations/{invitation}", None, Some("invitations:read")),
    row("cancel_invitation", "POST", "/v1/invitations/{invitation}/cancel", None, Some("invitations:write")),
    row("list_templates", "GET", "/v1/templates", None, Some("templates:read")),
    row("create_template", "POST", "/v1/templates", Some(r#"{"name":"other","language":"en","body":"x"}"#), Some("templates:write")),
    row("get_template", "GET", "/v1/templates/{template}", None, Some("templates:read")),
    row("update_template", "PATCH", "/v1/templates/{template}", Some(r#"{"footer":"x"}"#), Some("templates:write")),
    row("delete_template", "DELETE", "/v1/templates/{template}", None, Some("templates:write")),
    row("submit_template", "POST", "/v1/templates/{template}/submit", Some(r#"{"senderId":"{sender}"}"#), Some("templates:write")),
    row("list_broadcasts", "GET", "/v1/broadcasts", None, Some("broadcasts:read")),
    row("create_broadcast", "POST", "/v1/broadcasts", Some(r#"{"name":"x","channel":"sms","text":"x"}"#), Some("broadcasts:write")),
    row("get_broadcast", "GET", "/v1/broadcasts/{broadcast}", None, Some("broadcasts:read")),
    row("update_broadcast", "PATCH", "/v1/broadcasts/{broadcast}", Some(r#"{"name":"y"}"#), Some("broadcasts:write")),
    row("delete_broadcast", "DELETE", "/v1/broadcasts/{broadcast}", None, Some("broadcasts:write")),
    row(
        "add_broadcast_contacts",
        "POST",
        "/v1/broadcasts/{broadcast}/contacts",
        Some(r#"{"contacts":[{"recipient":"+34600111223"}]}"#),
        Some("broadcasts:write"),
    ),
    row("select_broadcast_contacts", "POST", "/v1/broadcasts/{broadcast}/contacts/select", Some("{}"), Some("broadcasts:write")),
    row("get_broadcast_statistics", "GET", "/v1/broadcasts/{broadcast}/statistics", None, Some("broadcasts:read")),
    row("import_broadcast_contacts", "POST", "/v1/broadcasts/{broadcast}/contacts/import", None, Some("broadcasts:write")),
    row("list_broadcast_contacts", "GET", "/v1/broadcasts/{broadcast}/contacts", None, Some("broadcasts:read")),
    row("delete_broadcast_contact", "DELETE", "/v1/broadcasts/{broadcast}/contacts/{broadcastContact}", None, Some("broadcasts:write")),
    row("get_broadcast_progress", "GET", "/v1/broadcasts/{broadcast}/progress", None, Some("broadcasts:read")),
    row("preview_broadcast", "POST", "/v1/broadcasts/{broadcast}/preview", None, Some("broadcasts:read")),
    row("clone_broadcast", "POST", "/v1/broadcasts/{broadcast}/clone", None, Some("broadcasts:write")),
    row("estimate_broadcast", "GET", "/v1/broadcasts/{broadcast}/estimate", None, Some("broadcasts:read")),
    row("export_broadcast_results", "GET", "/v1/broadcasts/{broadcast}/results", None, Some("broadcasts:read")),
    row("test_broadcast", "POST", "/v1/broadcasts/{broadcast}/test", Some(r#"{"to":"+34600111222"}"#), Some("messages:send")),
    row("send_broadcast", "POST", "/v1/broadcasts/{broadcast}/send", None, Some("broadcasts:send")),
    row(
        "schedule_broadcast",
        "PATCH",
        "/v1/broadcasts/{broadcast}/schedule",
        Some(r#"{"scheduledAt":"2026-01-02T00:00:00Z"}"#),
        Some("broadcasts:send"),
    ),
    row("pause_broadcast", "POST", "/v1/broadcasts/{broadcast}/pause", None, Some("broadcasts:send")),
    row("resume_broadcast", "POST", "/v1/broadcasts/{broadcast}/resume", None, Some("broadcasts:send")),
    row("cancel_broadcast", "POST", "/v1/broadcasts/{broadcast}/cancel", None, Some("broadcasts:send")),
    row("escalate_broadcast", "POST", "/v1/broadcasts/{broadcast}/escalate", None, Some("broadcasts:send")),
    row("retry_broadcast_review", "POST", "/v1/broadcasts/{broadcast}/retry-review", None, Some("broadcasts:send")),
    row("get_me", "GET", "/v1/me", None, None),
];

/// Creates the resources in the paths, in the test environment.
pub(crate) async fn fixtures(app: &TestApp) -> Vec<(&'static str, String)> {
    let message = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    let made = app.post("/v1/senders", json!({"name": "fixture"})).await.expect(201).json();
    let sender = made["id"].as_str().expect("an id").to_owned();
    app.request("PUT", "/v1/webhook", Some(json!({"url": "https://example.com/world"}))).await;
    app.set_webhook(sender.parse().ok(), "http://127.0.0.1:9/hook", &[], "whsec_c2VjcmV0").await;
    let tested = app.post(&format!("/v1/senders/{sender}/webhook/test"), json!({})).await.expect(202).json();
    let delivery = tested["deliveryId"].as_str().expect("an id").to_owned();
    let (available, held) = (stock(app).await, stock(app).await);
    let made = async |path: &str, body: Value, name: &str| {
        let answer = app.post(path, body).await.expect(201).json();
        answer[name]["id"].as_str().expect("an id").to_owned()
    };
    let whatsapp = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
    app.drain().await;
    let number = app.node.core.ids().entropy.below(100_000_000);
    let make = async |channels: Value| app.post("/v1/contacts", json!({"channels": channels})).await.expect(201).json();
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let phone = format!("+346{number:08}");
    let contact =
        make(json!([{"channel": "sms", "identifier": phone}, {"channel": "email", "identifier": format!("a{number}@example.org")}])).await;
    let source = make(json!([{"channel": "telegram", "identifier": format!("1{number}")}])).await;
    let suppression = app.post("/v1/suppressions", json!({"identifier": format!("s{number}@example.org")})).await.expect(201).json();
    let template = app.post("/v1/templates", json!({"name": message, "language": "en", "body": "x"})).await.expect(201).json();
    let mut fixtures = vec![
        ("message", message),
        ("sender", sender),
        ("delivery", delivery),
        ("number", made("/v1/phone-numbers", json!({"phoneNumber": held}), "phoneNumber").await),
        ("available", available),
        ("invitation", made("/v1/invitations", json!({}), "invitation").await),
        ("whatsapp", whatsapp),
        ("contact", text(&contact["id"])),
        ("channel", text(&contact["channels"][0]["id"])),
        ("phone", phone),
        ("source", text(&source["id"])),
        ("suppression", text(&suppression["id"])),
        ("key", text(&app.post("/v1/keys", json!({"name": "x"})).await.expect(201).json()["id"])),
        ("template", template["id"].as_str().expect("an id").to_owned()),
    ];
    fixtures.extend(broadcast(app).await);
    fixtures
}

/// Adds a new number to the inventory of the test environment.
pub(crate) async fn stock(app: &TestApp) -> String {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let phone_number = format!("+34610{:06}", NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
    let number = ImportedNumber { phone_number: phone_number.clone(), capabilities: "sms".to_owned(), ..ImportedNumber::default() };
    app.node.core.numbers().import(app.tenant(), &[number], |_| String::new()).await.expect("a good number");
    phone_number
}

/// Creates a draft with one recipient.
async fn broadcast(app: &TestApp) -> Vec<(&'static str, String)> {
    let made = app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x"})).await.expect(201).json();
    let id = made["broadcast"]["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/broadcasts/{id}/contacts");
    app.post(&path, json!({"contacts": [{"recipient": "+34600111222"}]})).await.expect(201);
    let contact = app.get(&path).await.json()["items"][0]["id"].as_str().expect("an id").to_owned();
    vec![("broadcast", id), ("broadcastContact", contact)]
}

pub(crate) async fn call(app: &TestApp, row: &Row, fixtures: &[(&str, String)], key: Option<&str>) -> (u16, Value) {
    let fill = |text: &str| fixtures.iter().fold(text.to_owned(), |text, (name, id)| text.replace(&format!("{{{name}}}"), id));
    let auth = key.map(|k| format!("Bearer {k}"));
    let headers: Vec<(&str, &str)> = auth.iter().map(|a| ("authorization", a.as_str())).collect();
    let body = row.body.map(|b| serde_json::from_str(&fill(b)).expect("a body"));
    let answer = app.send(row.method, &fill(row.path), &headers, body).await;
    (answer.status.as_u16(), answer.json())
}

#[tokio::test]
async fn every_operation_has_a_row() {
    let app = TestApp::start().await;
    let document = app.get("/openapi.json").await.expect(200).json();
    let mut documented: Vec<String> = Vec::new();
    for operations in document["paths"].as_object().expect("paths").values() {
        documented
            .extend(operations.as_object().expect("operations").values().filter_map(|o| o["operationId"].as_str()).map(str::to_owned));
    }
    documented.retain(|id| !matches!(id.as_str(), "healthz" | "readyz" | "metrics" | "openapi" | "docs" | "get_openapi"));
    documented.sort();
    let mut rows: Vec<String> = ROWS.iter().map(|r| nuncio_api::operation_id(r.operation)).collect();
    rows.sort();
    assert_eq!(documented, rows);
}

// holds: auth.bearer, auth.missing, auth.revoked
#[tokio::test]
async fn without_a_good_key_nothing_is_told() {
    let app = TestApp::start().await;
    let revoked = app.key(Environment::Test, &[]).await;
    let hash = nuncio_domain::key::hash(&revoked);
    let id = app.store().read().await.expect("a reader").find_key(&hash).await.expect("a look").expect("the key").0.id;
    app.node.core.keys().revoke(app.tenant(), id).await.expect("revoked");
    let fixtures = fixtures(&app).await;
    for row in ROWS {
        app.clock.advance(std::time::Duration::from_secs(60)); // failed authentications have a separate limit
        for key in [None, Some(revoked.as_str()), Some("nonsense"), Some("svc_test_00000000000000000000000000000000000000")] {
            let (status, body) = call(&app, row, &fixtures, key).await;
            assert_eq!(
                (status, body["code"].as_str(), body["error"]["code"].as_str()),
                (401, Some("unauthorized"), Some("unauthorized")),
                "{} {key:?}",
                row.operation
            );
        }
    }
}

// holds: auth.forbidden, auth.permissions
#[tokio::test]
async fn each_operation_needs_its_permission() {
    let app = TestApp::start().await;
    let weak = [app.key(Environment::Test, &["templates:read"]).await, app.key(Environment::Test, &["numbers:read"]).await];
    for row in ROWS {
        let weak = &weak[usize::from(row.permission == Some("templates:read"))];
        // New for each row, since operations change and delete them.
        let fixtures = fixtures(&app).await;
        let (status, body) = call(&app, row, &fixtures, Some(weak)).await;
        let Some(permission) = row.permission else {
            assert_eq!(status, 200, "{}", row.operation);
            continue;
        };
        assert_eq!((status, body["details"]["requiredPermission"].as_str()), (403, Some(permission)), "{}", row.operation);
        let also = ALSO.iter().find(|(operation, _)| *operation == row.operation).map(|(_, permission)| *permission);
        if let Some(also) = also {
            let half = app.key(Environment::Test, &[permission]).await;
            let (status, body) = call(&app, row, &fixtures, Some(&half)).await;
            assert_eq!((status, body["details"]["requiredPermission"].as_str()), (403, Some(also)), "{}", row.operation);
        }
        let permissions: Vec<_> = [permission].into_iter().chain(also).collect();
        let strong = app.key(Environment::Test, &permissions).await;
        let (status, _) = call(&app, row, &fixtures, Some(&strong)).await;
        assert!(status < 500 && !matches!(status, 401 | 403 | 404), "{} {status}", row.operation);
    }
}

// holds: auth.worlds
#[tokio::test]
async fn what_belongs_to_another_world_is_not_found() {
    let app = TestApp::start().await;
    let fixtures = fixtures(&app).await;
    let other = app.node.core.projects().create("other", None).await.expect("a project");
    let foreign =
        app.node.core.keys().create(other.test, Environment::Test, "foreign", nuncio_domain::Permissions::ALL, None).await.expect("a key");
    for row in ROWS.iter().filter(|r| r.path.contains('{')) {
        for key in [app.live_key.as_str(), foreign.secret.expose().as_str()] {
            let (status, body) = call(&app, row, &fixtures, Some(key)).await;
            assert_eq!((status, body["code"].as_str()), (404, Some("not_found")), "{}", row.operation);
        }
    }
}

// holds: messages.sender_header
#[tokio::test]
async fn a_sender_of_another_world_is_not_found() {
    let app = TestApp::start().await;
    let live =
        app.node.core.tenant_config(app.project.live).await.expect("the live world").default_sender().expect("a sender").id.to_string();
    let auth = format!("Bearer {}", app.test_key);
    let body = json!({"to": "+34600111222", "text": "x"});
    for sender in [live.as_str(), "snd_nonsense"] {
        let answer =
            app.send("POST", "/v1/messages", &[("authorization", &auth), ("service-sender", sender)], Some(body.clone())).await.expect(404);
        assert_eq!(answer.json()["details"]["errors"][0]["path"], "header.Service-Sender");
    }
}

// holds: auth.once
#[tokio::test]
async fn a_key_is_shown_once_and_kept_as_a_hash() {
    let app = TestApp::start().await;
    let run = async |command| nuncio::admin::run(&app.node.core, nuncio::admin::Request { project: None, command }).await.expect("done");
    let create =
        nuncio::admin::Command::KeysCreate { name: "shop".into(), env: Environment::Test, permissions: Vec::new(), expires_at: None };
    let made = run(create).await;
    let key = made.json["key"].as_str().expect("a key").to_owned();
    assert!(key.starts_with("svc_test_") && made.text.contains(&key));
    app.send("GET", "/v1/me", &[("authorization", &format!("Bearer {key}"))], None).await.expect(200);

    let listed = run(nuncio::admin::Command::KeysList { env: Some(Environment::Test) }).await;
    let random = &key["svc_test_".len()..];
    assert!(
        listed.table.as_ref().is_some_and(|table| table.rows.iter().any(|row| row[1] == "shop")) && !format!("{listed:?}").contains(random),
        "{listed:?}"
    );
    let kept = app.store().read().await.expect("a reader").list_keys(app.tenant()).await.expect("keys");
    let kept = kept.into_iter().find(|key| key.name == "shop").expect("the key");
    assert_eq!(kept.hash, nuncio_domain::key::hash(&key));
    // The key itself is not stored in any file.
    for entry in app.folder().expect("a folder").read_dir().expect("files") {
        let bytes = std::fs::read(entry.expect("an entry").path()).expect("a file");
        assert!(!bytes.windows(random.len()).any(|window| window == random.as_bytes()));
    }
}

// holds: rate.limit
#[tokio::test]
async fn guessing_keys_is_slowed_down() {
    let app = TestApp::start().await;
    let mut statuses = Vec::new();
    for _ in 0..80 {
        statuses.push(app.send("GET", "/v1/me", &[("authorization", "Bearer svc_test_x")], None).await.status.as_u16());
    }
    assert_eq!((statuses[0], statuses[79]), (401, 429));
    app.get("/v1/me").await.expect(200);
}

// holds: messages.not_configured, auth.prefix.live
#[tokio::test]
async fn live_messages_need_a_connected_provider() {
    let app = TestApp::start().await;
    let answer = app.with_key(&app.live_key, "POST", "/v1/messages", Some(json!({"to": "+34600111222", "text": "x"}))).await.expect(400);
    assert_eq!(answer.json()["code"], "sender_not_configured");
}
