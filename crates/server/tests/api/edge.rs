//! Limits against hostile clients: memory and minimum rate of bodies, short errors, wrong keys rejected without a query.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::{Body, Bytes};
use futures::{StreamExt as _, stream};
use http_body_util::BodyExt as _;
use nuncio_api::Pace;
use nuncio_channel::scripted::{Reply, Scripted};
use nuncio_domain::{Channel, limits};
use nuncio_testkit::{Backend, Options, TestApp, TestResponse};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

const MB: usize = 1024 * 1024;

/// Creates a live connection with a callback; returns its path.
async fn kannel(app: &TestApp) -> (Scripted, String) {
    let gateway = Scripted::start(|_| Reply::text(202, "0: Accepted for delivery")).await;
    let settings = json!({"url": format!("{}/cgi-bin/sendsms", gateway.base()), "username": "tester"});
    app.connect(Channel::Sms, "kannel", settings, json!({"password": "foobar", "callback_secret": "a-word-of-our-own"})).await;
    let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
    let sender = world.default_sender().expect("a sender").id;
    let connection = world.connection(sender, Channel::Sms).expect("a connection").id;
    (gateway, format!("/providers/kannel/{connection}"))
}

/// Returns a body that stops after its beginning.
fn stuck(begins: usize) -> Body {
    let begins = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from(vec![b' '; begins]))]);
    Body::from_stream(begins.chain(stream::pending()))
}

async fn answer(response: axum::http::Response<Body>) -> TestResponse {
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.expect("a body").to_bytes();
    TestResponse { status: parts.status, headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() }
}

/// Returns all routes that read a body, with their credentials.
async fn routes(app: &TestApp) -> (Scripted, Vec<(String, Vec<(&'static str, String)>)>) {
    let (gateway, callback) = kannel(app).await;
    let invitation = app.post("/v1/invitations", json!({})).await.expect(201).json()["invitation"]["token"].clone();
    let auth = ("authorization", format!("Bearer {}", app.test_key));
    let (json, form) = (("content-type", "application/json".to_owned()), ("content-type", "application/x-www-form-urlencoded".to_owned()));
    let all = vec![
        ("/v1/messages".to_owned(), vec![auth.clone(), json.clone()]),
        ("/v1/contacts".to_owned(), vec![auth.clone(), json.clone()]),
        ("/v1/webhook/secret".to_owned(), vec![auth, json]),
        (callback, vec![form.clone()]),
        (format!("/invite/{}", invitation.as_str().expect("a token")), vec![form]),
    ];
    (gateway, all)
}

async fn post(app: &TestApp, (path, headers): &(String, Vec<(&'static str, String)>), body: Body) -> TestResponse {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    answer(app.open("POST", path, &headers, body).await).await
}

// holds: bodies.rate
#[tokio::test]
async fn a_body_that_comes_too_slowly_is_not_waited_for() {
    let pace = Pace { grace: Duration::from_millis(20), bytes_per_second: 1_000_000 };
    let app = TestApp::with(Backend::Sqlite, Options { pace, ..Options::default() }).await;
    let (_gateway, routes) = routes(&app).await;
    for route in &routes {
        let answered = tokio::time::timeout(Duration::from_secs(20), post(&app, route, stuck(10))).await.expect("an answer");
        let status = if route.0.starts_with("/invite") { 503 } else { 408 };
        assert_eq!(answered.status.as_u16(), status, "{} {}", route.0, answered.text);
        assert_eq!(answered.header("connection"), "close", "what is left of it stands before the next request");
        if status == 408 {
            assert_eq!((answered.json()["code"].as_str(), answered.header("x-should-retry")), (Some("request_timeout"), ""));
        }
    }
}

// holds: bodies.budget
#[tokio::test]
async fn every_body_is_read_under_one_budget() {
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: MB, ..Options::default() }).await;
    let (_gateway, routes) = routes(&app).await;
    for route in &routes {
        let answered = post(&app, route, stuck(MB)).await;
        assert_eq!(answered.status.as_u16(), 503, "{} {}", route.0, answered.text);
    }
    // Memory held by slow bodies is unavailable to others: many bodies, each below its limit.
    let held: Vec<_> = (0..60).map(|_| post(&app, &routes[3], stuck(10_000))).collect();
    let slow = crate::at_once(held);
    tokio::pin!(slow);
    assert!(futures::poll!(&mut slow).is_pending());
    tokio::task::yield_now().await;
    assert!(tokio::time::timeout(Duration::from_secs(1), &mut slow).await.is_err(), "they are still under way");
    let refused = post(&app, &routes[3], Body::from(vec![b' '; 10_000])).await.expect(503);
    assert_eq!(refused.header("retry-after"), "1");
    let message = json!({"to": "+34600111222", "text": "x"});
    app.post("/v1/messages", message).await.expect(202);
}

#[tokio::test]
async fn an_answer_counts_until_it_is_taken() {
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: 4 * MB, ..Options::default() }).await;
    for n in 0..4 {
        app.send_message(json!({"to": "a@example.org", "subject": n.to_string(), "text": "x".repeat(200_000)})).await;
    }
    let auth = format!("Bearer {}", app.test_key);
    let mut held = Vec::new();
    let refused = loop {
        let response = app.open("GET", "/v1/messages", &[("authorization", &auth)], Vec::new()).await;
        if response.status() != 200 {
            break answer(response).await;
        }
        held.push(response);
        assert!(held.len() < 20, "there is no end of it");
    };
    assert_eq!(refused.expect(503).json()["code"], "unavailable");
    app.send("GET", "/readyz", &[], None).await.expect(200);
    drop(held);
    app.get("/v1/messages").await.expect(200);
}

