//! Retention of data.

use std::time::Duration;

use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::json;

const DAY: Duration = Duration::from_secs(86_400);
/// Tables that grow with each message, and whose rows are deleted.
const GROWING: [&str; 7] = ["messages", "states", "log", "agenda", "receipts", "provider_refs", "deliveries"];

async fn app(backend: Backend) -> TestApp {
    let mut options = Options::default();
    options.dispatch.retention = Some(30 * DAY);
    TestApp::with(backend, options).await
}

/// Returns the size of the tables, without free space.
async fn size(app: &TestApp, backend: Backend) -> i64 {
    if backend == Backend::Postgres {
        for table in GROWING {
            app.sql(&format!("VACUUM {table}")).await;
        }
    }
    let sizes = app.store().read().await.expect("a reader").table_sizes().await.expect("sizes");
    sizes.iter().filter(|size| GROWING.contains(&size.table.as_str())).map(|size| size.bytes).sum()
}

// holds: retention.forgotten
#[tokio::test]
async fn after_ten_times_its_retention_a_database_is_no_larger() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (mut first, mut sizes) = (None, Vec::new());
        for _ in 0..10 {
            for n in 0..60 {
                let id = app.send_message(json!({"to": format!("+346001112{n:02}"), "text": "x".repeat(200)})).await;
                first.get_or_insert(id);
            }
            app.drain().await;
            sizes.push(size(&app, backend).await);
            app.advance(31 * DAY).await;
            app.node.dispatch.forget_old().await.expect("forgotten");
            app.node.purge().await.expect("purged");
            assert_eq!(app.get("/v1/messages").await.expect(200).json()["items"], json!([]));
            assert_eq!(app.get("/v1/events").await.expect(200).json()["items"], json!([]));
        }
        app.get(&format!("/v1/messages/{}", first.expect("a message"))).await.expect(404);
        // From the second on, the space of the first is reused. Where PostgreSQL puts its rows varies from round to round, by
        // up to an eighth in 40 rounds; kept rows would make the last five times the second.
        assert!(sizes[9] * 2 <= sizes[1] * 3, "{backend:?}: {sizes:?}");
        assert!(!app.get("/v1/contacts").await.expect(200).json()["items"].as_array().expect("items").is_empty(), "people stay");
    }
}

// holds: retention.kept
#[tokio::test]
async fn what_is_unfinished_or_has_changed_lately_is_not_forgotten() {
    for backend in Backend::all() {
        let app = app(backend).await;
        app.send_message(json!({"to": "+34600111221", "text": "x"})).await;
        app.drain().await;
        app.advance(10 * DAY).await;
        let scheduled = app.node.core.ids().clock.now().plus(25 * DAY);
        let waiting = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": scheduled})).await;
        app.advance(21 * DAY).await;
        app.node.dispatch.forget_old().await.expect("forgotten");
        assert_eq!(app.message(&waiting).await["status"], "scheduled");
        let listed = app.get("/v1/messages").await.expect(200).json();
        assert_eq!(listed["items"].as_array().map(Vec::len), Some(1), "{listed}");
        app.advance(4 * DAY).await;
        let message = app.message(&waiting).await;
        assert_eq!(message["status"], "delivered", "{message}");
        // It is then older than 30 days.
        app.advance(7 * DAY).await;
        app.node.dispatch.forget_old().await.expect("forgotten");
        assert_eq!(app.message(&waiting).await["status"], "delivered", "it has changed lately");
    }
}

#[tokio::test]
async fn what_cannot_be_forgotten_keeps_nothing_else() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.drain().await;
        app.advance(31 * DAY).await;
        app.sql("ALTER TABLE receipts RENAME TO receipts_elsewhere").await;
        app.node.dispatch.forget_old().await.expect_err("messages cannot be deleted");
        app.sql("ALTER TABLE receipts_elsewhere RENAME TO receipts").await;
        app.get(&format!("/v1/messages/{id}")).await.expect(200);
        assert_eq!(app.get("/v1/events").await.expect(200).json()["items"], json!([]), "the log was deleted");
    }
}
