//! The audit log through the API and on the command line.

use std::collections::BTreeSet;
use std::time::Duration;

use nuncio::admin::{Command, Request, run};
use nuncio_core::projects::UpdateProject;
use nuncio_domain::user::Role;
use nuncio_domain::{Environment, Permission, Permissions};
use nuncio_testkit::{Backend, TestApp, TestResponse};
use serde_json::{Value, json};

use crate::cli::Terminal;
use crate::dashboard::person;

async fn with(app: &TestApp, key: &str, path: &str) -> TestResponse {
    app.send("GET", path, &[("authorization", &format!("Bearer {key}"))], None).await
}

/// Returns `resourceType action` of the entries of a page.
async fn found(app: &TestApp, key: &str, query: &str) -> Vec<String> {
    let page = with(app, key, &format!("/v1/audit-log?{query}")).await.expect(200).json();
    let word = |entry: &Value, name: &str| entry[name].as_str().expect("a word").to_owned();
    page["items"]
        .as_array()
        .expect("items")
        .iter()
        .map(|entry| format!("{} {}", word(entry, "resourceType"), word(entry, "action")))
        .collect()
}

/// Makes a change in the log, a millisecond later than the one before.
async fn carry_out(app: &TestApp, command: Command) {
    app.clock.advance(Duration::from_millis(1));
    run(&app.node.core, Request { project: Some(app.project.id.to_string()), command }).await.expect("done");
}

// holds: audit.read
#[tokio::test]
async fn a_key_reads_the_log_of_its_environment() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let url = "https://example.com/hook?key=hunter3";
        app.clock.advance(Duration::from_millis(1));
        let sender = app.post("/v1/senders", json!({"name": "Shop", "webhookUrl": url})).await.expect(201).json();
        let id = sender["id"].as_str().expect("an id");
        app.clock.advance(Duration::from_millis(1));
        app.request("PATCH", &format!("/v1/senders/{id}"), Some(json!({"name": "Store"}))).await.expect(200);
        let me = app.get("/v1/me").await.expect(200).json();

        let entry = app.get("/v1/audit-log?limit=1").await.expect(200).json()["items"][0].take();
        let expected = json!({
            "id": entry["id"],
            "actor": {"type": "api_key", "id": me["apiKey"]["id"], "name": me["apiKey"]["name"]},
            "address": entry["address"],
            "action": "update",
            "resourceType": "sender",
            "resourceId": id,
            "before": {"name": "Shop"},
            "after": {"name": "Store"},
            "createdAt": entry["createdAt"],
        });
        assert_eq!(entry, expected);
        assert!(entry["id"].as_str().is_some_and(|id| id.starts_with("aud_")) && entry["address"].is_string(), "{entry}");
        let all = app.get("/v1/audit-log").await.expect(200).text;
        assert!(all.contains("https://example.com/hook?…") && !all.contains("hunter3"), "{all}");

        carry_out(&app, Command::BalanceLimit { env: Environment::Test, on: true }).await;
        carry_out(&app, Command::KeysCreate { name: "live".into(), env: Environment::Live, permissions: Vec::new(), expires_at: None })
            .await;
        let test = app.test_key.clone();
        assert_eq!(found(&app, &test, "limit=3").await, ["balance limit", "sender update", "sender create"]);
        let command_line = app.get("/v1/audit-log?limit=1").await.expect(200).json()["items"][0].take();
        assert_eq!(command_line["actor"], json!({"type": "command_line", "id": "command line"}));
        assert_eq!((&command_line["address"], &command_line["resourceId"]), (&Value::Null, &json!("balance")));

        let at = entry["createdAt"].as_str().expect("a time");
        let key = me["apiKey"]["id"].as_str().expect("an id");
        for (query, expected) in [
            (format!("actor={key}"), vec!["sender update", "sender create"]),
            ("actor=command%20line".to_owned(), vec!["balance limit"]),
            ("actor=nobody@example.net".to_owned(), vec![]),
            ("resourceType=sender".to_owned(), vec!["sender update", "sender create"]),
            (format!("resourceId={id}"), vec!["sender update", "sender create"]),
            (format!("resourceId={id}&resourceType=template"), vec![]),
            (format!("resourceId={id}&actor={key}&since={at}"), vec!["sender update"]),
            (format!("resourceId={id}&until={at}"), vec!["sender create"]),
        ] {
            assert_eq!(found(&app, &test, &query).await, expected, "{query}");
        }
        for (query, path) in [("actor=", "query.actor"), ("resourceId=", "query.resourceId"), ("resourceType=", "query.resourceType")] {
            let refused = app.get(&format!("/v1/audit-log?{query}")).await.expect(400).json();
            assert_eq!(refused["details"]["errors"][0]["path"], path, "{refused}");
        }
        let unknown = app.get("/v1/audit-log?resourceType=nope").await.expect(400).json();
        let message = unknown["details"]["errors"][0]["message"].as_str().expect("a message");
        assert!(message.starts_with("\"nope\" is not one of api_key, balance, broadcast, "), "{message}");
        app.get("/v1/audit-log?who=me").await.expect(400);
    }
}

