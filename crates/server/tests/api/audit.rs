//! Changes by API keys and the command line are in the audit log: completely, and without personal data or secrets.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio::admin::{Command, NewThrottle, Request, run};
use nuncio_api::NOT_AUDITED;
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::audit::{ActorKind, Entry, Filter};
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Environment, TenantId};
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Map, Value, json};

use crate::authz::{ROWS, call, fixtures};
use crate::broadcasts::{act, add, draft, finish, phones};

/// Operations that change nothing as called here, since they need a provider or a code; other tests cover them.
const NOT_WALKED: &[(&str, &str)] = &[
    ("request_sender_channel_code", "needs an inbound address"),
    ("verify_sender_channel", "needs a code that was mailed"),
    ("update_sender_profile", "needs a provider that keeps profiles"),
    ("set_sender_profile_picture", "needs a provider that keeps profiles"),
    ("submit_template", "needs a provider that keeps templates"),
    ("import_broadcast_contacts", "needs a file"),
    ("pause_broadcast", "needs a broadcast that is going out; one function makes all changes of broadcasts"),
    ("resume_broadcast", "the same"),
];

/// Returns all entries of an environment, oldest first.
pub(crate) async fn log(app: &TestApp, tenant: TenantId) -> Vec<Entry> {
    let page = PageRequest::newest(10_000);
    let mut tx = app.store().read().await.expect("a reader");
    let mut found = tx.list_audit_entries(tenant, &Filter::default(), page).await.expect("a list").items;
    found.reverse();
    found
}

/// Creates what an operation needs to change something.
async fn prepare(app: &TestApp, operation: &str, fixtures: &mut Vec<(&'static str, String)>) {
    let mut put = |name: &'static str, value: String| {
        fixtures.retain(|(known, _)| *known != name);
        fixtures.push((name, value));
    };
    match operation {
        "cancel_message" => {
            let body = json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-20T00:00:00Z"});
            put("message", app.send_message(body).await);
        }
        "resolve_message" => {
            put("message", app.send_message(json!({"to": "+12125550008", "text": "x", "onUnknown": "hold"})).await);
            app.drain().await;
            app.advance(Duration::from_secs(60)).await;
        }
        "put_sender_channel" => {
            let sender = &fixtures.iter().find(|(name, _)| *name == "sender").expect("a sender").1;
            app.request("DELETE", &format!("/v1/senders/{sender}/channels/sms"), None).await.expect(204);
        }
        "make_contact_channel_primary" => {
            let phones = ["+34620000001", "+34620000002"].map(|phone| json!({"channel": "sms", "identifier": phone}));
            let made = app.post("/v1/contacts", json!({"channels": phones})).await.expect(201).json();
            put("contact", made["id"].as_str().expect("an id").to_owned());
            let other = made["channels"].as_array().expect("channels").iter().find(|channel| channel["isPrimary"] == false);
            put("channel", other.expect("another one")["id"].as_str().expect("an id").to_owned());
        }
        "dismiss_merge_suggestion" => {
            // With the same name, and different kinds of identifiers.
            for (channel, identifier) in [("sms", "+34620000101"), ("telegram", "4712")] {
                let channels = json!([{"channel": channel, "identifier": identifier}]);
                let made = app.post("/v1/contacts", json!({"displayName": "One And The Same", "channels": channels})).await.expect(201);
                put("contact", made.json()["id"].as_str().expect("an id").to_owned());
            }
        }
        "schedule_broadcast" | "cancel_broadcast" => {
            let id = &fixtures.iter().find(|(name, _)| *name == "broadcast").expect("a broadcast").1;
            let body = json!({"scheduledAt": "2026-01-20T00:00:00Z"});
            app.post(&format!("/v1/broadcasts/{id}/send"), body).await.expect(202);
            finish(app).await;
        }
        "escalate_broadcast" | "retry_broadcast_review" => {
            let lure = json!({"name": "n", "channel": "sms", "text": "Please reply with your password to win"});
            let id = draft(app, lure).await;
            add(app, &id, phones(2)).await;
            act(app, &id, "send").await.expect(202);
            app.drain().await;
            if operation == "retry_broadcast_review" {
                app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(json!({"text": "Hello again"}))).await.expect(200);
            }
            put("broadcast", id);
        }
        _ => {}
    }
}