// holds: providers.unknown
#[tokio::test]
async fn no_body_is_read_for_what_is_not_there() {
    let app = TestApp::start().await;
    let (_gateway, callback) = kannel(&app).await;
    let form = [("content-type", "application/x-www-form-urlencoded")];
    for path in [
        callback.replace("/kannel/", "/twilio/"),
        "/providers/kannel/cnx_01hgw2bbg0e9tatjpp9vyrkcyk".to_owned(),
        "/providers/kannel/nonsense/rest".to_owned(),
        "/invite/nonsense".to_owned(),
        "/unsubscribe/nonsense".to_owned(),
        "/nowhere".to_owned(),
    ] {
        // A body that never arrives: reading it would block.
        let response = tokio::time::timeout(Duration::from_secs(5), app.open("POST", &path, &form, stuck(10))).await;
        let answered = answer(response.expect("an answer")).await;
        assert_eq!((answered.status.as_u16(), answered.header("connection")), (404, "close"), "{path}");
    }
    for headers in [&[][..], &[("authorization", "Bearer wrong")]] {
        let response = tokio::time::timeout(Duration::from_secs(5), app.open("POST", "/v1/messages", headers, stuck(10))).await;
        assert_eq!(response.expect("an answer").status(), 401);
    }
}

/// Sends a request and reads its response: status, whether the connection stays open, body.
async fn exchange(client: &mut BufReader<TcpStream>, head: &str, body: &[u8]) -> std::io::Result<(u16, bool, String)> {
    let request = format!("{head}\r\nHost: a\r\nContent-Length: {}\r\n\r\n", body.len());
    client.write_all(request.as_bytes()).await?;
    let _ = client.write_all(body).await; // after a response, the server may have closed
    let (mut status, mut length, mut goes_on) = (0, 0, true);
    loop {
        let mut line = String::new();
        if tokio::io::AsyncBufReadExt::read_line(client, &mut line).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_ascii_lowercase();
        match line.split_once(": ") {
            Some(("content-length", value)) => length = value.parse().expect("a length"),
            Some(("connection", "close")) => goes_on = false,
            None if line.is_empty() => break,
            None => status = line.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    client.read_exact(&mut body).await?;
    Ok((status, goes_on, String::from_utf8_lossy(&body).into_owned()))
}

async fn connect(to: SocketAddr) -> BufReader<TcpStream> {
    BufReader::new(TcpStream::connect(to).await.expect("a connection"))
}

// holds: connection.reuse
#[tokio::test]
async fn a_request_that_is_answered_early_does_not_break_the_next_one() {
    let app = TestApp::start().await;
    let (_gateway, callback) = kannel(&app).await;
    let address = app.listen().await;
    let key = format!("Authorization: Bearer {}", app.test_key);
    let json = "Content-Type: application/json";
    let early = [
        ("POST /v1/messages HTTP/1.1".to_owned(), 401),
        (format!("POST /v1/messages HTTP/1.1\r\n{key}\r\nContent-Type: text/plain"), 415),
        (format!("POST /v1/messages HTTP/1.1\r\n{key}\r\nAccept: text/xml\r\n{json}"), 406),
        (format!("DELETE /v1/messages HTTP/1.1\r\n{key}"), 405),
        ("POST /nowhere HTTP/1.1".to_owned(), 404),
        ("POST /providers/kannel/x HTTP/1.1".to_owned(), 404),
        ("POST /unsubscribe/x HTTP/1.1".to_owned(), 404),
        ("POST /invite/x HTTP/1.1".to_owned(), 404),
        (format!("POST {} HTTP/1.1", callback.replace("kannel", "twilio")), 404),
        ("POST /healthz HTTP/1.1".to_owned(), 405),
    ];
    let mut client = connect(address).await;
    for (head, expected) in &early {
        for size in [1, 4_000, 60_000] {
            let (status, goes_on, text) = exchange(&mut client, head, &vec![b'x'; size]).await.expect("an answer");
            assert_eq!((status, goes_on), (*expected, true), "{head} {text}");
            let me = exchange(&mut client, &format!("GET /v1/me HTTP/1.1\r\n{key}"), b"").await.expect("the next one is answered");
            assert_eq!(me.0, 200, "after {head}: {}", me.2);
        }
    }
    // Too large to read: the response closes the connection, and arrives whole although the client still sends.
    for (head, expected) in &early {
        let (status, goes_on, text) = exchange(&mut connect(address).await, head, &vec![b'x'; 4 * MB]).await.expect("an answer");
        assert_eq!((status, goes_on), (*expected, false), "{head} {text}");
    }
    // A client that waits for `100 Continue` does not get it.
    let head = format!("POST /v1/messages HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 10\r\nHost: a\r\n{json}\r\n\r\n");
    let mut client = TcpStream::connect(address).await.expect("a connection");
    client.write_all(head.as_bytes()).await.expect("written");
    let mut all = String::new();
    client.read_to_string(&mut all).await.expect("an answer, and the end");
    assert!(all.starts_with("HTTP/1.1 401") && all.to_ascii_lowercase().contains("connection: close"), "{all}");
}

#[tokio::test]
async fn a_request_that_does_not_name_its_host_once_is_refused() {
    let address = TestApp::start().await.listen().await;
    for (head, status) in [
        ("GET /healthz HTTP/1.1\r\nHost: a\r\n", 200),
        ("GET /healthz HTTP/1.0\r\n", 200),
        ("GET /healthz HTTP/1.1\r\n", 400),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400),
        ("GET http://a/v1/me HTTP/1.1\r\n", 400),
    ] {
        let mut client = TcpStream::connect(address).await.expect("a connection");
        client.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).await.expect("written");
        let mut all = String::new();
        client.read_to_string(&mut all).await.expect("an answer, and the end");
        assert!(all.starts_with(&format!("HTTP/1.1 {status}")) || all.starts_with(&format!("HTTP/1.0 {status}")), "{head}: {all}");
        assert!(all.contains("x-request-id: "), "{all}");
        assert_eq!(all.contains(r#""path":"header.Host""#), status == 400, "{all}");
    }
}

/// Checks that nothing in a response is too long.
fn assert_short(answer: &TestResponse, place: &str) {
    assert!(answer.text.len() <= 64 * 1024, "{place}: {} bytes", answer.text.len());
    for fault in answer.json()["details"]["errors"].as_array().into_iter().flatten() {
        let message = fault["message"].as_str().expect("a message");
        assert!(!message.contains(&"\u{1}".repeat(200)) && !message.contains(&"u{1}\\".repeat(101)), "{place}: {message}");
        assert!(message.chars().count() < 1_500, "{place}: {message}");
    }
}

// holds: errors.short
#[tokio::test]
async fn however_long_a_value_is_the_answer_is_short() {
    let app = TestApp::start().await;
    let plain = json!({"to": "+34600111222", "text": "x"});
    for (size, c) in [(10_000, "x"), (10_000, "\u{1}"), (MB, "\u{1}"), (MB, "\u{10ffff}")] {
        let value = c.repeat(size / c.len());
        for (field, more) in [
            ("voiceLanguage", json!({"channel": "voice"})),
            ("to", json!({})),
            ("channel", json!({})),
            ("messageType", json!({})),
            ("onUnknown", json!({})),
            ("scheduledAt", json!({})),
            ("replyTo", json!({"channel": "email", "to": "a@example.org", "subject": "s"})),
            ("subject", json!({"channel": "email", "to": "a@example.org"})),
            ("idempotencyKey", json!({})),
            ("content", json!({})),
        ] {
            let mut body = plain.clone();
            more.as_object().into_iter().flatten().for_each(|(name, value)| body[name] = value.clone());
            body[field] = value.as_str().into();
            let answered = app.post("/v1/messages", body).await.expect(400);
            assert_short(&answered, field);
        }
        let many = json!({"to": "+34600111222", "text": "x", "channel": "whatsapp", "messageType": "buttons",
            "content": {"buttons": vec![json!({"id": value, "title": value}); 3]}});
        assert_short(&app.post("/v1/messages", many).await.expect(400), "content.buttons");
        assert_short(&app.post("/v1/messages", json!({"to": "+34600111222", value.as_str(): 1})).await.expect(400), "an unknown name");
        if size >= MB {
            continue;
        }
        for (path, body) in [
            ("/v1/contacts", json!({"channels": [{"channel": value, "identifier": value, "countryCode": value}]})),
            ("/v1/senders", json!({"name": "s", "phoneNumber": value, "webhookUrl": value, "allowedCountries": [value]})),
            ("/v1/suppressions", json!({"identifier": value, "senderId": value})),
            ("/v1/templates", json!({"name": value, "language": value, "body": value, "variables": [value]})),
            ("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x", "senderId": value})),
            ("/v1/invitations", json!({"clientEmail": value, "clientPhone": value, "allowedPhoneCountries": [value]})),
            ("/v1/introspect/phone", json!({"phoneNumber": value})),
        ] {
            let answered = app.post(path, body).await;
            assert!(answered.status.is_client_error(), "{path} {}", answered.status);
            assert_short(&answered, path);
        }
    }
}

