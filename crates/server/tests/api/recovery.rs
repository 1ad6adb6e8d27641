//! What goes wrong half-way: a start, an accept, an attempt. Nothing is lost by it, nothing goes out twice, and nobody else waits for it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

#[tokio::test]
async fn a_start_that_ends_while_it_holds_leaves_the_rest_to_be_held() {
    for backend in Backend::all() {
        let mut app = TestApp::on(backend).await;
        let mut ids = Vec::new();
        for n in 0..9 {
            let body = json!({"to": format!("+3460011122{n}"), "text": "x", "scheduledAt": "2026-01-02T00:00:00Z"});
            ids.push(app.send_message(body).await);
        }
        app.clock.advance(Duration::from_secs(7_200));
        app.faults.steps_left.store(4, Ordering::Release);
        assert!(app.try_crash().await.is_err());
        app.faults.steps_left.store(u32::MAX, Ordering::Release);
        app.crash().await;
        app.advance(Duration::from_secs(86_400)).await;
        for id in ids {
            assert_eq!(app.message(&id).await["heldReason"], "stale_database");
        }
    }
}