// holds: audit.complete, audit.api
#[tokio::test]
async fn every_operation_that_changes_something_leaves_an_entry() {
    let app = TestApp::start().await;
    let mut forgotten = BTreeMap::new();
    for row in ROWS.iter().filter(|row| row.method != "GET") {
        let mut fixtures = fixtures(&app).await;
        prepare(&app, row.operation, &mut fixtures).await;
        let before = log(&app, app.tenant()).await.len();
        app.clock.advance(Duration::from_millis(1)); // entries of the same millisecond have no order
        let (status, body) = call(&app, row, &fixtures, Some(&app.test_key)).await;
        let entries = log(&app, app.tenant()).await.split_off(before);
        let elsewhere = NOT_WALKED.iter().any(|(operation, _)| *operation == row.operation);
        if NOT_AUDITED.contains(&row.operation) {
            assert!(entries.is_empty() && (200..300).contains(&status), "{}: {status} {entries:?}", row.operation);
        } else if !elsewhere && (entries.is_empty() || status >= 300) {
            forgotten.insert(row.operation, format!("{status} {body}"));
        } else if !elsewhere {
            let entry = &entries[0];
            let shown = (entry.actor.kind, entry.actor.label.is_empty(), entry.actor.name.starts_with("key_"), entry.from.is_empty());
            assert_eq!(shown, (ActorKind::ApiKey, false, true, false), "{}: {entry:?}", row.operation);
            assert!(!entry.kind.is_empty() && !entry.verb.is_empty() && !entry.resource.is_empty(), "{entry:?}");
        }
    }
    assert!(forgotten.is_empty(), "no entry: {forgotten:#?}");
}

// holds: audit.diff, audit.secrets
#[tokio::test]
async fn before_and_after_are_kept_without_secrets_and_personal_data() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let webhook = "https://example.com/hook?key=hunter3";
        let made = app.post("/v1/senders", json!({"name": "Shop", "webhookUrl": webhook})).await.expect(201).json();
        let secret = made["webhook"]["secret"].as_str().expect("a secret").to_owned();
        let id = made["id"].as_str().expect("an id");
        app.request("PATCH", &format!("/v1/senders/{id}"), Some(json!({"name": "Store"}))).await.expect(200);
        let channels = json!([{"channel": "sms", "identifier": "+34600777888"}]);
        let body = json!({"displayName": "Ana Secreta", "metadata": {"note": "rosebud"}, "channels": channels});
        let contact = app.post("/v1/contacts", body).await.expect(201).json();
        let path = format!("/v1/contacts/{}", contact["id"].as_str().expect("an id"));
        app.request("PATCH", &path, Some(json!({"displayName": "Ana Secretisima"}))).await.expect(200);
        app.post("/v1/suppressions", json!({"identifier": "+34600777888"})).await.expect(201);
        app.post("/v1/invitations", json!({"clientName": "Ana Clienta", "clientPhone": "+34600777888"})).await.expect(201);
        let broadcast = json!({"name": "News", "channel": "sms", "text": "Come and see rosebud"});
        draft(&app, broadcast).await;

        let entries = log(&app, app.tenant()).await;
        let update = entries.iter().find(|entry| (entry.kind.as_str(), entry.verb.as_str()) == ("sender", "update")).expect("an update");
        assert_eq!((update.before.clone(), update.after.clone()), (Some(json!({"name": "Shop"})), Some(json!({"name": "Store"}))));
        assert_eq!(update.resource, id);
        let contact = entries.iter().find(|entry| (entry.kind.as_str(), entry.verb.as_str()) == ("contact", "update")).expect("an update");
        assert_eq!(contact.before, Some(json!({"displayName": "[left out]"})));
        let all = entries.iter().map(|entry| format!("{:?}{:?}", entry.before, entry.after)).collect::<String>();
        let hidden = ["hunter3", &secret, "Ana", "rosebud", "34600777888"];
        assert!(hidden.iter().all(|text| !all.contains(text)), "{all}");
        assert!(all.contains("https://example.com/hook?…") && all.contains("News"), "{all}");

        app.clock.advance(Duration::from_millis(1));
        app.request("DELETE", &path, None).await.expect(204);
        let holders = app.holders("Ana Secret").await;
        assert!(!holders.iter().any(|table| table.contains("audit")), "{holders:?}");
        assert_eq!(log(&app, app.tenant()).await.last().map(|entry| entry.verb.clone()), Some("erase".to_owned()));
        // A rejected change leaves no entry.
        let before = log(&app, app.tenant()).await.len();
        app.request("PATCH", &format!("/v1/senders/{id}"), Some(json!({"name": ""}))).await.expect(400);
        app.request("PATCH", &format!("/v1/senders/{id}"), Some(json!({"name": "Store"}))).await.expect(200);
        assert_eq!(log(&app, app.tenant()).await.len(), before, "nothing is different");
    }
}

/// Commands that change nothing.
const READS: &[&str] = &[
    "ProjectsList", "KeysList", "SendersList", "ConnectionsList", "DomainsList", "ConnectionsTest", "NumbersList", "HeldList",
    "PricesList", "BalanceShow", "StorageShow", "DbSize", "PeopleList", "PeopleLink", "ReviewsList", "ReviewsExport", "Doctor",
];
/// Commands whose requirements this test lacks; they use the same use cases as the API.
const LIKE_THE_API: &[&str] = &["ConnectionsVerify", "ReviewsDecide"];

