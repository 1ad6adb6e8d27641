//! Properties of all responses.

use nuncio_domain::{Environment, Permissions};
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::{Value, json};

/// Returns objects in `value` updated before their creation.
fn changed_before_made(value: &Value) -> Vec<Value> {
    let mut found: Vec<Value> = match value {
        Value::Array(items) => items.iter().flat_map(changed_before_made).collect(),
        Value::Object(members) => members.values().flat_map(changed_before_made).collect(),
        _ => Vec::new(),
    };
    // The format of times sorts as text.
    if let (Some(made), Some(changed)) = (value["createdAt"].as_str(), value["updatedAt"].as_str())
        && changed < made
    {
        found.push(value.clone());
    }
    found
}

#[tokio::test]
async fn nothing_was_changed_before_it_was_made() {
    let app = TestApp::start().await;
    app.clock.tick(std::time::Duration::from_millis(1));
    let project = app.node.core.projects().create("another", None).await.expect("a project");
    let everything = Permissions::parse([]).expect("permissions");
    let key = app.node.core.keys().create(project.test, Environment::Test, "a key", everything, None).await.expect("a key");
    let auth = format!("Bearer {}", key.secret.expose());
    let born = app.send("GET", "/v1/senders", &[("authorization", &auth)], None).await.expect(200).json();
    assert!(born["items"][0]["createdAt"].is_string() && changed_before_made(&born).is_empty(), "{born}");
    for (path, body) in [
        ("/v1/senders", json!({"name": "Desk"})),
        ("/v1/messages", json!({"to": "+34600111222", "text": "x"})),
        ("/v1/contacts", json!({"channels": [{"channel": "telegram", "identifier": "4711"}]})),
        ("/v1/templates", json!({"name": "order_ready", "language": "en", "body": "Ready."})),
        ("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})),
        ("/v1/invitations", json!({})),
        ("/v1/phone-numbers", json!({"phoneNumber": "+12025550142"})),
    ] {
        let answer = app.post(path, body).await;
        assert!(answer.status.is_success(), "{path}: {}", answer.text);
        assert_eq!(changed_before_made(&answer.json()), Vec::<Value>::new(), "{path}");
        let listed = app.get(path).await.expect(200).json();
        assert_eq!(changed_before_made(&listed), Vec::<Value>::new(), "{path}");
    }
}

// holds: request.id
#[tokio::test]
async fn request_ids_are_taken_or_made() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let given = app.send("GET", "/v1/me", &[("authorization", &auth), ("x-request-id", "abc-123")], None).await;
    assert_eq!(given.header("x-request-id"), "abc-123");
    for bad in ["with space", "", &"x".repeat(129)] {
        let made = app.send("GET", "/v1/me", &[("authorization", &auth), ("x-request-id", bad)], None).await;
        assert!(!made.header("x-request-id").is_empty() && made.header("x-request-id") != bad, "{bad}");
    }
    assert!(!app.send("GET", "/nowhere", &[], None).await.header("x-request-id").is_empty());
}

// holds: errors.shape, errors.method, errors.accept, errors.media_type, errors.should_retry
#[tokio::test]
async fn what_is_not_there_or_not_allowed_is_told_in_the_same_shape() {
    let app = TestApp::start().await;
    let missing = app.get("/v1/nowhere").await.expect(404);
    assert_eq!(missing.json()["code"], "not_found");
    let wrong = app.request("DELETE", "/v1/messages", None).await.expect(405);
    assert_eq!(wrong.json()["code"], "method_not_allowed");
    assert!(wrong.header("allow").contains("POST"), "{}", wrong.header("allow"));
    let auth = format!("Bearer {}", app.test_key);
    let xml = app.send("GET", "/v1/me", &[("authorization", &auth), ("accept", "text/xml")], None).await.expect(406);
    assert_eq!(xml.json()["code"], "not_acceptable");
    let text =
        app.raw("POST", "/v1/messages", &[("authorization", &auth), ("content-type", "text/plain")], b"{}".to_vec()).await.expect(415);
    assert_eq!(text.json()["code"], "unsupported_media_type");
    let unauthorized = app.send("GET", "/v1/me", &[], None).await.expect(401);
    assert_eq!(unauthorized.header("www-authenticate"), "Bearer");
    for answer in [missing, wrong, xml, text, unauthorized] {
        assert_eq!(answer.header("x-should-retry"), "false");
    }
}

// holds: rate.limit, rate.headers
#[tokio::test]
async fn the_rate_limit_is_a_bucket_per_world() {
    let app = TestApp::with(Backend::Sqlite, Options { per_minute: 60, burst: 3, ..Options::default() }).await;
    for left in ["2", "1", "0"] {
        let answer = app.get("/v1/me").await.expect(200);
        assert_eq!((answer.header("x-ratelimit-remaining"), answer.header("x-ratelimit-limit")), (left, "60"));
    }
    let refused = app.get("/v1/me").await.expect(429);
    assert_eq!((refused.header("retry-after"), refused.json()["error"]["code"].as_str()), ("1", Some("rate_limit_exceeded")));
    assert_eq!(refused.header("x-should-retry"), "");
    app.with_key(&app.live_key, "GET", "/v1/me", None).await.expect(200);
    app.clock.advance(std::time::Duration::from_secs(1));
    app.get("/v1/me").await.expect(200);
}

// holds: rate.headers, auth.guesses
#[tokio::test]
async fn who_has_no_environment_learns_of_the_limit_of_failed_authentications() {
    let app = TestApp::with(Backend::Sqlite, Options { per_minute: 60_000, burst: 1_000, ..Options::default() }).await;
    let wrong = async |authorization: &str| app.send("GET", "/v1/me", &[("authorization", authorization)], None).await;
    let left = |answer: &nuncio_testkit::TestResponse| {
        assert_eq!(answer.header("x-ratelimit-limit"), "60");
        assert!(!answer.header("x-ratelimit-reset").is_empty());
        answer.header("x-ratelimit-remaining").parse::<u32>().expect("a number")
    };
    let bare = app.send("GET", "/v1/me", &[], None).await.expect(401);
    assert_eq!(left(&bare), 60, "without a key, nothing was guessed");
    for expected in (0..60).rev() {
        assert_eq!(left(&wrong("Bearer x").await.expect(401)), expected);
    }
    let refused = wrong("Bearer x").await.expect(429);
    assert_eq!((left(&refused), refused.header("retry-after")), (0, "1"));
    let own = app.get("/v1/me").await.expect(200);
    assert_eq!((own.header("x-ratelimit-limit"), own.header("x-ratelimit-remaining")), ("60000", "999"), "the key has its own bucket");
}

// holds: rate.headers
#[tokio::test]
async fn without_a_limit_there_are_no_headers_of_one() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/v1/me").await.expect(200).header("x-ratelimit-limit"), "");
}

#[tokio::test]
async fn large_bodies_share_a_budget() {
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: 300 * 1024, ..Options::default() }).await;
    let body = json!({"to": "a@example.org", "subject": "s", "text": "x".repeat(400 * 1024)});
    let answer = app.post("/v1/messages", body).await.expect(503);
    assert_eq!(answer.json()["code"], "unavailable");
    app.post("/v1/messages", json!({"to": "+34600111222", "text": "x"})).await.expect(202);
}
