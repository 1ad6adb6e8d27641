//! Endpoints for operators and load balancers.

use nuncio_testkit::TestApp;

#[tokio::test]
async fn health_readiness_and_documents() {
    let app = TestApp::start().await;
    app.send("GET", "/healthz", &[], None).await.expect(200);
    app.send("GET", "/readyz", &[], None).await.expect(200);
    app.send("GET", "/metrics", &[], None).await.expect(200);
    let document = app.send("GET", "/openapi.json", &[], None).await.expect(200).json();
    assert_eq!(document["openapi"].as_str().map(|v| &v[..3]), Some("3.1"));
    let docs = app.send("GET", "/docs/", &[], None).await.expect(200);
    assert!(docs.text.contains("swagger"), "{}", docs.text);
    // The content security policy forbids inline scripts and styles.
    assert!(!docs.text.contains("<style") && !docs.text.contains("style=") && !docs.text.contains("onload="), "{}", docs.text);
    assert!(docs.text.matches("<script").count() == docs.text.matches("<script src=\"./").count(), "{}", docs.text);
    for path in ["/docs/", "/docs", "/docs/swagger-ui-bundle.js", "/docs/nothing"] {
        let answer = app.send("GET", path, &[], None).await;
        let policy = answer.header("content-security-policy");
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self';") && policy.contains("frame-ancestors 'none'"),
            "{path}: {policy}"
        );
        assert_eq!((answer.header("x-frame-options"), answer.header("x-content-type-options")), ("DENY", "nosniff"), "{path}");
    }
}

#[tokio::test]
async fn a_node_that_cannot_show_that_it_lives_accepts_nothing() {
    let app = TestApp::start().await;
    app.clock.advance(std::time::Duration::from_secs(6));
    let refused = app.send("GET", "/readyz", &[], None).await.expect(503).json();
    assert!(refused["message"].as_str().is_some_and(|why| why.contains("has taken no heartbeat for 5 seconds")), "{refused}");
    let answer = app.post("/v1/messages", serde_json::json!({"to": "+34600111222", "text": "x"})).await.expect(503);
    assert!(!answer.header("retry-after").is_empty());
    app.node.tick().await.expect("a tick");
    app.post("/v1/messages", serde_json::json!({"to": "+34600111222", "text": "x"})).await.expect(202);
}

#[tokio::test]
async fn a_closed_store_answers_503() {
    let app = TestApp::start().await;
    app.get("/v1/me").await.expect(200);
    app.store().close().await;
    app.post("/v1/messages", serde_json::json!({"to": "+34600111222", "text": "x"})).await.expect(503);
    app.send("GET", "/readyz", &[], None).await.expect(503);
    app.send("GET", "/healthz", &[], None).await.expect(200);
}