// holds: audit.command_line
#[tokio::test]
async fn every_command_that_changes_something_leaves_an_entry() {
    let app = TestApp::start().await;
    let done = async |command: Command| run(&app.node.core, Request { project: None, command }).await.expect("done");
    let id = |answer: &nuncio::admin::CommandOutput| answer.json["id"].as_str().expect("an id").to_owned();
    let (test, live) = (Environment::Test, Environment::Live);
    let key = id(&done(Command::KeysCreate { name: "k".into(), env: test, permissions: Vec::new(), expires_at: None }).await);
    let sender = id(&done(Command::SendersCreate { env: test, sender: json!({"name": "one"}) }).await);
    let number =
        |n: u32| ImportedNumber { phone_number: format!("+3461000000{n}"), capabilities: "sms".into(), ..ImportedNumber::default() };
    let held = app.send_message(json!({"to": "+12125550008", "text": "x", "onUnknown": "hold"})).await;
    app.drain().await;
    app.advance(Duration::from_secs(60)).await;
    let smtp: Map<String, Value> = serde_json::from_value(json!({"host": "mail.example.net", "from": "a@example.net"})).expect("settings");
    let connection = Command::ConnectionsSet {
        throttle: NewThrottle::Keep,
        env: live,
        sender: None,
        channel: "email".into(),
        kind: "smtp".into(),
        settings: smtp,
        secrets: Map::new(),
    };
    let csv = "channel,country,unit,provider,fee\nsms,*,segment,0.01,0\n".to_owned();
    let commands = vec![
        Command::ProjectsCreate { name: "second".into() },
        Command::ProjectsRename { name: "renamed".into() },
        Command::ProjectsColour { colour: Some("#2747c7".into()) },
        Command::KeysCreate { name: "shop".into(), env: test, permissions: Vec::new(), expires_at: None },
        Command::KeysRevoke { id: key },
        Command::SendersCreate { env: test, sender: json!({"name": "s"}) },
        Command::SendersUpdate { env: test, id: sender.clone(), change: json!({"name": "t"}) },
        Command::SendersCopy { id: sender.clone(), to: live },
        Command::SendersDelete { env: test, id: sender },
        connection,
        Command::ConnectionsRemove { env: live, sender: None, channel: "email".into() },
        Command::DomainsAdd { domain: "example.net".into() },
        Command::DomainsRemove { domain: "example.net".into() },
        Command::NumbersImport { env: test, numbers: vec![(2, number(1))] },
        Command::NumbersAdd { env: test, number: number(2) },
        Command::HeldResolve { id: Some(held), all: false, action: Resolution::Sent },
        Command::PricesImport { csv, own: true, replace: false },
        Command::BalanceAdd { env: test, amount: "5".into(), reference: None },
        Command::BalanceLimit { env: test, on: true },
        Command::StorageLimit { env: test, max_bytes: Some(1 << 30) },
        Command::PeopleAdd { email: "al@example.net".into(), role: "owner".into() },
        Command::PeopleAdd { email: "bo@example.net".into(), role: "viewer".into() },
        Command::PeopleRole { email: "bo@example.net".into(), role: "operator".into() },
        Command::PeoplePassword { email: "bo@example.net".into() },
        Command::PeopleResetFactor { email: "bo@example.net".into() },
        Command::PeopleRemove { email: "bo@example.net".into() },
        Command::ReviewsPolicy { env: Some(test), threshold: Some(0.4), blocked_words: None, allowed_domains: None },
    ];
    let viewer = Command::PeopleAdd { email: "al@example.net".into(), role: "viewer".into() };
    let refused = run(&app.node.core, Request { project: None, command: viewer }).await.expect_err("nobody could make an owner of them");
    assert!(refused.is_about("role"), "{refused}");
    let mut seen = Vec::new();
    for command in commands {
        let name = format!("{command:?}");
        let name = name.split([' ', '{']).next().expect("a name").to_owned();
        let before = log(&app, app.project.live).await.len() + log(&app, app.project.test).await.len();
        done(command).await;
        let entries: Vec<_> = [log(&app, app.project.live).await, log(&app, app.project.test).await].concat();
        // A new project has its own log.
        assert!(entries.len() > before || name == "ProjectsCreate", "{name} left no entry");
        assert!(entries.iter().any(|entry| entry.actor.kind == ActorKind::CommandLine && entry.actor.name == "command line"), "{name}");
        seen.push(name);
    }
    let source = include_str!("../../src/admin/mod.rs");
    let body = source.split("pub enum Command {").nth(1).and_then(|rest| rest.split("\n}").next()).expect("the commands");
    let all = body.lines().filter(|line| line.starts_with("    ") && line.as_bytes().get(4).is_some_and(u8::is_ascii_uppercase));
    let all = all.map(|line| line.trim().split([',', ' ', '{']).next().unwrap_or_default());
    let known = |name: &str| seen.iter().any(|seen| seen == name) || READS.contains(&name) || LIKE_THE_API.contains(&name);
    let forgotten: Vec<&str> = all.filter(|name| !known(name)).collect();
    assert!(forgotten.is_empty(), "neither run here nor known to change nothing: {forgotten:?}");
    assert!(app.holders("mail.example.net").await.iter().any(|table| table.contains("audit")), "settings are kept");
}
