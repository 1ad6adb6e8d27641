//! Broadcasts that are paused, resumed, cancelled and killed at random, checked against the provider's own record: no recipient gets two
//! messages, none is missing, and the money matches.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{Adapter, Capabilities, Outcome, Receipts, Registry, Scope, SendRequest};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, Environment, MessageType, Micros};
use nuncio_testkit::{Backend, Options, TestApp, TestResponse, provider};
use serde_json::{Value, json};

use crate::broadcasts::counts;

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::Never, window: 4 };

/// Price of a message, in millionths of a dollar.
const PRICE: i64 = 35_000;
/// Recipients per broadcast.
const RECIPIENTS: u64 = 9;

/// A provider that records its recipients. Depending on the number, it rejects the message, defers it once, or loses its response.
#[derive(Clone, Debug, Default)]
struct Carrier(Arc<Mutex<BTreeMap<String, usize>>>);

impl Carrier {
    fn sent_to(&self, recipient: &str) -> usize {
        self.0.lock().expect("no panic").get(recipient).copied().unwrap_or_default()
    }
}

#[async_trait]
impl Adapter for Carrier {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let to = &request.message.to;
        let number: u64 = to.trim_start_matches('+').parse().expect("a phone number");
        // So that a kill comes before, while or after the provider has the message.
        pauses(number % 4).await;
        if number.is_multiple_of(11) {
            return Outcome::Rejected { failure: Failure::own(FailureCode::Undeliverable, "no such subscriber") };
        }
        if number.is_multiple_of(5) && request.attempt == 0 {
            let failure = Failure::own(FailureCode::RateLimited, "busy");
            return Outcome::Deferred { retry_after: Some(Duration::from_secs(1)), failure, scope: Scope::Message };
        }
        *self.0.lock().expect("no panic").entry(to.clone()).or_default() += 1;
        pauses(number % 3).await;
        if number.is_multiple_of(13) {
            let failure = Failure::own(FailureCode::UnknownOutcome, "the connection broke before the answer came");
            return Outcome::Unknown { failure, refs: Vec::new() };
        }
        Outcome::Accepted { refs: vec![format!("{}-{}", request.message.id, request.attempt)], cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        Ok("carrier".to_owned())
    }
}

async fn pauses(count: u64) {
    for _ in 0..count {
        tokio::task::yield_now().await;
    }
}

/// Pseudo-random numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (n ^ (n >> 31)) % sides
    }
}

/// A server whose live environment uses the provider.
struct Lives {
    app: TestApp,
    carrier: Carrier,
    auth: String,
}

impl Lives {
    async fn on(backend: Backend) -> Self {
        let carrier = Carrier::default();
        let registry = Registry::new(vec![nuncio_channel_sim::factory(), provider("carrier", &[Channel::Sms], carrier.clone())]);
        let app = TestApp::with(backend, Options { registry, ..Options::default() }).await;
        app.connect(Channel::Sms, "carrier", json!({}), json!({})).await;
        let billing = app.node.core.billing();
        billing.import_prices(None, "channel,country,unit,provider,fee\nsms,*,segment,0.03,0.005\n", false).await.expect("good prices");
        billing.limit_balance(app.project.live, true).await.expect("a limit");
        billing.add_money(app.project.live, Micros(1_000_000_000), None).await.expect("a deposit");
        let auth = format!("Bearer {}", app.key(Environment::Live, &[]).await);
        Self { app, carrier, auth }
    }

    async fn call(&self, method: &str, path: &str, body: Option<Value>) -> TestResponse {
        self.app.send(method, path, &[("authorization", &self.auth)], body).await
    }

    async fn broadcast(&self, id: &str) -> Value {
        self.call("GET", &format!("/v1/broadcasts/{id}"), None).await.expect(200).json()["broadcast"].clone()
    }

    /// Runs a broadcast from draft to end, and checks it against the provider's record.
    async fn live(&mut self, seed: u64) {
        let mut dice = Dice(seed);
        let body = json!({"name": seed.to_string(), "channel": "sms", "text": "Hello from Acme"});
        let made = self.call("POST", "/v1/broadcasts", Some(body)).await.expect(201).json();
        let id = made["broadcast"]["id"].as_str().expect("an id").to_owned();
        let recipients: Vec<String> = (0..RECIPIENTS).map(|n| format!("+346{:08}", seed * RECIPIENTS + n)).collect();
        let contacts: Vec<_> = recipients.iter().map(|recipient| json!({"recipient": recipient})).collect();
        self.call("POST", &format!("/v1/broadcasts/{id}/contacts"), Some(json!({"contacts": contacts}))).await.expect(201);
        self.call("POST", &format!("/v1/broadcasts/{id}/send"), None).await.expect(202);
        for _ in 0..4 + dice.roll(10) {
            self.random_event(&id, &mut dice).await;
        }
        self.finish_all(&id, seed).await;
        self.adds_up(&id, seed, &recipients).await;
    }

