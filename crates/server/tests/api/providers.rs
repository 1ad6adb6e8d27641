//! Events from providers, and the sessions that receive them.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, CallError, CallbackReply, CallbackRequest, Capabilities, Inbound, InboundPart, LateResult, Media,
    Opened, Outcome, ParsedCallback, ProviderEvent, ReceiptTarget, Receipts, Registry, ResolvedAttachment, Scope, SendRequest, Services,
    Sessions, Settings, Stop,
};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::sms::Alphabet;
use nuncio_domain::{Channel, Clock as _, MessageType, Timestamp};
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::{Value, json};

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::ByReference, window: 64 };

/// A provider that accepts each message in two parts, and emits the events that the test posts.
#[derive(Clone, Debug, Default)]
struct Line(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    taken: AtomicUsize,
    sessions: AtomicUsize,
    begun: AtomicUsize,
    opened: AtomicUsize,
    trouble: Mutex<Option<String>>,
}

#[derive(Debug)]
struct Account1 {
    line: Line,
    account: Account,
}

impl Line {
    fn factory(&self) -> AdapterFactory {
        let line = self.clone();
        let open = move |account: &Account, _: &Services| -> Opened {
            Settings::new(&[], account).finish()?;
            line.0.opened.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(Account1 { line: line.clone(), account: account.clone() }))
        };
        AdapterFactory::new("line", &[Channel::Sms], &[], open).with_sessions()
    }
}

#[async_trait]
impl Adapter for Account1 {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        if request.message.request.text.as_deref() == Some("silence") {
            return Outcome::Unknown { failure: Failure::own(FailureCode::UnknownOutcome, "no response"), refs: vec![] };
        }
        let n = self.line.0.taken.fetch_add(1, Ordering::SeqCst);
        Outcome::Accepted { refs: vec![format!("p{n}a"), format!("p{n}b")], cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        Ok("a line".to_owned())
    }

    fn checks_own_sessions(&self) -> bool {
        true
    }

    fn sessions(&self) -> Sessions {
        Sessions::OneNode
    }

    async fn run(&self, mut stop: Stop) {
        self.line.0.begun.fetch_add(1, Ordering::SeqCst);
        self.line.0.sessions.fetch_add(1, Ordering::SeqCst);
        stop.asked().await;
        self.line.0.sessions.fetch_sub(1, Ordering::SeqCst);
    }

    fn trouble(&self) -> Option<String> {
        self.line.0.trouble.lock().expect("no panic").clone()
    }

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        if call.headers.get("x-proof").is_none_or(|proof| proof != "good") {
            return Err(CallError::Unproved("the header X-Proof is missing or wrong".to_owned()));
        }
        if call.method == "GET" {
            return Ok(ParsedCallback {
                reply: CallbackReply { content_type: "text/plain", body: call.query.to_owned() },
                ..ParsedCallback::default()
            });
        }
        let told: Value = serde_json::from_slice(call.body).map_err(|error| CallError::Malformed(error.to_string()))?;
        let (tenant, connection) = (self.account.tenant, self.account.id);
        let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
        let number = |name: &str| told[name].as_u64().and_then(|n| u8::try_from(n).ok()).expect("a number");
        let event = if told.get("part").is_some() {
            ProviderEvent::Part(Box::new(InboundPart {
                tenant,
                connection,
                channel: Channel::Sms,
                from: text("from"),
                to: Some(text("to")).filter(|to| !to.is_empty()),
                key: text("key"),
                sequence: number("part"),
                total: number("of"),
                alphabet: if told["units"].is_null() { Alphabet::Gsm7 } else { Alphabet::Ucs2 },
                octets: told["units"].as_str().map_or_else(|| text("text").into_bytes(), hex),
                patience: Duration::from_secs(600),
                at: call.now,
            }))
        } else if told.get("from").is_some() {
            let mut inbound = Inbound::text((tenant, connection, Channel::Sms), text("id"), text("from"), text("text"), call.now);
            inbound.to = Some(text("to")).filter(|to| !to.is_empty());
            inbound.media = told["media"].as_str().map(media).into_iter().collect();
            inbound.profile_name = told["name"].as_str().map(str::to_owned);
            inbound.at = told["at"].as_i64().map_or(call.now, Timestamp::from_millis);
            inbound.content = serde_json::from_value(told["content"].clone()).ok();
            ProviderEvent::Inbound(inbound)
        } else if let Some(late) = told["late"].as_str() {
            let outcome = match told["refused"].as_str() {
                Some("throttled") => {
                    let failure = Failure::own(FailureCode::RateLimited, "too fast");
                    Outcome::Deferred { retry_after: None, failure, scope: Scope::Connection }
                }
                Some(why) => Outcome::Rejected { failure: Failure::own(FailureCode::InvalidRecipient, why) },
                None => Outcome::Accepted { refs: vec![text("ref")], cost: None },
            };
            let (origin, message) = ((tenant, connection, Channel::Sms).into(), late.parse().expect("an id"));
            ProviderEvent::LateResult(Box::new(LateResult { origin, message, attempt: 0, outcome, receipts: Receipts::ByReference }))
        } else {
            let target = ReceiptTarget::Reference { tenant, connection, reference: text("ref") };
            ProviderEvent::Receipt { target, kind: ReceiptKind::Delivered, at: call.now, raw: Some(told.to_string()) }
        };
        Ok(ParsedCallback { events: vec![event], reply: CallbackReply { content_type: "", body: call.url.to_owned() } })
    }

    async fn fetch_media(&self, reference: &str, _: usize) -> Result<ResolvedAttachment, Failure> {
        let bytes = format!("bytes of {reference}").into_bytes();
        Ok(ResolvedAttachment { filename: "x".to_owned(), content_type: "image/png".to_owned(), content_id: None, bytes })
    }
}