#[tokio::test]
async fn a_string_is_as_long_as_the_document_says() {
    let app = TestApp::start().await;
    let long = "x".repeat(limits::STRING + 1);
    let sent = |content: Value| json!({"to": "+34600111222", "channel": "whatsapp", "messageType": "image", "content": content});
    let body = sent(json!({"mediaUrl": "https://example.org/a.png", "mimeType": long}));
    let refused = app.post("/v1/messages", body).await.expect(400).json();
    assert_eq!(refused["details"]["errors"][0]["path"], "content.mimeType");
    assert_eq!(refused["details"]["errors"][0]["message"], "has 2049 characters; must have at most 2048");
    let text = json!({"to": "a@example.org", "subject": "s", "text": "é".repeat(100_000)});
    app.post("/v1/messages", text).await.expect(202);
    // Truncating the value of an error does not hide what is wrong with it.
    let nul = json!({"to": "a@example.org", "subject": "s", "text": format!("{}\0", "x".repeat(100_000))});
    let refused = app.post("/v1/messages", nul).await.expect(400).json();
    assert_eq!(refused["details"]["errors"], json!([{"path": "text", "message": "must not contain U+0000"}]));
    let auth = format!("Bearer {}", app.test_key);
    let name = "n".repeat(5_000);
    let unknown = json!({"to": "a@example.org", "subject": "s", "text": "x".repeat(5_000), name.as_str(): 1});
    app.send("POST", "/v1/messages", &[("authorization", &auth), ("prefer", "handling=lenient")], Some(unknown)).await.expect(202);
}

