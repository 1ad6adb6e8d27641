//! Compares the records of clients, the relay and the server.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nuncio_domain::{Environment, Timestamp};
use serde_json::Value;

use crate::http::Http;
use crate::ledger::{Entry, Ledger};
use crate::server::{Install, Keys, now};
use crate::sink::Sink;

/// Maximum number of live emails in flight.
pub(crate) const MAIL_WINDOW: usize = 8;
/// Maximum number of sandbox messages in flight.
const SANDBOX_WINDOW: usize = 256;
/// Maximum time until all messages are final: a dead node is detected after 10 s, and its messages are retried after 5.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A process can lose receipts of messages sent within this time before its end.
const RECEIPTS_LOST: Duration = Duration::from_secs(3);
pub(crate) const WORLDS: [Environment; 2] = [Environment::Live, Environment::Test];

/// A server after a test's load and failures.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) server: SocketAddr,
    pub(crate) install: &'a Install,
    pub(crate) keys: &'a Keys,
    pub(crate) ledger: &'a Ledger,
    pub(crate) sink: &'a Sink,
    /// Start of the test.
    pub(crate) since: Timestamp,
    /// When processes ended unexpectedly, in order.
    pub(crate) ends: &'a [Timestamp],
}

impl Case<'_> {
    /// Waits until all messages are final. Fails unless the server has kept every promise. Returns how many attempts each end left unknown.
    pub(crate) async fn verify(&self) -> Vec<usize> {
        self.settle().await;
        self.check_losses().await;
        let mut unknown = vec![0; self.ends.len()];
        for world in WORLDS {
            let all = self.messages(world).await;
            self.count_unknown(world, &all, &mut unknown);
            let messages = by_token(world, all);
            self.check_duplicates(world, &messages).await;
            for message in messages.values() {
                self.check_arrival(world, message);
            }
        }
        self.doctor_is_content().await;
        let entries = self.ledger.entries();
        let twice = self.sink.taken().values().filter(|times| **times > 1).count();
        eprintln!("{} accepted; {twice} mails twice; attempts of unknown outcome per end: {unknown:?}", entries.len());
        unknown
    }

    pub(crate) async fn http(&self) -> Http {
        Http::connect(self.server).await.expect("the server listens")
    }

    async fn settle(&self) {
        let (began, mut http) = (Instant::now(), self.http().await);
        loop {
            let mut left = Vec::new();
            for world in WORLDS {
                left.extend(self.page(&mut http, world, "scheduled,queued,sending").await);
            }
            // A broadcast's messages with an unknown outcome are held.
            left.retain(|message| message["broadcastId"].is_null() || message["heldReason"].is_null());
            if left.is_empty() {
                // Messages whose receipt a dead process lost stay `sent`; all others become final.
                left = self.page(&mut http, Environment::Test, "sent").await;
                left.retain(|message| !self.receipt_may_be_lost(message));
            }
            if left.is_empty() {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "at {} {} and more still are unfinished, such as {:#}", now(), left.len(), left[0]);
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Returns a page of messages with one of these statuses.
    async fn page(&self, http: &mut Http, world: Environment, status: &str) -> Vec<Value> {
        let path = format!("/v1/messages?limit=100&since={}&status={status}", self.since);
        let answer = http.get(self.keys.of(world), &path).await.expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json["items"].as_array().expect("items").clone()
    }

    /// Returns whether a process ended just after the message was sent and may have lost the receipt, which a provider sends once.
    fn receipt_may_be_lost(&self, message: &Value) -> bool {
        let sent = time(&message["sentAt"]);
        self.ends.iter().any(|end| *end >= sent && end.since(sent) < RECEIPTS_LOST)
    }

    async fn check_losses(&self) {
        let lost = self.lost().await;
        assert!(lost.is_empty(), "{} accepted messages are gone: {:?}", lost.len(), &lost[..lost.len().min(5)]);
    }

    /// Returns messages that a client saw accepted and that are missing.
    pub(crate) async fn lost(&self) -> Vec<Entry> {
        let (mut http, mut lost) = (self.http().await, Vec::new());
        for entry in self.ledger.entries() {
            let answer = http.get(self.keys.of(entry.world), &format!("/v1/messages/{}", entry.id)).await.expect("an answer");
            if answer.status == 404 {
                lost.push(entry);
            } else {
                assert_eq!((answer.status, token(&answer.json["message"], entry.world)), (200, entry.token.as_str()), "{answer:?}");
            }
        }
        lost
    }

    /// Returns all messages of an environment.
    pub(crate) async fn messages(&self, world: Environment) -> Vec<Value> {
        self.walk(world, "/v1/messages").await
    }

    /// Returns all items of a list.
    pub(crate) async fn walk(&self, world: Environment, list: &str) -> Vec<Value> {
        let (mut http, mut found, mut cursor) = (self.http().await, Vec::new(), String::new());
        loop {
            let path = format!("{list}?limit=100{cursor}");
            let answer = http.get(self.keys.of(world), &path).await.expect("an answer");
            assert_eq!(answer.status, 200, "{answer:?}");
            found.extend(answer.json["items"].as_array().expect("items").iter().cloned());
            let Some(next) = answer.json["nextCursor"].as_str() else { return found };
            cursor = format!("&cursor={next}");
        }
    }

    /// Checks that every message belongs to a request that was accepted or whose response was lost, and that an idempotency key has one
    /// message.
    async fn check_duplicates(&self, world: Environment, messages: &HashMap<String, Value>) {
        let entries: Vec<_> = self.ledger.entries().into_iter().filter(|entry| entry.world == world).collect();
        let accepted: HashSet<_> = entries.iter().map(|entry| entry.token.as_str()).collect();
        for (token, message) in messages {
            assert!(!self.ledger.was_refused(token), "refused, and there all the same: {message}");
            assert!(accepted.contains(token.as_str()) || self.ledger.is_in_doubt(token), "nobody sent {message}");
        }
        let mut http = self.http().await;
        for entry in entries.iter().filter(|entry| entry.key.is_some()) {
            let path = format!("/v1/messages?idempotencyKey={}", entry.key.as_deref().unwrap_or_default());
            let answer = http.get(self.keys.of(world), &path).await.expect("an answer");
            let ids: Vec<_> = answer.json["items"].as_array().expect("items").iter().map(|message| message["id"].as_str()).collect();
            assert_eq!(ids, [Some(entry.id.as_str())], "messages of {entry:?}");
        }
    }

    /// Checks that the message arrived, and more than once only if it is marked so.
    fn check_arrival(&self, world: Environment, message: &Value) {
        let marked = message["possibleDuplicate"].as_bool().expect("a mark");
        if world == Environment::Test {
            let orphaned = message["status"] == "sent" && self.receipt_may_be_lost(message);
            assert!(message["status"] == "delivered" || orphaned, "{message:#}");
            return;
        }
        assert_eq!(message["status"], "sent", "{message:#}");
        let times = self.sink.taken().get(token(message, world)).copied().unwrap_or_default();
        assert!(times == 1 || times > 1 && marked, "the relay took it {times} times: {message:#}");
    }

    /// Checks that each process left at most its attempts in flight unknown, and that only messages with such attempts are marked.
    fn count_unknown(&self, world: Environment, messages: &[Value], all: &mut [usize]) {
        let mut counts = vec![0; self.ends.len()];
        for message in messages {
            let attempts = message["attempts"].as_array().expect("attempts");
            let unknown: Vec<_> = attempts.iter().filter(|attempt| attempt["status"] == "unknown").collect();
            // A node that was declared dead can report its attempt's result later; the attempt is then not unknown any more.
            let taken = attempts.iter().filter(|attempt| attempt["status"] == "accepted" || attempt["status"] == "delivered").count();
            let marked = message["possibleDuplicate"] == true;
            assert!(!marked || !unknown.is_empty() || taken > 1, "marked without a reason: {message:#}");
            for attempt in unknown {
                let started = time(&attempt["startedAt"]);
                let end = self.ends.iter().position(|end| started <= *end);
                counts[end.unwrap_or_else(|| panic!("in doubt although nothing ended: {message:#}"))] += 1;
            }
        }
        let window = if world == Environment::Live { MAIL_WINDOW } else { SANDBOX_WINDOW };
        assert!(counts.iter().all(|count| *count <= window), "{} attempts in doubt per end: {counts:?}", world.as_str());
        all.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }

    async fn doctor_is_content(&self) {
        let (status, json) = self.install.run(&["doctor"]).await;
        assert!(status.success() && json["findings"] == Value::Array(Vec::new()), "{status}: {json:#}");
    }
}

/// Returns messages by token, without those of broadcasts.
fn by_token(world: Environment, messages: Vec<Value>) -> HashMap<String, Value> {
    let mut found = HashMap::new();
    for message in messages.into_iter().filter(|message| message["broadcastId"].is_null()) {
        let token = token(&message, world).to_owned();
        if let Some(before) = found.get(&token) {
            panic!("one request became two messages: {before} and {message}");
        }
        found.insert(token, message);
    }
    found
}

fn token(message: &Value, world: Environment) -> &str {
    let field = if world == Environment::Live { "subject" } else { "text" };
    message[field].as_str().unwrap_or_default()
}

fn time(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap_or_default()).unwrap_or_else(|_| panic!("{value} is no time"))
}
