//! Failures half-way through a start, an accept or an attempt: no message is lost, sent twice, or blocks others.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Capabilities, Opened, Outcome, Registry, Scope, SendRequest, Services, TemplateApi,
};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode, Wait};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, FieldError, MessageId, MessageType};
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::throttles::next;
use crate::webhooks_edges::first_receipt;

/// A provider with scripted responses. By default it accepts, and sends no receipts.
#[derive(Clone, Debug)]
struct Provider {
    /// Number of submitted templates; it never decides on them.
    submitted: Arc<AtomicU32>,
    /// Number of account checks, and whether they fail.
    asked: Arc<AtomicU32>,
    refuses: Arc<AtomicBool>,
    /// Whether opening an account fails.
    unusable: Arc<AtomicBool>,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    /// Gets a permit for each call that arrives.
    called: Arc<Semaphore>,
    /// Each call takes a permit before its response.
    gate: Arc<Semaphore>,
}

#[derive(Clone, Copy, Debug)]
enum Answer {
    /// Unreachable.
    Down,
    /// Rejects the account.
    Refuses,
    /// Throttles.
    Slower,
    /// The adapter rejects the message without calling the provider.
    Unfit,
    /// The outcome is unknown.
    Silent,
    /// Requests a pause of a hundred years.
    Forever,
    /// The adapter panics.
    Panics,
}

impl Provider {
    fn answering(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self {
            submitted: Arc::default(),
            asked: Arc::default(),
            refuses: Arc::default(),
            unusable: Arc::default(),
            answers,
            called: Arc::new(Semaphore::new(0)),
            gate: Arc::new(Semaphore::new(Semaphore::MAX_PERMITS)),
        }
    }

    /// Starts a server that uses it for all channels of the test environment.
    async fn app(&self, backend: Backend) -> TestApp {
        let provider = self.clone();
        let open = move |_: &Account, _: &Services| -> Opened {
            if provider.unusable.load(Ordering::Acquire) {
                return Err(vec![FieldError::new("settings", "a test wants it so")]);
            }
            Ok(Arc::new(provider.clone()))
        };
        let registry = Registry::new(vec![AdapterFactory::new("sim", Channel::ALL, &[], open)]);
        TestApp::with(backend, Options { registry, ..Options::default() }).await
    }

    /// Waits until this many further calls have arrived.
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

#[async_trait]
impl Adapter for Provider {
    fn capabilities(&self) -> &Capabilities {
        static CAPABILITIES: Capabilities =
            Capabilities { message_types: MessageType::ALL, receipts: nuncio_channel::Receipts::Never, window: 8 };
        &CAPABILITIES
    }

    async fn send(&self, _request: &SendRequest<'_>) -> Outcome {
        self.called.add_permits(1);
        self.gate.acquire().await.expect("open").forget();
        let answer = self.answers.lock().expect("no panic").pop_front();
        let unasked = Failure::own(FailureCode::ContentRejected, "the adapter says so");
        let hundred_years = Some(Duration::from_secs(100 * 365 * 86_400));
        let (code, why) = match answer {
            None => return Outcome::Accepted { refs: Vec::new(), cost: None },
            Some(Answer::Panics) => panic!("a test wants it so"),
            Some(Answer::Unfit) => return Outcome::Rejected { failure: unasked },
            Some(Answer::Silent) => {
                let failure = Failure::own(FailureCode::UnknownOutcome, "no answer came");
                return Outcome::Unknown { failure, refs: Vec::new() };
            }
            Some(Answer::Forever) => {
                let failure = Failure::own(FailureCode::RateLimited, "later");
                return Outcome::Deferred { retry_after: hundred_years, failure, scope: Scope::Connection };
            }
            Some(Answer::Down) => (FailureCode::Undeliverable, "nobody answers"),
            Some(Answer::Refuses) => (FailureCode::CredentialsInvalid, "the key is unknown"),
            Some(Answer::Slower) => (FailureCode::RateLimited, "too many at once"),
        };
        Outcome::Deferred { retry_after: None, failure: Failure::own(code, why), scope: Scope::Connection }
    }