// holds: rate.headers
#[tokio::test]
async fn every_answer_to_a_caller_tells_of_the_rate_limit() {
    let app = TestApp::with(Backend::Sqlite, Options { per_minute: 60_000, burst: 1_000, ..Options::default() }).await;
    let narrow = app.key(nuncio_domain::Environment::Test, &["messages:read"]).await;
    let auth = |key: &str| format!("Bearer {key}");
    let mut before = 1_000;
    for (method, path, key, status) in [
        ("GET", "/v1/me", &app.test_key, 200),
        ("GET", "/v1/me?x=1", &app.test_key, 400),
        ("POST", "/v1/messages", &app.test_key, 415),
        ("POST", "/v1/messages", &narrow, 403),
        ("GET", "/v1/messages/msg_x", &app.test_key, 404),
        ("GET", "/v1/nowhere", &app.test_key, 404),
        ("DELETE", "/v1/messages", &app.test_key, 405),
    ] {
        let answered = app.send(method, path, &[("authorization", &auth(key))], None).await.expect(status);
        let left: u32 = answered.header("x-ratelimit-remaining").parse().expect("a number");
        assert!(left < before, "{method} {path}: each counts");
        assert_eq!(answered.header("x-ratelimit-limit"), "60000");
        assert!(!answered.header("x-ratelimit-reset").is_empty());
        before = left;
    }
    app.send("GET", "/v1/nowhere", &[], None).await.expect(404);
    app.send("GET", "/v1/nowhere", &[("authorization", "Bearer x")], None).await.expect(401);
}

/// Returns the number of transactions of a request.
async fn asked(app: &TestApp, method: &str, path: &str, key: &str, status: u16) -> u32 {
    let before = app.faults.asked.load(Ordering::Acquire);
    let auth = format!("Bearer {key}");
    let with_key = [("authorization", auth.as_str())];
    let headers = if key.is_empty() { &[][..] } else { &with_key[..] };
    app.send(method, path, headers, None).await.expect(status);
    app.faults.asked.load(Ordering::Acquire) - before
}

