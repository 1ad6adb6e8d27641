//! A webhook endpoint with configurable responses that records its requests.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use futures::stream::{self, Stream, StreamExt as _};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

/// A running endpoint. Stops when dropped, and fails the test if a webhook violated the OpenAPI document.
#[derive(Debug)]
pub struct Receiver {
    pub url: String,
    shared: Arc<Mutex<Inner>>,
    /// Whether responses are held back.
    holds: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Inner {
    says: Option<Bytes>,
    echoes: bool,
    stalls: bool,
    got: Vec<Posted>,
    answers: VecDeque<u16>,
    always: Option<u16>,
    rejects: Option<(String, u16)>,
    violations: Vec<String>,
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Posted {
    pub headers: HeaderMap,
    /// Request body, byte for byte.
    pub bytes: Bytes,
    /// The response status.
    pub answered: u16,
}

impl Posted {
    /// Returns the body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).expect("a webhook's body is JSON")
    }

    /// Returns a header as text, or `""`.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }
}

impl Receiver {
    /// Starts an endpoint that responds with 200.
    pub async fn start() -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/hook", listener.local_addr().expect("an address"));
        let shared = Arc::new(Mutex::new(Inner::default()));
        let (holds, held) = watch::channel(false);
        let router = Router::new().fallback(take).with_state((Arc::clone(&shared), held));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { url, shared, holds, task }
    }

    /// Responds to the next requests with these statuses, then with 200.
    pub fn answer(&self, statuses: &[u16]) {
        self.shared.lock().answers.extend(statuses);
    }

    /// Responds to every request with this status; `None` restores 200.
    pub fn always(&self, status: Option<u16>) {
        self.shared.lock().always = status;
    }

    /// Responds to every event of this type with this status.
    pub fn reject(&self, event_type: &str, status: u16) {
        self.shared.lock().rejects = Some((event_type.to_owned(), status));
    }

    /// Holds back all responses while `holds`.
    pub fn hold(&self, holds: bool) {
        self.holds.send_replace(holds);
    }

    /// Responds to each request with its body.
    pub fn echo(&self) {
        self.shared.lock().echoes = true;
    }

    /// Begins a body with each response, and never ends it.
    pub fn stall(&self) {
        self.shared.lock().stalls = true;
    }

    /// Responds with this JSON from now on.
    pub fn say(&self, body: &Value) {
        self.shared.lock().says = Some(body.to_string().into());
    }

    /// Returns all requests so far, in order.
    pub fn got(&self) -> Vec<Posted> {
        self.shared.lock().got.clone()
    }

    /// Returns the types of the events it accepted, in order.
    pub fn taken(&self) -> Vec<String> {
        let taken = self.got().into_iter().filter(|p| p.answered < 300);
        taken.map(|p| p.json()["type"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
        let violations = self.shared.lock().violations.join("\n");
        assert!(violations.is_empty() || std::thread::panicking(), "webhooks contradict the OpenAPI document:\n{violations}");
    }
}

type Shared = (Arc<Mutex<Inner>>, watch::Receiver<bool>);

async fn take(State((shared, mut held)): State<Shared>, headers: HeaderMap, bytes: Bytes) -> (StatusCode, Body) {
    let is_webhook = headers.contains_key("webhook-id");
    let event: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    // Recorded before validation, which takes a while.
    let (answered, stalls, answer) = {
        let mut inner = shared.lock();
        let rejected = inner.rejects.as_ref().filter(|(kind, _)| event["type"] == kind.as_str()).map(|(_, status)| *status);
        let answered = inner.answers.pop_front().or(rejected).or(inner.always).unwrap_or(200);
        let said = inner.says.clone().unwrap_or(Bytes::from_static(b"as told"));
        let answer = if inner.echoes { bytes.clone() } else { said };
        inner.got.push(Posted { headers, bytes: bytes.clone(), answered });
        (answered, inner.stalls, answer)
    };
    let violations = if is_webhook { crate::contract::webhook(&bytes) } else { Vec::new() };
    let told = violations.iter().map(|violation| format!("- {violation}: {}", String::from_utf8_lossy(&bytes)));
    shared.lock().violations.extend(told);
    held.wait_for(|holds| !holds).await.expect("the receiver lives");
    let body = if stalls { Body::from_stream(begun(answer)) } else { answer.into() };
    (StatusCode::from_u16(answered).expect("a status"), body)
}

/// A body that has no end.
fn begun(first: Bytes) -> impl Stream<Item = Result<Bytes, Infallible>> {
    stream::once(async { Ok(first) }).chain(stream::pending())
}