    async fn check(&self) -> Result<String, String> {
        self.asked.fetch_add(1, Ordering::AcqRel);
        if self.refuses.load(Ordering::Acquire) { Err("the key is still unknown".to_owned()) } else { Ok("as the test says".to_owned()) }
    }

    fn templates(&self) -> Option<&dyn TemplateApi> {
        Some(self)
    }
}

#[async_trait]
impl TemplateApi for Provider {
    async fn submit(&self, _template: &Template) -> Result<String, Failure> {
        self.submitted.fetch_add(1, Ordering::AcqRel);
        self.gate.acquire().await.expect("open").forget();
        Err(Failure::own(FailureCode::Undeliverable, "nobody answers"))
    }

    async fn status(&self, _template: &Template) -> Result<Decision, Failure> {
        Ok(Decision::Pending)
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
        // The connection backs off for just over two seconds; then one message is tried before all others.
        app.advance(Duration::from_secs(3)).await;
        app.post("/v1/messages", keyed).await.expect(409);
        app.send_message(text()).await; // the adapter panics
        app.drain().await;
        let id = app.send_message(text()).await;
        app.drain().await;
        assert_eq!(app.message(&id).await["status"], "sent");
    }
}

/// More than a lane takes from a scan, and their provider does not respond.
#[tokio::test]
async fn the_backlog_of_one_connection_hides_no_other_message_after_a_restart() {
    for backend in Backend::all() {
        let provider = Provider::answering([]);
        let mut app = provider.app(backend).await;
        provider.close();
        for part in 0..5 {
            let message = |n| json!({"to": format!("p{part}n{n}@example.org"), "subject": "s", "text": "x"});
            let messages: Vec<_> = (0..1_000).map(message).collect();
            app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200);
        }
        let soon = app.node.core.ids().clock.now().plus(Duration::from_secs(60)).to_string();
        let other = app.send_message(json!({"to": "+34600111222", "channel": "sms", "text": "x", "scheduledAt": soon})).await;
        app.crash().await;
        app.clock.advance(Duration::from_secs(61));
        for _ in 0..3 {
            app.node.tick().await.expect("a round");
        }
        assert_eq!(app.message(&other).await["attempts"].as_array().map(Vec::len), Some(1));
        app.node.stop(Duration::ZERO).await;
    }
}

/// Otherwise a provider that takes everything and never answers gets all that waits several times.
#[tokio::test]
async fn a_provider_that_never_answers_is_not_given_the_whole_queue() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Silent; 10]);
        let app = provider.app(backend).await;
        let held = || json!({"to": "+34600111222", "text": "x", "onUnknown": "hold"});
        for sent in 1..=10 {
            assert_eq!(health(&app).await["state"], "ok", "after {sent} others");
            app.send_message(held()).await;
            app.drain().await;
        }
        let resting = health(&app).await;
        assert_eq!((&resting["state"], &resting["reason"]), (&json!("resting"), &json!("no answer came")));
        let waits = app.send_message(held()).await;
        app.drain().await;
        assert_eq!(app.message(&waits).await["attempts"], json!([]));
        app.advance(Duration::from_secs(3)).await;
        app.drain().await;
        assert_eq!(app.message(&waits).await["status"], "sent");
        assert_eq!(health(&app).await, json!({"state": "ok"}));
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

/// Returns the health of the default sender's SMS connection.
async fn health(app: &TestApp) -> Value {
    let senders = app.get("/v1/senders").await.expect(200).json();
    let sender = app.get(&format!("/v1/senders/{}", senders["items"][0]["id"].as_str().expect("an id"))).await.expect(200).json();
    let connections = sender["connections"].as_array().expect("a list").clone();
    connections.into_iter().find(|c| c["channel"] == "sms").expect("a connection")["health"].clone()
}

