//! What goes wrong half-way: a start, an accept, an attempt. Nothing is lost by it, nothing goes out twice, and nobody else waits for it.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{Account, Adapter, AdapterFactory, Capabilities, Field, Registry, Scope, SendRequest, Services, Verdict};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, MessageType};
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

/// A provider of which a test says what it answers; it takes what nothing is said of, and tells no more.
#[derive(Clone, Debug)]
struct Provider {
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// A permit for each call that arrived.
    called: Arc<Semaphore>,
    /// Each call takes a permit before it is answered.
    gate: Arc<Semaphore>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// It cannot be reached.
    Down,
    /// The adapter has a fault.
    Panics,
}

impl Provider {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, called: Arc::new(Semaphore::new(0)), gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)) }
    }

    /// A server on which it carries every channel of the test world.
    async fn app(&self, backend: Backend) -> TestApp {
        let registry = Registry::new(vec![Arc::new(self.clone())]);
        TestApp::with(backend, Options { registry, ..Options::default() }).await
    }

    /// Waits until so many calls more have arrived.
    async fn called(&self, times: u32) {
        self.called.acquire_many(times).await.expect("open").forget();
    }

    fn close(&self) {
        self.gate.forget_permits(Semaphore::MAX_PERMITS);
    }

    fn open(&self) {
        self.gate.add_permits(1_000);
    }
}

impl AdapterFactory for Provider {
    fn kind(&self) -> &'static str {
        "sim"
    }

    fn channels(&self) -> &'static [Channel] {
        Channel::ALL
    }

    fn fields(&self) -> &'static [Field] {
        &[]
    }

    fn open(&self, _account: &Account, _services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        Ok(Arc::new(self.clone()))
    }
}

#[async_trait]
impl Adapter for Provider {
    fn capabilities(&self) -> &Capabilities {
        static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: false, window: 8 };
        &CAPABILITIES
    }

    async fn send(&self, _request: &SendRequest<'_>) -> Verdict {
        self.called.add_permits(1);
        self.gate.acquire().await.expect("open").forget();
        let answer = self.answers.lock().expect("no panic").pop_front();
        match answer {
            None => Verdict::Accepted { provider_message_id: None, cost: None },
            Some(Answer::Panics) => panic!("a test wants it so"),
            Some(Answer::Down) => {
                let failure = Failure::own(FailureCode::Undeliverable, "nobody answers");
                Verdict::Deferred { retry_after: None, failure, scope: Scope::Connection }
            }
        }
    }

    async fn check(&self) -> Result<String, String> {
        Ok("as the test says".to_owned())
    }
}

fn text() -> Value {
    json!({"to": "+34600111222", "text": "x"})
}

#[tokio::test]
async fn after_a_rest_a_place_that_was_not_used_lets_the_next_in() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Down, Answer::Panics]);
        let app = provider.app(backend).await;
        let keyed = json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k"});
        app.send_message(keyed.clone()).await;
        app.drain().await;
        // The connection rests for two seconds and a bit; then one goes ahead of all others.
        app.advance(Duration::from_secs(3)).await;
        app.post("/v1/messages", keyed).await.expect(409);
        app.send_message(text()).await; // the adapter panics
        app.drain().await;
        let id = app.send_message(text()).await;
        app.drain().await;
        assert_eq!(app.message(&id).await["status"], "sent");
    }
}

#[tokio::test]
async fn what_fails_at_once_is_one_failure() {
    let provider = Provider::answering([Answer::Down; 6]);
    let app = provider.app(Backend::Sqlite).await;
    provider.close();
    for _ in 0..6 {
        app.send_message(text()).await;
    }
    provider.called(6).await;
    provider.open();
    app.drain().await;
    app.advance(Duration::from_secs(3)).await;
    let id = app.send_message(text()).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["status"], "sent");
}

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