// holds: audit.read
#[tokio::test]
async fn changes_of_the_project_are_in_the_live_log_and_no_other_project_sees_them() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let core = &app.node.core;
        let live = app.key(Environment::Live, &["audit:read"]).await;
        person(&app, "ada@example.net", Role::Owner).await;
        app.clock.advance(Duration::from_millis(1));
        carry_out(&app, Command::ProjectsColour { colour: Some("#2747c7".into()) }).await;
        let page = with(&app, &live, "/v1/audit-log?resourceType=project").await.expect(200).json();
        assert_eq!((&page["items"][0]["before"], &page["items"][0]["after"]), (&json!({"colour": null}), &json!({"colour": "#2747c7"})));
        assert_eq!(found(&app, &live, "actor=ada@example.net").await, ["person sign_in"]);
        assert!(found(&app, &app.test_key, "resourceType=project").await.is_empty(), "the test log has its own environment only");

        let other = core.projects().create("other", None).await.expect("a project");
        core.projects().update(&other, UpdateProject { name: Some("another".into()), ..UpdateProject::default() }).await.expect("a name");
        let audit = Permissions::NONE.with(Permission::AuditRead);
        let key = core.keys().create(other.live, Environment::Live, "k", audit, None).await.expect("a key").secret;
        assert!(found(&app, key.expose(), "").await.is_empty(), "changes outside of a request are not recorded");
        assert!(found(&app, key.expose(), "actor=ada@example.net").await.is_empty());
        let cursor = with(&app, &live, "/v1/audit-log?limit=1").await.expect(200).json()["nextCursor"].take();
        let path = format!("/v1/audit-log?cursor={}", cursor.as_str().expect("there is more"));
        with(&app, key.expose(), &path).await.expect(400);
        with(&app, &live, &format!("{path}&actor=x")).await.expect(400);
    }
}

// holds: audit.read, audit.roles
#[tokio::test]
async fn the_log_needs_its_permission() {
    let app = TestApp::start().await;
    let others: Vec<&str> = Permission::ALL.iter().map(|each| each.as_str()).filter(|each| *each != "audit:read").collect();
    let key = app.key(Environment::Test, &others).await;
    let refused = with(&app, &key, "/v1/audit-log").await.expect(403).json();
    assert_eq!(refused["details"]["requiredPermission"], "audit:read");
    for role in Role::ALL {
        assert_eq!(role.permissions().allows(Permission::AuditRead), *role > Role::Viewer, "{role:?}");
    }
    let owner = person(&app, "ow@example.net", Role::Owner).await;
    let made = owner.submit("/developers/keys", &[("name", "logs"), ("may", "audit"), ("world", "test")]).await.expect(201);
    let key = made.text.split("svc_test_").nth(1).and_then(|rest| rest.split('<').next()).expect("a key");
    let key = format!("svc_test_{}", key.split('"').next().unwrap_or_default());
    with(&app, &key, "/v1/audit-log").await.expect(200);
    with(&app, &key, "/v1/messages").await.expect(403);
}

// holds: audit.read
#[tokio::test]
async fn the_log_is_read_in_pages() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        for n in 0..25 {
            carry_out(
                &app,
                Command::KeysCreate { name: format!("key {n}"), env: Environment::Test, permissions: Vec::new(), expires_at: None },
            )
            .await;
        }
        let (mut names, mut ids, mut cursor) = (Vec::new(), BTreeSet::new(), String::new());
        loop {
            let page = app.get(&format!("/v1/audit-log?resourceType=api_key&limit=10{cursor}")).await.expect(200).json();
            for entry in page["items"].as_array().expect("items") {
                names.extend(entry["after"]["name"].as_str().map(str::to_owned));
                ids.insert(entry["id"].to_string());
            }
            let Some(next) = page["nextCursor"].as_str() else { break };
            cursor = format!("&cursor={next}");
        }
        assert_eq!((names, ids.len()), ((0..25).rev().map(|n| format!("key {n}")).collect(), 25));
    }
}

// holds: audit.list
#[tokio::test]
async fn the_command_line_shows_the_log() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    carry_out(&app, Command::KeysCreate { name: "shop".into(), env: Environment::Test, permissions: Vec::new(), expires_at: None }).await;
    app.clock.advance(Duration::from_millis(1));
    let made = app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json();
    let id = made["id"].as_str().expect("an id");
    let list = async |more: &[&str]| {
        let arguments = [["audit", "list", "--key", &app.test_key].as_slice(), more].concat();
        terminal.type_in(&arguments).await
    };
    let table = list(&[]).await.expect(0).out;
    let lines: Vec<&str> = table.lines().collect();
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(head, ["TIME", "(UTC)", "NAME", "ACTION", "TYPE", "RESOURCE", "FROM", "ACTOR"]);
    assert!(lines[1].contains(id) && lines[1].contains("sender") && lines[2].contains("command line"), "{table}");
    let json = list(&["--type", "sender", "--resource", id, "--json"]).await.expect(0).json();
    assert_eq!((json.as_array().map(Vec::len), &json[0]["after"]["name"]), (Some(1), &json!("Shop")));
    assert_eq!(list(&["--actor", "command line", "--json", "--limit", "1"]).await.expect(0).json()[0]["action"], "create");
    assert_eq!(list(&["--until", "2001-01-01T00:00:00Z"]).await.expect(0).out.trim(), "nothing matches these options");
    let refused = list(&["--since", "yesterday"]).await.expect(2);
    assert!(refused.err.contains("must be a time such as"), "{refused:?}");
}
