//! Comparing what clients were told, what the relay took and what the server says.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nuncio_domain::{Environment, Timestamp};
use serde_json::Value;

use crate::http::Http;
use crate::ledger::{Entry, Ledger};
use crate::server::{Install, Keys, now};
use crate::sink::Sink;

/// Most live mails under way at once.
pub(crate) const MAIL_WINDOW: usize = 8;
/// Most sandbox messages under way at once.
const SANDBOX_WINDOW: usize = 256;
/// How long everything may take to become final: a dead node is believed dead after 10 s, and what it left is sent again after 5.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// How long before the end of a process the last receipts came that it may have taken with it.
const RECEIPTS_LOST: Duration = Duration::from_secs(3);
pub(crate) const WORLDS: [Environment; 2] = [Environment::Live, Environment::Test];

/// A server after all that was done to it.
#[derive(Debug)]
pub(crate) struct Case<'a> {
    pub(crate) server: SocketAddr,
    pub(crate) install: &'a Install,
    pub(crate) keys: &'a Keys,
    pub(crate) ledger: &'a Ledger,
    pub(crate) sink: &'a Sink,
    /// When the test began.
    pub(crate) since: Timestamp,
    /// When a process ended without being asked, in order.
    pub(crate) ends: &'a [Timestamp],
}

impl Case<'_> {
    /// Waits until everything is final, and fails unless the server has kept every promise.
    pub(crate) async fn verify(&self) {
        self.settle().await;
        self.nothing_is_lost().await;
        let mut unknown = vec![0; self.ends.len()];
        for world in WORLDS {
            let all = self.messages(world).await;
            self.count_unknown(world, &all, &mut unknown);
            let messages = by_token(world, all);
            self.nothing_is_there_twice(world, &messages).await;
            for message in messages.values() {
                self.went_its_way(world, message);
            }
        }
        self.doctor_is_content().await;
        let entries = self.ledger.entries();
        let twice = self.sink.taken().values().filter(|times| **times > 1).count();
        eprintln!("{} accepted; {twice} mails twice; attempts of unknown outcome per end: {unknown:?}", entries.len());
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
            // A broadcast holds what may have gone out.
            left.retain(|message| message["broadcastId"].is_null() || message["heldReason"].is_null());
            if left.is_empty() {
                // What a dead process did not hear stays `sent`; everything else still comes.
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

    /// A page of messages with one of these statuses.
    async fn page(&self, http: &mut Http, world: Environment, status: &str) -> Vec<Value> {
        let path = format!("/v1/messages?limit=100&since={}&status={status}", self.since);
        let answer = http.get(self.keys.of(world), &path).await.expect("an answer");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json["items"].as_array().expect("items").clone()
    }

    /// Whether a process ended just after the message was sent, and may have taken the receipt with it: a provider tells once.
    fn receipt_may_be_lost(&self, message: &Value) -> bool {
        let sent = time(&message["sentAt"]);
        self.ends.iter().any(|end| *end >= sent && end.since(sent) < RECEIPTS_LOST)
    }

    async fn nothing_is_lost(&self) {
        let lost = self.lost().await;
        assert!(lost.is_empty(), "{} accepted messages are gone: {:?}", lost.len(), &lost[..lost.len().min(5)]);
    }

    /// Messages that a client saw accepted, and that are not there.
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

    /// All messages of a world.
    pub(crate) async fn messages(&self, world: Environment) -> Vec<Value> {
        self.walk(world, "/v1/messages").await
    }

    /// Everything on the pages of a list.
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

    /// Every message stands for a request that was accepted, or whose answer was lost; one idempotency key has one message.
    async fn nothing_is_there_twice(&self, world: Environment, messages: &HashMap<String, Value>) {
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

    /// The message arrived, and more than once only if it says so.
    fn went_its_way(&self, world: Environment, message: &Value) {
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

    /// What a process leaves in doubt when it ends is at most what it had under way, and no message is marked without such an attempt.
    fn count_unknown(&self, world: Environment, messages: &[Value], all: &mut [usize]) {
        let mut counts = vec![0; self.ends.len()];
        for message in messages {
            let attempts = message["attempts"].as_array().expect("attempts");
            let unknown: Vec<_> = attempts.iter().filter(|attempt| attempt["status"] == "unknown").collect();
            // A node that was believed dead may tell later what came of its attempt, which then is not unknown any more.
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

/// Messages by token, but for those of broadcasts.
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
