//! A webhook endpoint that outlives the server, and a broadcast that is sent across crashes.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use nuncio_domain::Environment;
use nuncio_testkit::Receiver;
use serde_json::{Value, json};

use crate::http::Http;
use crate::server::Keys;
use crate::sink::BROADCAST;
use crate::verify::{Case, PATIENCE, WORLDS};

/// Recipients of the broadcast.
const RECIPIENTS: usize = 1_500;
/// Maximum number of recipients per request.
const CALL: usize = 500;

/// Resources that are watched in addition to single messages.
#[derive(Debug)]
pub(crate) struct Watch {
    receiver: Receiver,
    broadcast: String,
    sent: bool,
}

/// Events of one resource by sequence, in the order of first arrival.
#[derive(Debug, Default)]
struct Heard(HashMap<String, Vec<Event>>);

#[derive(Clone, PartialEq, Debug)]
struct Event {
    sequence: i64,
    /// The body, byte for byte.
    body: Vec<u8>,
    /// Status of the resource at that time.
    status: String,
}

impl Watch {
    /// Subscribes the endpoint to all events of the default senders of both environments, and creates the draft.
    pub(crate) async fn prepare(server: SocketAddr, keys: &Keys) -> Self {
        let (receiver, mut http) = (Receiver::start().await, Http::connect(server).await.expect("the server listens"));
        let mut ask = async |world, operation: String, body: Value| {
            let answer = http.ask(keys.of(world), &operation, &body).await.expect("an answer");
            assert!(matches!(answer.status, 200 | 201), "{operation}: {answer:?}");
            answer.json
        };
        for world in WORLDS {
            let me = ask(world, "POST /v1/broadcasts".into(), draft()).await;
            let sender = me["broadcast"]["senderId"].as_str().expect("a sender").to_owned();
            ask(world, format!("PATCH /v1/senders/{sender}"), json!({"webhookUrl": receiver.url})).await;
        }
        let made = ask(Environment::Live, "POST /v1/broadcasts".into(), draft()).await;
        let broadcast = made["broadcast"]["id"].as_str().expect("an id").to_owned();
        for call in (0..RECIPIENTS).collect::<Vec<_>>().chunks(CALL) {
            let contacts: Vec<_> = call.iter().map(|n| json!({"recipient": recipient(*n)})).collect();
            ask(Environment::Live, format!("POST /v1/broadcasts/{broadcast}/contacts"), json!({"contacts": contacts})).await;
        }
        Self { receiver, broadcast, sent: false }
    }

    /// Sends the broadcast, unless that was confirmed. After a lost response, the next call sends it again.
    pub(crate) async fn send(&mut self, server: SocketAddr, keys: &Keys) {
        if self.sent {
            return;
        }
        let Ok(mut http) = Http::connect(server).await else { return };
        let operation = format!("POST /v1/broadcasts/{}/send", self.broadcast);
        let Ok(answer) = http.ask(keys.of(Environment::Live), &operation, &json!({})).await else { return };
        let before = answer.json["details"]["currentStatus"].as_str();
        self.sent = answer.status == 202 || answer.status == 400 && before.is_some_and(|status| status != "draft");
        assert!(self.sent || answer.status == 503, "{answer:?}");
    }

    /// Waits until the broadcast completes. Fails unless every recipient has one message and got one email. Decides held messages, which a
    /// crash left with an unknown outcome, by asking the relay.
    pub(crate) async fn reaches_everybody(&self, case: &Case<'_>) {
        self.becomes(case, "status", &"completed".into()).await;
        let messages = case.messages(Environment::Live).await;
        let mut of: BTreeMap<&str, &Value> = BTreeMap::new();
        for message in messages.iter().filter(|message| message["broadcastId"] == self.broadcast.as_str()) {
            let before = of.insert(message["to"].as_str().expect("a recipient"), message);
            assert!(before.is_none(), "two messages: {before:?} and {message}");
        }
        assert_eq!(of.len(), RECIPIENTS, "recipients without a message");
        let (taken, mut held) = (case.sink.taken(), 0);
        for (to, message) in of {
            let mails = taken.get(to).copied().unwrap_or_default();
            if message["heldReason"] == "unknown_outcome" {
                let action = if mails == 0 { "resend" } else { "sent" };
                let operation = format!("POST /v1/messages/{}/resolve", message["id"].as_str().expect("an id"));
                let answer = case.http().await.ask(case.keys.of(Environment::Live), &operation, &json!({"action": action})).await;
                assert_eq!(answer.expect("an answer").status, 200);
                held += 1;
            } else {
                assert!(message["status"] == "sent" && mails == 1, "{mails} mails: {message:#}");
            }
        }
        let broadcast = self.becomes(case, "deliveredCount", &RECIPIENTS.into()).await;
        let counts = ["totalContacts", "pendingCount", "sendingCount", "failedCount", "skippedCount"].map(|name| &broadcast[name]);
        assert_eq!(counts, [&json!(RECIPIENTS), &json!(0), &json!(0), &json!(0), &json!(0)], "{broadcast:#}");
        let contacts = case.walk(Environment::Live, &format!("/v1/broadcasts/{}/contacts", self.broadcast)).await;
        assert!(contacts.len() == RECIPIENTS && contacts.iter().all(|contact| contact["status"] == "delivered"));
        let taken = case.sink.taken();
        let mails: Vec<_> = contacts.iter().filter_map(|contact| taken.get(contact["recipient"].as_str()?)).collect();
        assert!(mails.len() == RECIPIENTS && mails.iter().all(|times| **times == 1), "somebody got none or two");
        eprintln!("{RECIPIENTS} recipients, {held} of them held");
    }