fn hex(text: &str) -> Vec<u8> {
    let octets = text.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).expect("ASCII"));
    octets.map(|two| u8::from_str_radix(two, 16).expect("hex")).collect()
}

fn media(reference: &str) -> Media {
    Media {
        reference: reference.to_owned(),
        filename: Some("photo.png".to_owned()),
        content_type: "image/png".to_owned(),
        content_id: None,
        bytes: None,
    }
}

struct Rig {
    app: TestApp,
    line: Line,
    auth: String,
    callbacks: String,
}

async fn rig(backend: Backend) -> Rig {
    let line = Line::default();
    let registry = Registry::new(vec![nuncio_channel_sim::factory(), line.factory()]);
    let app = TestApp::with(backend, Options { registry, ..Options::default() }).await;
    app.connect(Channel::Sms, "line", json!({}), json!({})).await;
    let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
    let connection = world.connections.iter().find(|c| c.kind == "line").expect("a connection").id;
    let auth = format!("Bearer {}", app.live_key);
    Rig { line, auth, callbacks: format!("/providers/line/{connection}"), app }
}

impl Rig {
    async fn send(&self) -> String {
        self.send_body(json!({"to": "+34600111222", "channel": "sms", "text": "x"})).await
    }

    async fn send_body(&self, body: Value) -> String {
        let sent = self.app.send("POST", "/v1/messages", &[("authorization", &self.auth)], Some(body)).await.expect(202);
        self.app.drain().await;
        sent.json()["message"]["id"].as_str().expect("an id").to_owned()
    }

    async fn status(&self, id: &str) -> String {
        self.get(&format!("/v1/messages/{id}")).await["message"]["status"].as_str().expect("a status").to_owned()
    }

    async fn get(&self, path: &str) -> Value {
        self.app.send("GET", path, &[("authorization", &self.auth)], None).await.expect(200).json()
    }

    async fn tell(&self, body: Value) -> nuncio_testkit::TestResponse {
        self.app.send("POST", &self.callbacks, &[("x-proof", "good")], Some(body)).await
    }
}