#[tokio::test]
async fn a_refused_account_stops_and_costs_no_message_its_attempts() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Refuses]);
        provider.refuses.store(true, Ordering::Release);
        let app = provider.app(backend).await;
        let first = app.send_message(text()).await;
        app.drain().await;
        let second = app.send_message(text()).await;
        let stopped = health(&app).await;
        assert_eq!((&stopped["state"], &stopped["reason"]), (&json!("stopped"), &json!("the key is unknown")));
        for asked in 1..4 {
            app.advance(Duration::from_secs(20 * 60)).await;
            app.drain().await;
            assert_eq!(provider.asked.load(Ordering::Acquire), asked, "it is asked, and nothing is sent");
        }
        assert_eq!(health(&app).await["reason"], "the key is still unknown");
        assert_eq!(app.message(&first).await["attempts"].as_array().map(Vec::len), Some(1));
        assert_eq!(app.message(&second).await["attempts"].as_array().map(Vec::len), Some(0));
        provider.refuses.store(false, Ordering::Release);
        app.advance(Duration::from_secs(20 * 60)).await;
        app.drain().await;
        for id in [first, second] {
            assert_eq!(app.message(&id).await["status"], "sent");
        }
        assert_eq!(health(&app).await, json!({"state": "ok"}));
    }
}