    async fn random_event(&mut self, id: &str, dice: &mut Dice) {
        let verb = match dice.roll(16) {
            0..=2 => "pause",
            3..=5 => "resume",
            6 if dice.roll(3) == 0 => "cancel",
            7 | 8 => return self.app.crash().await,
            9 | 10 => return self.app.advance(Duration::from_secs(1 + dice.roll(6))).await,
            11 => return self.app.drain().await,
            _ => {
                // Some work starts, and is in flight at the next event.
                self.app.node.tick().await.expect("dispatch");
                return pauses(dice.roll(20)).await;
            }
        };
        let answer = self.call("POST", &format!("/v1/broadcasts/{id}/{verb}"), None).await;
        assert!(matches!(answer.status.as_u16(), 200 | 400), "{verb}: {}", answer.text);
    }

    /// Lets the broadcast and its messages finish.
    async fn finish_all(&self, id: &str, seed: u64) {
        for _ in 0..100 {
            self.app.advance(Duration::from_secs(6)).await;
            let broadcast = self.broadcast(id).await;
            let [_, pending, sending, ..] = counts(&broadcast);
            match broadcast["status"].as_str() {
                Some("completed" | "failed" | "cancelled") if pending + sending == 0 => return,
                Some("paused") => drop(self.call("POST", &format!("/v1/broadcasts/{id}/resume"), None).await.expect(200)),
                _ => self.decide_held(id, seed).await,
            }
        }
        panic!("seed {seed}: {}", self.broadcast(id).await);
    }

    /// Decides held messages with an unknown outcome by the provider's record.
    async fn decide_held(&self, id: &str, seed: u64) {
        let page = self.call("GET", &format!("/v1/messages?broadcastId={id}&limit=100"), None).await.expect(200).json();
        for message in page["items"].as_array().expect("items").iter().filter(|message| message["heldReason"].is_string()) {
            let (id, to) = (message["id"].as_str().expect("an id"), message["to"].as_str().expect("a recipient"));
            let action = if self.carrier.sent_to(to) == 0 { "failed" } else { "sent" };
            let answer = self.call("POST", &format!("/v1/messages/{id}/resolve"), Some(json!({"action": action}))).await;
            assert_eq!(answer.status, 200, "seed {seed}: {}", answer.text);
        }
        self.app.drain().await;
    }

    async fn adds_up(&self, id: &str, seed: u64, recipients: &[String]) {
        let broadcast = self.broadcast(id).await;
        let status = broadcast["status"].as_str().expect("a status");
        assert!(matches!(status, "completed" | "failed" | "cancelled"), "seed {seed}: {broadcast}");
        assert_eq!(broadcast["reservedAmount"], 0.0, "seed {seed}: {broadcast}");
        let page = self.call("GET", &format!("/v1/broadcasts/{id}/contacts?limit=100"), None).await.expect(200).json();
        let contacts = page["items"].as_array().expect("items");
        assert_eq!(contacts.len(), recipients.len(), "seed {seed}");
        let mut found = [0_i64; 3];
        for contact in contacts {
            let recipient = contact["recipient"].as_str().expect("a recipient");
            let (at, sent) = match contact["status"].as_str() {
                Some("delivered") => (0, 1),
                Some("failed") => (1, 0),
                Some("skipped") if status == "cancelled" => (2, 0),
                _ => panic!("seed {seed}: {contact} in {broadcast}"),
            };
            assert_eq!(self.carrier.sent_to(recipient), sent, "seed {seed}: {contact}");
            found[at] += 1;
        }
        let [total, pending, sending, delivered, failed, skipped] = counts(&broadcast);
        assert_eq!([total, pending, sending], [contacts.len() as i64, 0, 0], "seed {seed}: {broadcast}");
        assert_eq!([delivered, failed, skipped], found, "seed {seed}: {broadcast}");
    }

    async fn money_adds_up(&self) {
        let sent: usize = self.carrier.0.lock().expect("no panic").values().sum();
        let mut tx = self.app.store().read().await.expect("a reader");
        let balance = tx.find_balance(self.app.project.live).await.expect("a balance");
        assert_eq!(tx.sum_transfers(self.app.project.live).await.expect("a sum"), (balance, balance));
        assert_eq!((balance.reserved.0, balance.spent.0), (0, PRICE * sent as i64), "{balance:?}");
    }
}

async fn lives(count: u64) {
    for backend in Backend::all() {
        let mut lives = Lives::on(backend).await;
        for seed in 0..count {
            lives.live(seed).await;
        }
        lives.money_adds_up().await;
    }
}

// holds: broadcasts.lives
#[tokio::test]
async fn whatever_happens_to_a_broadcast_nobody_gets_two_and_nobody_is_missing() {
    lives(15).await;
}

// holds: broadcasts.lives
#[tokio::test]
#[ignore = "takes a minute; ./test runs it"]
async fn heavy_many_lives_of_broadcasts() {
    let count = std::env::var("NUNCIO_LIVES").ok().map(|count| count.parse().expect("NUNCIO_LIVES is a number"));
    lives(count.unwrap_or(60)).await;
}