#[tokio::test]
async fn a_zero_character_that_somebody_sends_breaks_no_search() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        rig.tell(json!({"id": "in\u{0}1", "from": "+34600111222", "text": "good\u{0}morning"})).await.expect(200);
        let found = rig.get("/v1/messages?text=morning").await;
        assert_eq!(found["items"][0]["text"], "good\u{fffd}morning", "{found}");
        let card = json!({"contacts": [{"name": "Ada\u{0}L", "phones": ["1\u{0}2"]}]});
        rig.tell(json!({"id": "in2", "from": "+34600111222", "text": "evening", "content": card})).await.expect(200);
        rig.tell(json!({"id": "in3", "from": "+34600111222", "text": "evening", "media": "M\u{0}9"})).await.expect(200);
        let found = rig.get("/v1/messages?text=evening").await;
        assert_eq!(found["items"].as_array().map(Vec::len), Some(2), "{found}");
        assert_eq!(found["items"][1]["content"], json!({"contacts": [{"name": "Ada\u{fffd}L", "phones": ["1\u{fffd}2"]}]}));
    }
}

#[tokio::test]
async fn a_time_that_cannot_be_is_that_of_the_callback() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let now = rig.app.clock.now();
        let (day, mut number) = (Duration::from_secs(86_400), 0);
        for (reported, kept) in [
            (now.minus(day), now.minus(day)),
            (now.minus(day * 30), now.minus(day * 30)),
            (now.minus(day * 31), now),
            (Timestamp::from_millis(i64::MIN), now),
            (Timestamp::from_millis(-9_223_372_036_854_775_000), now),
            (now.plus(day), now),
        ] {
            number += 1;
            let from = format!("+3460011122{number}");
            let id = format!("in{number}");
            rig.tell(json!({"id": id, "from": from, "text": "hello", "at": reported.millis()})).await.expect(200);
            let contact = rig.get(&format!("/v1/contacts/phone/{from}")).await;
            assert_eq!(contact["channels"][0]["lastInboundAt"], json!(kept), "{contact}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_proves_itself_is_heard_before_it_is_answered() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let id = rig.send().await;
        assert_eq!(rig.status(&id).await, "sent");
        rig.app.send("POST", &rig.callbacks, &[], Some(json!({"ref": "p0a"}))).await.expect(401);
        rig.app.send("POST", &rig.callbacks, &[("x-proof", "good")], Some(json!("x"))).await.expect(200);
        for unknown in ["/providers/sim/x", "/providers/line/cnx_01hgw2bbg0e9tatjpp9vyrkcyk", &rig.callbacks.replace("/line/", "/sim/")] {
            rig.app.send("POST", unknown, &[("x-proof", "good")], Some(json!({}))).await.expect(404);
        }
        let answer = rig.tell(json!({"ref": "p0a"})).await.expect(200);
        assert_eq!(answer.text, format!("https://nuncio.example{}", rig.callbacks), "the URL as the provider called it");
        assert_eq!(rig.status(&id).await, "sent", "one part of two");
        rig.tell(json!({"ref": "p0b"})).await.expect(200);
        assert_eq!(rig.status(&id).await, "delivered", "it is on disk with the answer, and nothing was drained");
        rig.tell(json!({"ref": "p0b"})).await.expect(200);
        let challenge = rig.app.send("GET", &format!("{}?hub.challenge=7", rig.callbacks), &[("x-proof", "good")], None).await.expect(200);
        assert_eq!((challenge.text.as_str(), challenge.header("content-type")), ("hub.challenge=7", "text/plain"));
    }
}

#[tokio::test]
async fn a_receipt_that_comes_before_the_answer_waits_for_it() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        for part in ["p0a", "p0b", "never"] {
            rig.tell(json!({"ref": part})).await.expect(200);
        }
        let id = rig.send().await;
        assert_eq!(rig.status(&id).await, "sent");
        rig.app.advance(Duration::from_secs(2)).await;
        assert_eq!(rig.status(&id).await, "delivered");
        // Receipts for unknown messages are retried for a day, then kept.
        for _ in 0..30 {
            rig.app.advance(Duration::from_secs(3_600)).await;
        }
        let kept = rig.get(&format!("/v1/messages/{id}/receipts")).await;
        let references: Vec<_> = kept["items"].as_array().expect("a list").iter().map(|r| r["providerMessageId"].clone()).collect();
        assert_eq!(references, ["p0a", "p0b"], "{kept}");
        let strays = rig.get("/v1/stray-receipts").await;
        assert_eq!(strays["items"].as_array().map(Vec::len), Some(1), "{strays}");
        let stray = &strays["items"][0];
        assert_eq!((&stray["providerMessageId"], &stray["status"]), (&json!("never"), &json!("delivered")), "{stray}");
    }
}