#[tokio::test]
async fn a_check_shows_in_the_health_and_ends_no_pause() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Forever]);
        let app = provider.app(backend).await;
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let path = format!("/v1/senders/{sender}/channels/sms/test");
        let works = async || app.post(&path, json!({})).await.expect(200).json()["ok"] == true;
        provider.refuses.store(true, Ordering::Release);
        assert!(!works().await);
        let failing = health(&app).await;
        assert_eq!((&failing["state"], &failing["reason"]), (&json!("failing"), &json!("the key is still unknown")));
        provider.refuses.store(false, Ordering::Release);
        assert!(works().await);
        assert_eq!(health(&app).await, json!({"state": "ok"}));
        // The provider asks for a pause: a check neither ends nor hides it.
        let id = app.send_message(text()).await;
        app.drain().await;
        let resting = health(&app).await;
        assert_eq!(resting["state"], "resting");
        assert!(works().await);
        app.drain().await;
        assert_eq!(health(&app).await, resting);
        assert_eq!(app.message(&id).await["attempts"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn what_the_provider_was_not_asked_says_nothing_about_it() {
    let provider = Provider::answering([Answer::Down, Answer::Unfit, Answer::Down]);
    let app = provider.app(Backend::Sqlite).await;
    app.send_message(text()).await;
    app.drain().await;
    app.advance(Duration::from_secs(3)).await;
    app.send_message(text()).await; // rejected without calling the provider
    app.drain().await;
    let failing = health(&app).await;
    assert_eq!((&failing["state"], &failing["reason"]), (&json!("failing"), &json!("nobody answers")));
}

#[tokio::test]
async fn nobody_waits_a_hundred_years() {
    let provider = Provider::answering([Answer::Forever]);
    let app = provider.app(Backend::Sqlite).await;
    let id = app.send_message(text()).await;
    app.drain().await;
    app.advance(Duration::from_secs(2 * 3_600)).await;
    app.drain().await;
    assert_eq!(app.message(&id).await["status"], "sent");
}

#[tokio::test]
async fn a_provider_that_asks_for_a_slower_pace_gets_it_and_the_old_one_comes_back() {
    let provider = Provider::answering([Answer::Slower]);
    let app = provider.app(Backend::Sqlite).await;
    // When the first of them is throttled, a full window is in flight.
    let under_way = async || {
        provider.close();
        let mut count = 0;
        for _ in 0..8 {
            let id = app.send_message(text()).await;
            count += u32::from(app.message(&id).await["status"] == "sending");
        }
        provider.called(count).await;
        provider.open();
        app.drain().await;
        app.advance(Duration::from_secs(10)).await;
        app.drain().await;
        provider.called.forget_permits(Semaphore::MAX_PERMITS);
        count
    };
    assert_eq!(under_way().await, 8);
    let slower = under_way().await;
    assert!((4..7).contains(&slower), "{slower}");
    for _ in 0..5 {
        under_way().await;
    }
    assert_eq!(under_way().await, 8);
}

#[tokio::test]
async fn a_start_that_ends_while_it_holds_leaves_the_rest_to_be_held() {
    for mut app in TestApp::on_each().await {
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

/// The fallback may have been sent after the copy was made; what only waits for its receipt sends nothing.
#[tokio::test]
async fn a_restored_database_sends_no_fallback_without_a_decision() {
    for mut app in TestApp::on_each().await {
        let mut ids = Vec::new();
        for fallback_after in [json!(60), json!(60), json!(60), Value::Null] {
            let body = json!({"to": "+12125550005", "text": "x", "channel": "whatsapp", "fallbackAfterSeconds": fallback_after});
            ids.push(app.send_message(body).await);
        }
        app.drain().await;
        app.clock.advance(Duration::from_secs(7_200));
        app.crash().await;
        app.advance(Duration::from_secs(120)).await;
        let shown = async |id: &str| {
            let message = app.message(id).await;
            let attempts = message["attempts"].as_array().map_or(0, Vec::len);
            (message["status"].clone(), message["heldReason"].clone(), message["channel"].clone(), attempts)
        };
        for id in &ids[..3] {
            assert_eq!(shown(id).await, (json!("sent"), json!("stale_database"), json!("whatsapp"), 1));
        }
        assert_eq!(shown(&ids[3]).await, (json!("sent"), Value::Null, json!("whatsapp"), 1));

        // The first was not sent by SMS, the second was; the third arrived after all.
        for (id, action) in ids.iter().zip(["resend", "sent"]) {
            app.post(&format!("/v1/messages/{id}/resolve"), json!({"action": action})).await.expect(200);
        }
        first_receipt(&app, &ids[2], ReceiptKind::Delivered).await;
        app.advance(Duration::from_secs(120)).await;
        assert_eq!(shown(&ids[0]).await, (json!("sent"), Value::Null, json!("sms"), 2));
        assert_eq!(shown(&ids[1]).await, (json!("sent"), Value::Null, json!("whatsapp"), 1));
        assert_eq!(shown(&ids[2]).await, (json!("delivered"), Value::Null, json!("whatsapp"), 1));
    }
}

/// Its clock may be wrong until it is set, while other nodes are at work.
#[tokio::test]
async fn whether_a_database_with_a_clock_is_stale_is_told_by_that_clock() {
    for backend in Backend::all() {
        let mut options = Options::default();
        options.dispatch.compare_clocks = true;
        let mut app = TestApp::with(backend, options).await;
        let real = crate::clocks::set_right(&app).await;
        let in_a_day = real.plus(Duration::from_secs(86_400)).to_string();
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": in_a_day})).await;
        // The node's clock is now two hours ahead of the database's.
        app.clock.advance(Duration::from_secs(7_200));
        for (unused_minutes, reason) in [(1, Value::Null), (90, json!("stale_database"))] {
            app.sql(&format!("UPDATE nodes SET beat_at = {}", real.millis() - unused_minutes * 60_000)).await;
            app.crash().await;
            assert_eq!(app.message(&id).await["heldReason"], reason, "unused for {unused_minutes} minutes");
        }
    }
}

async fn remove(app: &TestApp, channel: &str) {
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    let sender = world.default_sender().expect("a default sender").id;
    app.request("DELETE", &format!("/v1/senders/{sender}/channels/{channel}"), None).await.expect(204);
}

fn in_an_hour(to: &str) -> Value {
    json!({"to": to, "text": "x", "channel": "sms", "scheduledAt": "2026-01-01T01:00:00Z"})
}

#[tokio::test]
async fn what_waits_for_a_connection_that_was_removed_takes_its_fallback_or_fails() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let id = app.send_message(in_an_hour("+34600111222")).await;
        let fallback = json!({"to": "+34600111222", "text": "x", "channel": "whatsapp", "scheduledAt": "2026-01-01T01:00:00Z"});
        let second = app.send_message(json!({"to": "+34600111222", "text": "opens the lane", "channel": "sms"})).await;
        app.drain().await;
        assert_eq!(app.message(&second).await["status"], "delivered");
        remove(&app, "sms").await;
        app.advance(Duration::from_secs(3_600)).await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["errorCode"].as_str()), (Some("failed"), Some("undeliverable")), "{message}");

        // It does not wait forever, either, if its lane was never opened.
        let mut app = TestApp::on(backend).await;
        let (id, other) = (app.send_message(fallback).await, app.send_message(in_an_hour("+34600111223")).await);
        remove(&app, "whatsapp").await;
        app.crash().await;
        app.advance(Duration::from_secs(3_600)).await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["channel"].as_str()), (Some("delivered"), Some("sms")), "{message}");
        assert_eq!(app.message(&other).await["status"], "delivered");
    }
}