/// Returns a well-formed but unknown key.
fn unknown_key(n: u64) -> String {
    nuncio_domain::key::generate(nuncio_domain::Environment::Test, &nuncio_testkit::SeededEntropy::new(n)).expose().clone()
}

// holds: auth.guesses
#[tokio::test]
async fn who_has_no_guesses_left_does_not_reach_the_database() {
    for app in TestApp::on_each().await {
        app.get("/v1/me").await.expect(200);
        for n in 0..u64::from(limits::GUESSES) {
            assert_eq!(asked(&app, "GET", "/v1/me", &unknown_key(1_000 + n), 401).await, 1);
        }
        for n in 0..10 {
            assert_eq!(asked(&app, "GET", "/v1/me", &unknown_key(2_000 + n), 429).await, 0);
            assert_eq!(asked(&app, "GET", "/v1/nowhere", &unknown_key(2_000 + n), 429).await, 0, "no way around it");
        }
        // The same address, as behind a proxy: a key that was valid before is still looked up.
        app.clock.advance(Duration::from_millis(999));
        app.get("/v1/me").await.expect(200);
        let everything = nuncio_domain::Permissions::parse(std::iter::empty()).expect("permissions");
        let elsewhere = app.another_node().await.core;
        let made = elsewhere.keys().create(app.tenant(), nuncio_domain::Environment::Test, "a key", everything, None).await.expect("a key");
        let fresh = made.secret.expose().clone();
        app.send("GET", "/v1/me", &[("authorization", &format!("Bearer {fresh}"))], None).await.expect(429);
        app.clock.advance(Duration::from_secs(1));
        app.send("GET", "/v1/me", &[("authorization", &format!("Bearer {fresh}"))], None).await.expect(200);
        // A revoked key counts as a wrong one.
        let id = app.node.core.keys().authenticate(&fresh).await.expect("a caller").key;
        app.node.core.keys().revoke(app.tenant(), id).await.expect("revoked");
        assert!(!app.node.core.keys().knows(&fresh));
    }
}

// holds: auth.guesses
#[tokio::test]
async fn guesses_at_links_do_not_reach_the_database() {
    for app in TestApp::on_each().await {
        let invitation = app.post("/v1/invitations", json!({})).await.expect(201).json()["invitation"]["token"].clone();
        let good = format!("/invite/{}", invitation.as_str().expect("a token"));
        let mut forged = good.clone();
        let other = if forged.as_bytes()[10] == b'A' { "B" } else { "A" };
        forged.replace_range(10..11, other);
        let id = app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "x"})).await;
        app.drain().await;
        let message = id.parse().expect("an id");
        let leave = format!("/unsubscribe/{}", app.node.core.mail_tokens().unsubscribe(app.tenant(), message));
        let elsewhere = nuncio_domain::TenantId(app.tenant().0 + 1_000);
        let dead = format!("/unsubscribe/{}", app.node.core.mail_tokens().unsubscribe(elsewhere, message));
        assert_eq!(asked(&app, "GET", &dead, "", 404).await, 1, "it was made here");
        for n in 0..100 {
            let status = if n < limits::GUESSES - 1 { 404 } else { 429 };
            let path = &[forged.clone(), dead.clone(), leave.replace("/unsubscribe/", "/invite/")][n as usize % 3];
            assert_eq!(asked(&app, "GET", path, "", status).await, 0, "{n} {path}");
        }
        // A valid link works, whoever shares the address.
        app.send("GET", &good, &[], None).await.expect(200);
        app.send("GET", &leave, &[], None).await.expect(200);
    }
}

// holds: auth.guesses
#[tokio::test]
async fn guesses_at_connections_do_not_reach_the_database() {
    for app in TestApp::on_each().await {
        let (_gateway, callback) = kannel(&app).await;
        let callback = format!("{callback}?key=wrong&from=1&text=x");
        let call = async |path: &str| {
            let before = app.faults.asked.load(Ordering::Acquire);
            let status = app.raw("GET", path, &[], Vec::new()).await.status.as_u16();
            (status, app.faults.asked.load(Ordering::Acquire) - before)
        };
        assert_eq!(call(&callback).await.0, 401, "it is there");
        for n in 0..100 {
            let id: nuncio_domain::ConnectionId = app.node.core.ids().next();
            let expected = if n < limits::GUESSES { (404, 1) } else { (429, 0) };
            assert_eq!(call(&format!("/providers/kannel/{id}")).await, expected, "{n}");
        }
        assert_eq!(call(&callback).await.0, 401, "a provider that called before is heard");
        app.get("/v1/me").await.expect(200);
    }
}