/// An SMSC that is slow for a moment answers after its messages were given up.
#[tokio::test]
async fn a_response_that_comes_late_replaces_the_unknown_outcome() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let silent = |on_unknown: &str| json!({"to": "+34600111222", "channel": "sms", "text": "silence", "onUnknown": on_unknown});
        let held = rig.send_body(silent("hold")).await;
        assert_eq!(rig.get(&format!("/v1/messages/{held}")).await["message"]["heldReason"], "unknown_outcome");
        rig.tell(json!({"late": held, "ref": "late1"})).await.expect(200);
        let message = rig.get(&format!("/v1/messages/{held}")).await["message"].clone();
        assert_eq!((&message["status"], &message["providerMessageId"]), (&json!("sent"), &json!("late1")), "{message}");
        assert_eq!(message["attempts"][0]["status"], "accepted", "{message}");
        rig.tell(json!({"ref": "late1"})).await.expect(200);
        assert_eq!(rig.status(&held).await, "delivered");

        let waiting = rig.send_body(silent("resend")).await;
        rig.tell(json!({"late": waiting, "ref": "late2"})).await.expect(200);
        rig.app.advance(Duration::from_secs(600)).await;
        let message = rig.get(&format!("/v1/messages/{waiting}")).await["message"].clone();
        assert_eq!((&message["status"], &message["possibleDuplicate"]), (&json!("sent"), &json!(false)), "{message}");
        assert_eq!(message["attempts"].as_array().map(Vec::len), Some(1), "it is not sent again: {message}");

        let refused = rig.send_body(silent("hold")).await;
        rig.tell(json!({"late": refused, "refused": "no such number"})).await.expect(200);
        let message = rig.get(&format!("/v1/messages/{refused}")).await["message"].clone();
        assert_eq!((&message["status"], &message["errorCode"]), (&json!("failed"), &json!("invalid_recipient")), "{message}");
    }
}

/// A slow provider is no silent one.
#[tokio::test]
async fn late_responses_are_responses_of_the_connection() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let health = async || {
            let shown = rig.app.node.core.senders().all_connections(rig.app.project.live).await.expect("connections");
            let line = shown.into_iter().find(|each| each.kind == "line").expect("a connection");
            serde_json::to_value(line).expect("JSON")["health"]["state"].as_str().expect("a state").to_owned()
        };
        let mut silent = Vec::new();
        for _ in 0..10 {
            let body = json!({"to": "+34600111222", "channel": "sms", "text": "silence", "onUnknown": "hold"});
            silent.push(rig.send_body(body).await);
        }
        assert_eq!(health().await, "resting");
        rig.tell(json!({"late": silent[0], "ref": "late"})).await.expect(200);
        assert_eq!(health().await, "ok");
        rig.app.advance(Duration::from_secs(60)).await;
        rig.tell(json!({"late": silent[1], "refused": "throttled"})).await.expect(200);
        assert_eq!(health().await, "resting");
    }
}

// holds: messages.inbound
#[tokio::test]
async fn a_reaction_to_a_part_is_one_to_its_message() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let id = rig.send().await;
        for n in 0..100 {
            rig.app.clock.advance(Duration::from_millis(1));
            rig.tell(json!({"id": format!("m{n}"), "from": "+34600111222", "text": "newer"})).await.expect(200);
        }
        for (from, reference, wanted) in [("+34600111222", "p0b", id.as_str()), ("+34600111333", "p0b", ""), ("+34600111222", "p9", "")] {
            rig.app.clock.advance(Duration::from_millis(1));
            let content = json!({"emoji": "\u{1F44D}", "reactToMessageId": reference});
            rig.tell(json!({"id": format!("{from} {reference}"), "from": from, "content": content})).await.expect(200);
            let newest = rig.get("/v1/messages?direction=inbound&limit=1").await["items"][0].clone();
            assert_eq!(newest["content"]["reactToMessageId"].as_str().unwrap_or_default(), wanted, "{newest}");
        }
    }
}