    /// Waits until a field of the broadcast has this value.
    async fn becomes(&self, case: &Case<'_>, field: &str, value: &Value) -> Value {
        let (began, mut http) = (Instant::now(), case.http().await);
        let path = format!("/v1/broadcasts/{}", self.broadcast);
        loop {
            let answer = http.get(case.keys.of(Environment::Live), &path).await.expect("an answer");
            let broadcast = answer.json["broadcast"].clone();
            if broadcast[field] == *value {
                return broadcast;
            }
            assert!(began.elapsed() < PATIENCE, "{broadcast:#}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// Waits until all events of all messages have arrived: first arrivals in order, repetitions identical.
    pub(crate) async fn everything_is_told(&self, case: &Case<'_>) {
        let mut ends: Vec<(String, String)> = vec![(self.broadcast.clone(), "completed".to_owned())];
        for world in WORLDS {
            for message in case.messages(world).await {
                let text = |field: &str| message[field].as_str().expect("a text").to_owned();
                ends.push((text("id"), text("status")));
            }
        }
        let (began, mut heard, mut read) = (Instant::now(), Heard::default(), 0);
        loop {
            let got = self.receiver.got();
            got.iter().skip(read).for_each(|posted| heard.note(&posted.bytes));
            read = got.len();
            let missing: Vec<_> = ends.iter().filter(|(id, status)| !heard.is_whole(id, status)).collect();
            if missing.is_empty() {
                break;
            }
            if began.elapsed() > PATIENCE {
                let (id, status) = missing[0];
                let told: Vec<i64> = heard.0.get(id).into_iter().flatten().map(|event| event.sequence).collect();
                let mut deliveries = Vec::new();
                for world in WORLDS {
                    deliveries.extend(case.walk(world, "/v1/webhooks/deliveries").await.into_iter().filter(|d| d.to_string().contains(id)));
                }
                panic!("{} of {} are not told, such as {id} ({status}), of which {told:?}: {deliveries:#?}", missing.len(), ends.len());
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let events: usize = heard.0.values().map(Vec::len).sum();
        eprintln!("{events} events of {} resources, {} posts, after {:?}", ends.len(), read, began.elapsed());
    }
}

impl Heard {
    fn note(&mut self, body: &[u8]) {
        let json: Value = serde_json::from_slice(body).expect("JSON");
        let kind = json["type"].as_str().and_then(|name| name.split('.').next()).expect("a type").to_owned();
        let resource = &json["data"][&kind];
        let event = Event {
            sequence: json["sequence"].as_i64().expect("a sequence"),
            body: body.to_vec(),
            status: resource["status"].as_str().expect("a status").to_owned(),
        };
        let events = self.0.entry(resource["id"].as_str().expect("an id").to_owned()).or_default();
        if let Some(first) = events.iter().find(|known| known.sequence == event.sequence) {
            assert_eq!(first, &event, "told again, and differently");
            return;
        }
        assert!(events.last().is_none_or(|last| last.sequence < event.sequence), "{:?} came after {events:?}", event);
        events.push(event);
    }

    /// Returns whether all events of a resource have arrived, up to its current status.
    fn is_whole(&self, id: &str, status: &str) -> bool {
        let Some(events) = self.0.get(id) else { return false };
        let without_gap = id.starts_with("brd_") || events.iter().zip(1..).all(|(event, n)| event.sequence == n);
        without_gap && events.last().is_some_and(|last| last.status == status)
    }
}

fn draft() -> Value {
    json!({"name": "x", "channel": "email", "emailSubject": BROADCAST, "text": "Hello from Acme"})
}

fn recipient(n: usize) -> String {
    format!("everybody{n}@example.com")
}