#[tokio::test]
async fn a_fallback_whose_connection_was_removed_hides_nothing_of_the_first_route() {
    for app in TestApp::on_each().await {
        let mut ids = Vec::new();
        for after in [60, 7_200] {
            let body = json!({"to": "+12125550005", "text": "x", "channel": "whatsapp", "fallbackAfterSeconds": after});
            ids.push(app.send_message(body).await);
        }
        app.drain().await;
        remove(&app, "sms").await;
        app.advance(Duration::from_secs(61)).await;
        let refused = Failure::own(FailureCode::BlockedByRecipient, "the recipient blocked us");
        first_receipt(&app, &ids[1], ReceiptKind::Failed(refused)).await;
        app.drain().await;
        let (sent, failed) = (app.message(&ids[0]).await, app.message(&ids[1]).await);
        assert_eq!((&sent["status"], &sent["channel"]), (&json!("sent"), &json!("whatsapp")), "{sent}");
        assert_eq!((&failed["status"], &failed["channel"]), (&json!("failed"), &json!("whatsapp")), "{failed}");
        assert_eq!(failed["errorMessage"], "the recipient blocked us");
        let found =
            async |channel: &str| app.get(&format!("/v1/messages?channel={channel}")).await.json()["items"].as_array().map(Vec::len);
        assert_eq!((found("whatsapp").await, found("sms").await), (Some(2), Some(0)));

        // The accepted one is not final: its receipt may still come.
        let message: MessageId = ids[0].parse().expect("an id");
        let stored = app.store().read().await.expect("a reader").lookup_messages(app.tenant(), &[message]).await.expect("a look").remove(0);
        assert!(matches!(stored.state.wait, Wait::Receipt { .. }), "{:?}", stored.state.wait);
        first_receipt(&app, &ids[0], ReceiptKind::Delivered).await;
        assert_eq!(app.message(&ids[0]).await["status"], "delivered");
    }
}

#[tokio::test]
async fn another_node_too_stops_using_a_connection_that_was_removed() {
    let app = TestApp::start().await;
    let other = app.another_node().await;
    other.start().await.expect("it enters");
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    let sms = world.connections.iter().find(|c| c.channel == Channel::Sms).expect("a connection");
    assert!(other.dispatch.reserve(&next(&app, sms), sms).is_some(), "its lane is open");
    let id = app.send_message(in_an_hour("+34600111222")).await;
    remove(&app, "sms").await;
    app.clock.advance(Duration::from_secs(2));
    other.tick().await.expect("a round");
    app.clock.advance(Duration::from_secs(3_600));
    other.drain().await.expect("rounds");
    let mut tx = app.store().read().await.expect("a reader");
    let message = tx.lookup_message(app.tenant(), id.parse().expect("an id")).await.expect("a look").expect("a message");
    assert_eq!(message.state.status.as_str(), "failed");
}

#[tokio::test]
async fn a_message_whose_account_cannot_be_opened_expires() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Down]);
        let mut app = provider.app(backend).await;
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "validitySeconds": 600})).await;
        app.drain().await;
        provider.unusable.store(true, Ordering::Release);
        app.crash().await;
        app.advance(Duration::from_secs(300)).await;
        assert_eq!(app.message(&id).await["status"], "sending");
        app.advance(Duration::from_secs(300)).await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["errorCode"].as_str()), (Some("failed"), Some("expired")), "{message}");
    }
}

