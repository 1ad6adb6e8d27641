//! The storage quota of an environment, and the command line's lists of both environments.

use std::time::Duration;

use nuncio::admin::{Command, CommandOutput, Request, run};
use nuncio_domain::{Clock as _, Environment};
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::broadcasts::{act, add, counts, finish, get, phones, text};

async fn ask(app: &TestApp, command: Command) -> CommandOutput {
    run(&app.node.core, Request { project: None, command }).await.expect("an answer")
}

async fn limit(app: &TestApp, max_bytes: Option<i64>) -> CommandOutput {
    ask(app, Command::StorageLimit { env: Environment::Test, max_bytes }).await
}

#[tokio::test]
async fn a_quota_refuses_what_there_is_no_room_for_and_leaves_the_key_free() {
    for app in TestApp::on_each().await {
        app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        assert_eq!(ask(&app, Command::StorageShow { env: Some(Environment::Test) }).await.json[0]["maxBytes"], json!(null));
        let set = limit(&app, Some(20_000)).await.json[0].clone();
        let stored = set["storedBytes"].as_i64().expect("counted");
        assert!(set["maxBytes"] == 20_000 && stored > 0 && stored < 1_000, "{set}");
        let large =
            |length: usize, key: &str| json!({"to": "a@example.org", "subject": "s", "text": "x".repeat(length), "idempotencyKey": key});
        app.post("/v1/messages", large(10_000, "a")).await.expect(202);
        let refused = app.post("/v1/messages", large(10_000, "b")).await.expect(507);
        assert_eq!((refused.header("x-should-retry"), refused.header("retry-after")), ("false", ""));
        let refused = refused.json();
        assert_eq!(refused["code"], "storage_quota_exceeded");
        let (kept, required) = (refused["details"]["storedBytes"].as_i64(), refused["details"]["requiredBytes"].as_i64());
        assert!(kept.is_some_and(|kept| kept > 10_000) && required.is_some_and(|bytes| bytes > 10_000), "{refused}");
        assert_eq!(refused["details"]["maxBytes"], 20_000);
        app.post("/v1/messages", large(10_000, "a")).await.expect(409);
        // Nothing of a rejected request is stored, however large.
        app.post("/v1/messages", large(90_000, "b")).await.expect(507);
        let shown = ask(&app, Command::StorageShow { env: None }).await;
        assert_eq!((&shown.json[1]["environment"], &shown.json[1]["storedBytes"]), (&json!("test"), &json!(kept)));
        assert!(shown.text.starts_with("live: no quota") && shown.text.contains("\ntest: "), "{}", shown.text);
        // The other environment is not affected, nor is this one with a larger quota or none.
        limit(&app, Some(200_000)).await;
        app.post("/v1/messages", large(10_000, "b")).await.expect(202);
        limit(&app, Some(1)).await;
        app.post("/v1/messages", large(1, "c")).await.expect(507);
        limit(&app, None).await;
        app.post("/v1/messages", large(1, "c")).await.expect(202);
    }
}

#[tokio::test]
async fn recipients_of_a_broadcast_wait_for_room() {
    for app in TestApp::on_each().await {
        app.send_message(json!({"to": "+34600111222", "text": "Hello from Acme"})).await;
        let one = limit(&app, Some(1)).await.json[0]["storedBytes"].as_i64().expect("counted");
        limit(&app, Some(one * 2)).await;
        let id = text(&app).await;
        add(&app, &id, phones(20)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let [_, pending, _, delivered, ..] = counts(&get(&app, &id).await);
        assert!((1..20).contains(&delivered) && pending == 20 - delivered, "{delivered} were delivered");
        // Each try costs a transaction and takes permits.
        let waits = app.store().read().await.expect("a reader").find_broadcast(app.tenant(), id.parse().expect("an id")).await;
        let due = waits.expect("read").expect("stored").due_at.expect("due");
        assert!(due.since(app.clock.now()) > Duration::from_secs(1), "{due}");
        limit(&app, None).await;
        app.advance(Duration::from_secs(10)).await;
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [20, 0, 0, 20, 0, 0]);
    }
}

#[tokio::test]
async fn lists_of_the_command_line_show_both_environments_and_say_which() {
    let app = TestApp::start().await;
    let lists: [fn(Option<Environment>) -> Command; 3] =
        [|env| Command::KeysList { env }, |env| Command::SendersList { env }, |env| Command::ConnectionsList { env }];
    for list in lists {
        let both = ask(&app, list(None)).await;
        let test = ask(&app, list(Some(Environment::Test))).await;
        let live = ask(&app, list(Some(Environment::Live))).await;
        let count = |answer: &CommandOutput| answer.json.as_array().expect("a list").len();
        assert!(count(&test) > 0 && count(&both) == count(&test) + count(&live), "{both:?}");
        let table = both.table.as_ref().expect("a table");
        assert_eq!((table.head[0].as_str(), table.rows.len()), ("ENV", count(&both)));
        for (row, item) in table.rows.iter().zip(both.json.as_array().expect("a list")) {
            assert_eq!(
                (row[0].as_str(), row[1].as_str()),
                (item["environment"].as_str().unwrap_or_default(), item["id"].as_str().unwrap_or_default())
            );
        }
        assert_eq!(test.json[0]["environment"], "test");
        assert_eq!(test.table.expect("a table").head[0], "ID", "one environment needs no column");
    }
    let numbers = ask(&app, Command::NumbersList { env: Some(Environment::Live) }).await;
    assert_eq!((numbers.json, numbers.text.starts_with("no numbers")), (json!([]), true));
}