#[tokio::test]
async fn an_account_with_sessions_is_checked_by_the_adapter_that_has_them() {
    let rig = rig(Backend::Sqlite).await;
    rig.send().await;
    let opened = rig.line.0.opened.load(Ordering::SeqCst);
    let world = rig.app.node.core.tenant_config(rig.app.project.live).await.expect("the live world");
    let connection = world.connections.iter().find(|c| c.kind == "line").expect("a connection");
    let found = rig.app.node.core.senders().check_connection(rig.app.project.live, connection).await.expect("checked");
    assert_eq!((found.as_deref(), rig.line.0.opened.load(Ordering::SeqCst)), (Ok("a line"), opened));
}

/// Meta sends many receipts in one call, of up to 3 MB.
#[tokio::test]
async fn a_call_of_a_provider_can_be_larger_than_a_request() {
    let rig = rig(Backend::Sqlite).await;
    rig.tell(json!({"ref": "p0a", "more": "x".repeat(3 * 1024 * 1024)})).await.expect(200);
    rig.tell(json!({"ref": "p0a", "more": "x".repeat(5 * 1024 * 1024)})).await.expect(413);
}

/// The account is shared with another system, whose receipts come here too.
#[tokio::test]
async fn foreign_receipts_do_not_delay_ours() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        for part in (0..300).map(|n| format!("foreign{n}")).chain(["p0a", "p0b"].map(str::to_owned)) {
            rig.tell(json!({"ref": part})).await.expect(200);
        }
        let id = rig.send().await;
        assert_eq!(rig.status(&id).await, "sent");
        rig.app.advance(Duration::from_secs(1)).await;
        assert_eq!(rig.status(&id).await, "delivered");
    }
}

#[tokio::test]
async fn what_came_along_from_outside_can_be_had() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let inbound = json!({"id": "m1", "from": "+34600111222", "text": "look", "media": "M-9"});
        rig.tell(inbound.clone()).await.expect(200);
        rig.tell(inbound).await.expect(200);
        let auth = [("authorization", rig.auth.as_str())];
        let listed = rig.app.send("GET", "/v1/messages?since=2026-01-01T00:00:00Z&direction=inbound", &auth, None).await.expect(200).json();
        let [message] = listed["items"].as_array().expect("items").as_slice() else { panic!("one message: {listed}") };
        assert_eq!((&message["text"], &message["status"]), (&json!("look"), &json!("received")));
        let path = format!("/v1/messages/{}/attachments", message["id"].as_str().expect("an id"));
        let attachments = rig.app.send("GET", &path, &auth, None).await.expect(200).json();
        let file = &attachments["items"][0];
        assert_eq!((&file["filename"], &file["mimeType"], &file["size"]), (&json!("photo.png"), &json!("image/png"), &Value::Null));
        let link = file["downloadUrl"].as_str().expect("a link").trim_start_matches("https://nuncio.example").to_owned();
        assert_eq!(rig.app.send("GET", &link, &[], None).await.expect(200).text, "bytes of M-9");
    }
}

// holds: messages.inbound.to
#[tokio::test]
async fn an_inbound_message_says_what_it_was_written_to() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let world = rig.app.node.core.tenant_config(rig.app.project.live).await.expect("the live world");
        let sender = world.default_sender().expect("a default sender").id;
        let patch = json!({"phoneNumber": "+34600000001"});
        let auth = [("authorization", rig.auth.as_str())];
        rig.app.send("PATCH", &format!("/v1/senders/{sender}"), &auth, Some(patch)).await.expect(200);
        let part = |n: u8| json!({"from": "+34600111333", "to": "12345", "key": "k", "part": n, "of": 2, "text": "half "});
        for told in [
            json!({"id": "m1", "from": "+34600111222", "to": "+34600000002", "text": "named"}),
            json!({"id": "m2", "from": "+34600111222", "text": "not named"}),
            part(1),
            part(2),
        ] {
            rig.tell(told).await.expect(200);
            rig.app.clock.advance(Duration::from_millis(1));
        }
        let listed = rig.get("/v1/messages?direction=inbound").await;
        let ends: Vec<_> = listed["items"].as_array().expect("items").iter().map(|m| (m["to"].clone(), m["from"].clone())).collect();
        let expected = [("12345", "+34600111333"), ("+34600000001", "+34600111222"), ("+34600000002", "+34600111222")];
        assert_eq!(ends, expected.map(|(to, from)| (json!(to), json!(from))));
        rig.app.drain().await;
        let events = rig.get("/v1/events?type=message.inbound").await;
        assert_eq!(events["items"][2]["data"]["message"]["to"], "+34600000002", "events say the same");
        assert_eq!(rig.get("/v1/messages?to=%2B34600000002").await["items"].as_array().map(Vec::len), Some(1));
    }
}