#[tokio::test]
async fn a_message_that_cannot_be_read_concerns_no_other() {
    for backend in Backend::all() {
        let provider = Provider::answering([]);
        let mut app = provider.app(backend).await;
        let later = [app.send_message(in_an_hour("+34600111221")).await, app.send_message(in_an_hour("+34600111222")).await];
        provider.close();
        for to in ["+34600111223", "+34600111224", "+34600111225"] {
            app.send_message(json!({"to": to, "text": "x"})).await;
        }
        provider.called(3).await;
        // As a newer version may have left them.
        let of = "WHERE id IN (SELECT id FROM messages WHERE recipient IN";
        app.sql(&format!("UPDATE states SET wait = 9, revision = revision + 1 {of} ('+34600111221', '+34600111223'))")).await;
        app.sql(&format!("UPDATE states SET detail = '{{', revision = revision + 1 {of} ('+34600111224'))")).await;
        app.crash().await;
        provider.open();
        app.advance(Duration::from_secs(3_600)).await;
        assert_eq!(app.message(&later[1]).await["status"], "sent");
        let mut tx = app.store().read().await.expect("a reader");
        let owners = tx.owners().await.expect("owners");
        let owned = tx.messages_owned_by(owners[0], 9).await.expect("a list").messages;
        assert_eq!((owners.len(), owned.len()), (1, 2), "what can be read was taken over");
    }
}

#[tokio::test]
async fn a_node_shows_that_it_lives_whatever_else_fails() {
    let app = TestApp::start().await;
    app.send_message(in_an_hour("+34600111222")).await;
    remove(&app, "sms").await;
    app.faults.steps_left.store(0, Ordering::Release);
    app.clock.advance(Duration::from_secs(3_600));
    assert!(app.node.tick().await.is_err());
    app.get("/readyz").await.expect(200);
}

#[tokio::test]
async fn an_accepted_message_of_which_nobody_learned_is_sent() {
    for app in TestApp::on_each().await {
        let body = json!({"to": "+34600111222", "text": "x", "idempotencyKey": "k"});
        app.faults.lost_accepts.store(1, Ordering::Release);
        app.post("/v1/messages", body.clone()).await.expect(503);
        for _ in 0..4 {
            app.advance(Duration::from_secs(10)).await;
        }
        let repeated = app.post("/v1/messages", body).await.expect(409).json();
        let message = app.message(repeated["message"]["id"].as_str().expect("the original")).await;
        assert_eq!((message["status"].as_str(), message["possibleDuplicate"].as_bool()), (Some("delivered"), Some(true)), "{message}");
    }
}

#[tokio::test]
async fn an_attempt_that_ends_without_a_result_is_unknown() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Panics]);
        let app = provider.app(backend).await;
        let id = app.send_message(text()).await;
        for _ in 0..4 {
            app.advance(Duration::from_secs(10)).await;
        }
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["attempts"][0]["status"].as_str()), (Some("sent"), Some("unknown")), "{message}");
    }
}

#[tokio::test]
async fn an_attempt_that_takes_long_is_nobody_else_s() {
    let provider = Provider::answering([]);
    let app = provider.app(Backend::Sqlite).await;
    provider.close();
    let id = app.send_message(text()).await;
    provider.called(1).await;
    for _ in 0..6 {
        app.clock.advance(Duration::from_secs(10));
        app.node.tick().await.expect("a round");
    }
    provider.open();
    app.drain().await;
    let message = app.message(&id).await;
    assert_eq!((message["status"].as_str(), message["attempts"].as_array().map(Vec::len)), (Some("sent"), Some(1)), "{message}");
}

