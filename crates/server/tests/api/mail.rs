//! From an API request to a third-party mailbox.

use std::time::Duration;

use nuncio_domain::Channel;
use nuncio_testkit::{Backend, Mailbox, Options, TestApp, repository_file};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn app(backend: Backend, mailbox: &Mailbox) -> TestApp {
    let mut options = Options::default();
    options.dispatch.guard.allow_http = true;
    options.dispatch.guard.allow_loopback = true;
    let app = TestApp::with(backend, options).await;
    let settings = json!({"host": "127.0.0.1", "port": mailbox.port, "tls": "none", "from": "Ácme <hello@example.org>",
        "dkim_domain": "example.org", "dkim_selector": "s1"});
    let key = repository_file("crates/channels/smtp/tests/keys/dkim-rsa-pkcs1.pem");
    app.connect(Channel::Email, "smtp", settings, json!({"dkim_key": key})).await;
    app
}

async fn live(app: &TestApp, method: &str, path: &str, body: Option<Value>) -> Value {
    let answer = app.with_key(&app.live_key, method, path, body).await;
    assert!(answer.status.is_success(), "{}", answer.text);
    answer.json()["message"].clone()
}

async fn send(app: &TestApp, body: Value) -> String {
    live(app, "POST", "/v1/messages", Some(body)).await["id"].as_str().expect("an id").to_owned()
}

async fn message(app: &TestApp, id: &str) -> Value {
    live(app, "GET", &format!("/v1/messages/{id}"), None).await
}

fn signed() -> Mailbox {
    let key = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../channels/smtp/tests/keys/dkim-rsa-public.pem");
    Mailbox::start(&["--dkim", "s1", "example.org", key.to_str().expect("a path")])
}

/// Serves a file, once per connection.
async fn file_server(content: &'static [u8]) -> String {
    file_server_with("200 OK", content).await
}

/// The same with another status, and header fields.
async fn file_server_with(status: &'static str, content: &'static [u8]) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/invoice.pdf", listener.local_addr().expect("its address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 2_048]).await;
            let head = format!(
                "HTTP/1.1 {status}\r\nContent-Type: application/pdf\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                content.len()
            );
            let _ = stream.write_all(&[head.as_bytes(), content].concat()).await;
        }
    });
    url
}