#[tokio::test]
async fn a_text_in_parts_is_joined_in_any_order_and_by_any_node() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let tell = async |part: Value| {
            let mut body = json!({"from": "+34600111333", "key": "k7", "of": 2});
            body.as_object_mut().expect("an object").extend(part.as_object().expect("an object").clone());
            rig.tell(body).await.expect(200);
        };
        let texts = async || {
            let listed = rig.get("/v1/messages?since=2026-01-01T00:00:00Z&direction=inbound").await;
            let mut texts: Vec<_> =
                listed["items"].as_array().expect("items").iter().map(|m| m["text"].as_str().expect("text").to_owned()).collect();
            texts.reverse();
            texts
        };
        tell(json!({"part": 2, "text": "world"})).await;
        assert_eq!(texts().await, Vec::<String>::new());
        tell(json!({"part": 1, "text": "Hello, "})).await;
        assert_eq!(texts().await, ["Hello, world"], "it is on disk with the answer");
        // Its parts are resent, since the responses were lost.
        tell(json!({"part": 2, "text": "world"})).await;
        tell(json!({"part": 1, "text": "Hello, "})).await;
        // The phone reuses its number, with half a character in each part; an earlier message stayed incomplete.
        tell(json!({"part": 1, "text": "lost"})).await;
        tell(json!({"part": 1, "units": "d83d"})).await;
        assert_eq!(texts().await, ["Hello, world", "lost[…]"], "nothing that was answered is lost");
        tell(json!({"part": 2, "units": "de00"})).await;
        assert_eq!(texts().await, ["Hello, world", "lost[…]", "\u{1F600}"]);
        // Missing parts are not awaited forever.
        tell(json!({"part": 2, "text": "late", "key": "k8", "of": 3})).await;
        rig.app.advance(Duration::from_secs(599)).await;
        assert_eq!(texts().await.len(), 3);
        rig.app.advance(Duration::from_secs(2)).await;
        rig.app.drain().await;
        assert_eq!(texts().await.last().map(String::as_str), Some("[…]late[…]"));
        // A part that arrives while its incomplete message is being delivered starts another one, and is not lost with it.
        rig.app.advance(Duration::from_secs(1)).await;
        tell(json!({"part": 1, "text": "first", "key": "k9"})).await;
        let mut tx = rig.app.store().begin().await.expect("a writer");
        let tenant = rig.app.project.live;
        let far = rig.app.node.core.ids().clock.now().plus(Duration::from_secs(86_400));
        let mut closing =
            tx.due_reassemblies(far, 10).await.expect("rows").into_iter().find(|r| r.key == "k9" && r.tenant == tenant).expect("it waits");
        closing.parts.sealed = true;
        tx.put_reassembly(&closing).await.expect("a row");
        tx.commit().await.expect("a commit");
        tell(json!({"part": 2, "text": "second", "key": "k9"})).await;
        assert_eq!(texts().await.last().map(String::as_str), Some("first[…]"));
        // The record of joined messages expires, and nothing is delivered twice.
        rig.app.advance(Duration::from_secs(600)).await;
        rig.app.drain().await;
        assert_eq!(texts().await.split_off(4), ["first[…]", "[…]second"]);
    }
}

