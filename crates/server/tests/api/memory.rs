//! The memory of all attempts is limited, and small messages do not wait for large ones.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_channel::{Adapter, Capabilities, Outcome, Receipts, Registry, SendRequest};
use nuncio_domain::{Channel, MessageType};
use nuncio_testkit::{Backend, Options, TestApp, provider};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Semaphore;

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::Never, window: 64 };

const BUDGET: usize = 4 * 1024 * 1024;
const LARGE: usize = 400 * 1024;

/// A provider that measures its requests, and delays large messages until it is opened.
#[derive(Clone, Debug)]
struct Scale(Arc<Weights>);

#[derive(Debug)]
struct Weights {
    gate: Semaphore,
    held: AtomicUsize,
    most: AtomicUsize,
    taken: Mutex<Vec<String>>,
}

impl Default for Scale {
    fn default() -> Self {
        let (held, most) = Default::default();
        Self(Arc::new(Weights { gate: Semaphore::new(0), held, most, taken: Mutex::default() }))
    }
}

impl Scale {
    fn taken(&self, subject: &str) -> usize {
        self.0.taken.lock().expect("no panic").iter().filter(|taken| *taken == subject).count()
    }

    fn held(&self) -> usize {
        self.0.held.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Adapter for Scale {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let bytes: usize = request.attachments.iter().map(|attachment| attachment.bytes.len()).sum();
        let held = self.0.held.fetch_add(bytes, Ordering::SeqCst) + bytes;
        self.0.most.fetch_max(held, Ordering::SeqCst);
        if bytes > 0 {
            drop(self.0.gate.acquire().await);
        }
        self.0.held.fetch_sub(bytes, Ordering::SeqCst);
        self.0.taken.lock().expect("no panic").push(request.message.request.subject.clone().unwrap_or_default());
        Outcome::Accepted { refs: Vec::new(), cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        Ok("a scale".to_owned())
    }
}

async fn rig(backend: Backend) -> (TestApp, Scale) {
    let scale = Scale::default();
    let mut options = Options { registry: Registry::new(vec![provider("scale", &[Channel::Email], scale.clone())]), ..Options::default() };
    options.dispatch.max_in_flight_bytes = BUDGET;
    (options.dispatch.guard.allow_http, options.dispatch.guard.allow_loopback) = (true, true);
    let app = TestApp::with(backend, options).await;
    app.connect(Channel::Email, "scale", json!({}), json!({})).await;
    (app, scale)
}

async fn send(app: &TestApp, body: Value) {
    app.with_key(&app.live_key, "POST", "/v1/messages", Some(body)).await.expect(202);
}

fn email(subject: &str, attachments: Value, at: Option<&str>) -> Value {
    let mut body = json!({"to": "ada@example.org", "subject": subject, "text": "x", "attachments": attachments});
    if let Some(at) = at {
        body["scheduledAt"] = at.into();
    }
    body
}

fn file(bytes: usize) -> Value {
    json!([{"filename": "a.bin", "content": STANDARD.encode(vec![7; bytes])}])
}

/// Runs dispatch until the condition holds.
async fn until(app: &TestApp, so: impl Fn() -> bool) {
    while !so() {
        app.node.tick().await.expect("dispatch");
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn large_messages_that_are_due_at_once_take_turns_and_small_ones_pass() {
    const AT: &str = "2026-01-01T01:00:00Z";
    for backend in Backend::all() {
        for scheduled in [true, false] {
            let (app, scale) = rig(backend).await;
            let at = scheduled.then_some(AT);
            for _ in 0..12 {
                send(&app, email("large", file(LARGE), at)).await;
            }
            send(&app, email("huge", file(2 * BUDGET), at)).await;
            for _ in 0..12 {
                send(&app, email("large", file(LARGE), at)).await;
            }
            for _ in 0..40 {
                send(&app, email("small", json!([]), at)).await;
            }
            if scheduled {
                app.clock.advance(Duration::from_secs(3_600));
            }
            until(&app, || scale.taken("small") == 40 && scale.held() > 0).await;
            assert_eq!((scale.taken("large"), scale.taken("huge")), (0, 0), "they wait in the provider");
            assert!(scale.held() <= BUDGET / 2, "{} bytes are held", scale.held());
            scale.0.gate.add_permits(1_000);
            until(&app, || scale.taken("large") == 24 && scale.taken("huge") == 1).await;
            app.drain().await;
            let most = scale.0.most.load(Ordering::SeqCst);
            assert!(
                (2 * LARGE..=2 * BUDGET).contains(&most),
                "some go side by side, and what is larger than everything goes alone: {most}"
            );
            assert_eq!(app.store().read().await.expect("a reader").count_unguarded_messages().await.expect("a count"), 0);
        }
    }
}

/// Serves a file, with or without `Content-Length`.
async fn serve() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = Vec::new();
                while !asked.ends_with(b"\r\n\r\n") && stream.read_buf(&mut asked).await.is_ok_and(|read| read > 0) {}
                let length = if asked.starts_with(b"GET /told") { format!("content-length: {LARGE}\r\n") } else { String::new() };
                let head = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n{length}\r\n");
                let _ = stream.write_all(&[head.into_bytes(), vec![7; LARGE]].concat()).await;
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_fetched_is_counted_too() {
    let (app, scale) = rig(Backend::Sqlite).await;
    let url = serve().await;
    for path in ["told", "untold"] {
        for _ in 0..12 {
            send(&app, email("far", json!([{"filename": "a.bin", "path": format!("{url}/{path}")}]), None)).await;
        }
    }
    send(&app, email("small", json!([]), None)).await;
    until(&app, || scale.taken("small") == 1 && scale.held() >= LARGE).await;
    scale.0.gate.add_permits(1_000);
    until(&app, || scale.taken("far") == 24).await;
    app.drain().await;
    let most = scale.0.most.load(Ordering::SeqCst);
    assert!(most <= BUDGET / 2, "{most} bytes were held");
}