// holds: messages.html, messages.reply_to, messages.attachments, messages.subject
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_a_whole_email_arrives_signed() {
    for backend in Backend::all() {
        let mut mailbox = signed();
        let app = app(backend, &mailbox).await;
        let url = file_server(b"%PDF-fetched").await;
        let body = json!({
            "to": "ada@example.net", "subject": "Grüße 🎉", "text": "Hallo", "htmlBody": "<b>Hallo</b>", "replyTo": "reply@example.org",
            "attachments": [{"filename": "a.txt", "content": "aGVsbG8="}, {"filename": "fáctura.pdf", "path": url}]
        });
        let id = send(&app, body).await;
        app.drain().await;
        let seen = mailbox.seen();
        assert_eq!(
            (&seen["dkim"], &seen["mailFrom"], &seen["rcptTo"]),
            (&json!(true), &json!("hello@example.org"), &json!(["ada@example.net"]))
        );
        assert_eq!(seen["structure"], "multipart/mixed(multipart/alternative(text/plain,text/html),text/plain,application/pdf)");
        let header =
            |name: &str| seen["headers"].as_array().into_iter().flatten().find(|h| h[0] == name).map(|h| h[1].clone()).unwrap_or_default();
        assert_eq!((header("Subject"), header("Reply-To")), (json!("Grüße 🎉"), json!("reply@example.org")));
        assert!(header("Message-ID").as_str().is_some_and(|m| m.contains(&id)), "{seen}");
        assert_eq!((seen["parts"][3]["filename"].as_str(), seen["parts"][3]["size"].as_u64()), (Some("fáctura.pdf"), Some(12)));
        let message = message(&app, &id).await;
        assert_eq!((message["status"].as_str(), message["from"].as_str()), (Some("sent"), Some("Ácme <hello@example.org>")), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_refusals_defer_or_fail_with_their_reason() {
    let mailbox = signed();
    let app = app(Backend::Sqlite, &mailbox).await;
    let refused = send(&app, json!({"to": "nouser@example.net", "subject": "s", "text": "x"})).await;
    let grey = send(&app, json!({"to": "greyonce@example.net", "subject": "s", "text": "x"})).await;
    app.drain().await;
    let failed = message(&app, &refused).await;
    assert_eq!((failed["status"].as_str(), failed["errorCode"].as_str()), (Some("failed"), Some("invalid_recipient")));
    assert!(failed["attempts"][0]["providerErrorCode"].as_str().is_some_and(|c| c.contains("550")), "{failed}");
    assert_eq!(message(&app, &grey).await["status"], "sending");
    app.advance(Duration::from_secs(7)).await;
    let sent = message(&app, &grey).await;
    assert_eq!((sent["status"].as_str(), sent["attempts"].as_array().map(Vec::len)), (Some("sent"), Some(2)), "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_a_lost_answer_is_unknown_and_its_resend_is_marked() {
    let mailbox = signed();
    let app = app(Backend::Sqlite, &mailbox).await;
    let id = send(&app, json!({"to": "drop@example.net", "subject": "s", "text": "x", "onUnknown": "hold"})).await;
    app.drain().await;
    let held = message(&app, &id).await;
    assert_eq!((held["attempts"][0]["status"].as_str(), held["heldReason"].as_str()), (Some("unknown"), Some("unknown_outcome")), "{held}");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_a_vanished_server_is_waited_for() {
    let mailbox = signed();
    let app = app(Backend::Sqlite, &mailbox).await;
    let port = mailbox.port.to_string();
    drop(mailbox);
    let id = send(&app, json!({"to": "ada@example.net", "subject": "s", "text": "x"})).await;
    app.advance(Duration::from_secs(20)).await;
    assert_eq!(message(&app, &id).await["status"], "sending");
    let mut mailbox = Mailbox::start(&["--port", &port]);
    app.advance(Duration::from_secs(120)).await;
    assert_eq!(mailbox.seen()["rcptTo"], json!(["ada@example.net"]));
    assert_eq!(message(&app, &id).await["status"], "sent");
}

/// A server that cannot be reached may recover, but not for days.
#[tokio::test]
async fn an_attachment_that_stays_out_of_reach_fails_the_message() {
    let mut options = Options::default();
    options.dispatch.guard.allow_http = true;
    options.dispatch.guard.allow_loopback = true;
    let app = TestApp::with(Backend::Sqlite, options).await;
    let attachments = json!([{"filename": "a", "path": "http://127.0.0.1:9/a"}]);
    let id = app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "x", "attachments": attachments})).await;
    app.advance(Duration::from_secs(60)).await;
    assert_eq!(app.message(&id).await["status"], "sending");
    for _ in 0..5 {
        app.advance(Duration::from_secs(20 * 60)).await;
    }
    let message = app.message(&id).await;
    assert_eq!((message["status"].as_str(), message["errorCode"].as_str()), (Some("failed"), Some("attachment_unavailable")), "{message}");
}

/// A recipient cannot open a file that is compressed under another name.
#[tokio::test]
async fn an_attachment_that_comes_compressed_or_empty_fails_the_message() {
    let mut options = Options::default();
    options.dispatch.guard.allow_http = true;
    options.dispatch.guard.allow_loopback = true;
    let app = TestApp::with(Backend::Sqlite, options).await;
    for (head, why) in [("200 OK\r\nContent-Encoding: gzip", "Content-Encoding: \"gzip\""), ("204 No Content", "status 204")] {
        let url = file_server_with(head, b"").await;
        let attachments = json!([{"filename": "a", "path": url}]);
        let id = app.send_message(json!({"to": "ada@example.net", "subject": "s", "text": "x", "attachments": attachments})).await;
        app.drain().await;
        let message = app.message(&id).await;
        assert_eq!(
            (message["status"].as_str(), message["errorCode"].as_str()),
            (Some("failed"), Some("attachment_unavailable")),
            "{message}"
        );
        assert!(message["errorMessage"].as_str().is_some_and(|text| text.contains(why)), "{message}");
    }
}

#[tokio::test]
async fn an_attachment_that_may_not_be_fetched_fails_the_message() {
    let app = TestApp::start().await;
    let body =
        json!({"to": "ada@example.net", "subject": "s", "text": "x", "attachments": [{"filename": "a", "path": "https://127.0.0.1:9/a"}]});
    let id = app.send_message(body).await;
    app.drain().await;
    let message = app.message(&id).await;
    assert_eq!((message["status"].as_str(), message["errorCode"].as_str()), (Some("failed"), Some("attachment_unavailable")), "{message}");
}