#[tokio::test]
async fn an_incomplete_text_that_cannot_be_stored_does_not_keep_others_from_it() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let refuse = match backend {
            Backend::Sqlite => {
                "CREATE TRIGGER refuse BEFORE INSERT ON messages WHEN NEW.sent_from = '+34600111000' BEGIN SELECT RAISE(ABORT, 'no'); END"
            }
            Backend::Postgres => "ALTER TABLE messages ADD CONSTRAINT refuse CHECK (sent_from <> '+34600111000')",
        };
        rig.app.sql(refuse).await;
        for (from, key) in [("+34600111000", "k1"), ("+34600111333", "k2")] {
            rig.tell(json!({"from": from, "key": key, "part": 1, "of": 2, "text": "half"})).await.expect(200);
            rig.app.advance(Duration::from_secs(1)).await;
        }
        let texts = async || {
            let listed = rig.get("/v1/messages?direction=inbound").await;
            listed["items"].as_array().expect("items").iter().map(|m| m["from"].as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>()
        };
        rig.app.advance(Duration::from_secs(600)).await;
        rig.app.drain().await;
        assert_eq!(texts().await, ["+34600111333"]);
        rig.app.sql(if backend == Backend::Sqlite { "DROP TRIGGER refuse" } else { "ALTER TABLE messages DROP CONSTRAINT refuse" }).await;
        rig.app.advance(Duration::from_secs(61)).await;
        rig.app.drain().await;
        assert_eq!(texts().await.len(), 2, "it is tried again");
    }
}

#[tokio::test]
async fn a_session_is_kept_while_its_connection_is_there() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let (running, begun) = (|| rig.line.0.sessions.load(Ordering::SeqCst), || rig.line.0.begun.load(Ordering::SeqCst));
        let settle = async |wanted: usize| {
            for _ in 0..50 {
                rig.app.advance(Duration::from_secs(1)).await;
                tokio::task::yield_now().await;
                if running() == wanted {
                    return;
                }
            }
            panic!("{wanted} sessions are wanted, there are {}", running());
        };
        settle(1).await;
        assert_eq!(begun(), 1, "before anything was sent");
        *rig.line.0.trouble.lock().expect("no panic") = Some("the far end is down".to_owned());
        let world = rig.app.node.core.tenant_config(rig.app.project.live).await.expect("the live world");
        let sender = world.default_sender().expect("a sender").id;
        let path = format!("/v1/senders/{sender}/channels/sms");
        let auth = [("authorization", rig.auth.as_str())];
        let shown = rig.app.send("GET", &path, &auth, None).await.expect(200).json();
        assert_eq!((&shown["health"]["state"], &shown["health"]["reason"]), (&json!("failing"), &json!("the far end is down")));
        let request = nuncio::admin::Request { project: None, command: nuncio::admin::Command::Doctor };
        let found = nuncio::admin::run(&rig.app.node.core, request).await.expect("findings").text;
        assert!(found.contains("(sms by line): the far end is down"), "{found}");
        rig.app.send("DELETE", &path, &auth, None).await.expect(204);
        settle(0).await;
    }
}

#[tokio::test]
async fn a_throttle_is_kept() {
    for backend in Backend::all() {
        let rig = rig(backend).await;
        let world = rig.app.node.core.tenant_config(rig.app.project.live).await.expect("the live world");
        let sender = world.default_sender().expect("a sender").id;
        let put = json!({"kind": "line", "throttle": {"messagesPerSecond": 0.5, "burst": 2}});
        let auth = [("authorization", rig.auth.as_str())];
        rig.app.send("PUT", &format!("/v1/senders/{sender}/channels/sms"), &auth, Some(put)).await.expect(200);
        for _ in 0..5 {
            rig.send().await;
        }
        let taken = || rig.line.0.taken.load(Ordering::SeqCst);
        assert_eq!(taken(), 2, "as many as the burst allows");
        for wanted in [3, 4, 5] {
            rig.app.advance(Duration::from_secs(1)).await;
            assert_eq!(taken(), wanted - 1);
            rig.app.advance(Duration::from_secs(1)).await;
            assert_eq!(taken(), wanted);
        }
    }
}