#[tokio::test]
async fn what_a_forgotten_node_owns_is_taken_over() {
    for backend in Backend::all() {
        let provider = Provider::answering([]);
        let app = provider.app(backend).await;
        provider.close();
        let id = app.send_message(text()).await;
        provider.called(1).await;
        // As if other nodes had recovered this node, and it had started the attempt after that.
        app.sql("UPDATE states SET owner = 77, revision = revision + 1").await;
        app.sql("UPDATE agenda SET owner = 77").await;
        app.clock.advance(Duration::from_secs(10));
        app.node.tick().await.expect("a round");
        let message = app.message(&id).await;
        assert_eq!(message["attempts"][0]["status"], "unknown", "{message}");
        provider.open();
        app.drain().await;
        assert_eq!(app.message(&id).await["status"], "sent");
    }
}

/// The node that recovers it deletes its row. The others must not keep its shards for it: their due messages and webhooks would wait forever.
#[tokio::test]
async fn the_shards_of_a_dead_node_go_to_all_others_whoever_recovers_it() {
    for backend in Backend::all() {
        let mut options = Options::default();
        options.dispatch.sole = false;
        let app = TestApp::with(backend, options).await;
        let (other, dead) = (app.another_node().await, app.another_node().await);
        other.start().await.expect("it enters");
        dead.start().await.expect("it enters");
        app.node.tick().await.expect("a round");
        other.tick().await.expect("a round");
        let owners = |nodes: &[&nuncio_node::Node]| {
            let mut shards: Vec<i16> = nodes.iter().flat_map(|node| node.dispatch.shards()).collect();
            shards.sort_unstable();
            shards
        };
        let all: Vec<i16> = (0..64).collect();
        dead.tick().await.expect("a round");
        assert_eq!(owners(&[&app.node, &other, &dead]), all, "each shard has one node");
        assert!([&app.node, &other, &dead].iter().all(|node| !node.dispatch.shards().is_empty()));
        for _ in 0..6 {
            app.clock.advance(Duration::from_secs(2));
            other.tick().await.expect("a round");
            app.node.tick().await.expect("a round");
        }
        assert!(!app.node.dispatch.is_alive(dead.dispatch.node()) && app.node.dispatch.is_alive(other.dispatch.node()));
        assert_eq!(owners(&[&app.node, &other]), all);
    }
}

/// While it is away, no node can beat or look: at the first look afterwards, live nodes have been as silent as dead ones.
#[tokio::test]
async fn after_an_outage_of_the_database_live_nodes_have_time_to_show_it() {
    for backend in Backend::all() {
        let mut options = Options::default();
        options.dispatch.sole = false;
        let app = TestApp::with(backend, options).await;
        let other = app.another_node().await;
        other.start().await.expect("it enters");
        app.node.tick().await.expect("a round");
        let id = other.dispatch.node();
        app.clock.advance(Duration::from_secs(30));
        for _ in 0..4 {
            app.node.tick().await.expect("a round");
            assert!(app.node.dispatch.is_alive(id));
            app.clock.advance(Duration::from_secs(2));
        }
        other.tick().await.expect("a round");
        assert_eq!(other.dispatch.node(), id, "nobody declared it dead");
        for _ in 0..6 {
            app.clock.advance(Duration::from_secs(2));
            app.node.tick().await.expect("a round");
        }
        assert!(!app.node.dispatch.is_alive(id), "it is silent while the database is there");
    }
}

#[tokio::test]
async fn a_result_that_cannot_be_stored_at_once_is_stored_while_the_node_stops() {
    for backend in Backend::all() {
        let provider = Provider::answering([Answer::Unfit]);
        let app = provider.app(backend).await;
        provider.close();
        let id = app.send_message(text()).await;
        provider.called(1).await;
        app.faults.steps_left.store(0, Ordering::Release);
        let outage = async {
            provider.open();
            // The result is written as soon as the provider has answered.
            while !provider.answers.lock().expect("no panic").is_empty() {
                tokio::task::yield_now().await;
            }
            app.faults.steps_left.store(u32::MAX, Ordering::Release);
        };
        tokio::join!(app.node.stop(Duration::from_secs(60)), outage);
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["attempts"][0]["status"].as_str()), (Some("failed"), Some("failed")), "{message}");
    }
}

#[tokio::test]
async fn a_message_that_is_scheduled_for_soon_waits_for_its_time_too() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-01T00:00:03Z"})).await;
    app.advance(Duration::from_millis(2_999)).await;
    assert_eq!(app.message(&id).await["status"], "scheduled");
    app.advance(Duration::from_millis(1)).await;
    assert_eq!(app.message(&id).await["status"], "delivered");
}

#[tokio::test]
async fn of_two_nodes_that_look_after_a_template_one_asks_the_provider() {
    for backend in Backend::all() {
        let provider = Provider::answering([]);
        let app = provider.app(backend).await;
        let content = json!({"name": "order_ready", "language": "en", "body": "Ready.", "whatsappCategory": "UTILITY"});
        let made = app.post("/v1/templates", content).await.expect(201).json();
        let sender = app.node.core.tenant_config(app.tenant()).await.expect("the test world").default_sender().expect("a sender").id;
        let path = format!("/v1/templates/{}/submit", made["id"].as_str().expect("an id"));
        app.post(&path, json!({"senderId": sender})).await.expect(202);
        assert_eq!(provider.submitted.load(Ordering::Acquire), 1);
        app.clock.advance(Duration::from_secs(60));
        let due =
            app.store().read().await.expect("a reader").due_templates(nuncio_domain::Clock::now(&*app.clock), 9).await.expect("a list");
        for _ in 0..2 {
            app.node.core.templates().process_due(&due[0]).await.expect("looked after");
        }
        assert_eq!(provider.submitted.load(Ordering::Acquire), 2);
    }
}

#[tokio::test]
async fn a_provider_that_does_not_answer_about_a_template_holds_up_no_broadcast() {
    let provider = Provider::answering([]);
    let app = provider.app(Backend::Sqlite).await;
    let content = json!({"name": "order_ready", "language": "en", "body": "Ready.", "whatsappCategory": "UTILITY"});
    let made = app.post("/v1/templates", content).await.expect(201).json();
    let sender = app.node.core.tenant_config(app.tenant()).await.expect("the test world").default_sender().expect("a sender").id;
    let path = format!("/v1/templates/{}/submit", made["id"].as_str().expect("an id"));
    app.post(&path, json!({"senderId": sender})).await.expect(202);
    let draft = app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x"})).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}", draft["broadcast"]["id"].as_str().expect("an id"));
    app.post(&format!("{path}/contacts"), json!({"contacts": [{"recipient": "+34600111222"}]})).await.expect(201);
    app.post(&format!("{path}/send"), json!({"scheduledAt": "2026-01-01T00:05:00Z"})).await.expect(202);
    app.drain().await;
    provider.close();
    app.clock.advance(Duration::from_secs(60));
    let work = async {
        while provider.submitted.load(Ordering::Acquire) < 2 {
            app.node.tick().await.expect("a round");
            tokio::task::yield_now().await;
        }
        app.clock.advance(Duration::from_secs(300));
        while provider.called.available_permits() == 0 {
            app.node.tick().await.expect("a round");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it is sent although the provider does not answer");
    assert_eq!(provider.submitted.load(Ordering::Acquire), 2, "the poll still waits");
    provider.open();
    app.drain().await;
}

#[tokio::test]
async fn all_keys_whose_time_is_over_are_forgotten_in_one_go() {
    let app = TestApp::start().await;
    app.sql(&format!(
        "INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at) \
         WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2500) \
         SELECT {}, 1, i, zeroblob(32), zeroblob(16), 1 FROM n",
        app.tenant().0
    ))
    .await;
    let known = async |key: &str| {
        let mut tx = app.store().read().await.expect("a reader");
        tx.find_message_by_idempotency_key(app.tenant(), nuncio_store::IdempotentOperation::SendMessage, key)
            .await
            .expect("a look")
            .is_some()
    };
    assert!(known("2500").await);
    app.node.purge().await.expect("purged");
    assert!(!known("2500").await && !known("1").await);
}
