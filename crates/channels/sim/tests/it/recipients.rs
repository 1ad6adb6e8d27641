//! Every special recipient, on every channel, at every attempt.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::contract::{message, request};
use nuncio_channel::{Account, Adapter, Outcome, ProviderEvent, ReceiptTarget, SendRequest};
use nuncio_channel_sim::RESUME_AFTER;
use nuncio_domain::lifecycle::{Change, ReceiptKind};
use nuncio_domain::message::{Message, NodeId};
use nuncio_domain::{Channel, FieldError, MessageType, RequestedChannel};
use serde_json::json;

use crate::support::{Recorder, account, services};

const PHONES: [Channel; 4] = [Channel::Sms, Channel::SmsOneway, Channel::Whatsapp, Channel::Voice];
const CHATS: [Channel; 2] = [Channel::Telegram, Channel::Instagram];
const PLAIN: &str = "accepted; +0ms delivered";

struct World {
    account: Account,
    adapter: Arc<dyn Adapter>,
    events: Arc<Recorder>,
}

impl World {
    fn of(channel: Channel) -> Self {
        let (account, events) = (account(channel), Arc::new(Recorder::default()));
        let adapter = nuncio_channel_sim::factory().open(&account, &services(events.clone())).expect("no settings are needed");
        Self { account, adapter, events }
    }

    fn message(&self, to: &str) -> Message {
        let mut message = message(&self.account, to, 0);
        message.request_mut().text = Some("Hello".to_owned());
        message
    }

    /// What one attempt comes to, in words. What must hold for every attempt is asserted on the way.
    async fn attempt(&self, message: &Message, channel: Channel, attempt: usize) -> String {
        let request = SendRequest { attempt, channel, ..request(message) };
        let outcome = self.adapter.send(&request).await;
        let mut words = match outcome {
            Outcome::Accepted { refs, cost } => {
                let id = message.id.to_string();
                assert_eq!(refs, [format!("sim_{}_{attempt}", &id["msg_".len()..])]);
                assert_eq!(cost, None);
                "accepted".to_owned()
            }
            Outcome::Deferred { retry_after, failure, scope } => {
                format!("deferred {:?} {:?} {} {:?}", scope, retry_after, failure.code, failure.message)
            }
            Outcome::Rejected { failure } => format!("rejected {} {:?}", failure.code, failure.message),
            Outcome::Unknown { failure, .. } => format!("unknown {}", failure.code),
        };
        for (event, after) in self.events.drain() {
            words.push_str(&format!("; +{}ms {}", after.as_millis(), self.told(&event, after, &request)));
        }
        words
    }

    fn told(&self, event: &ProviderEvent, after: Duration, request: &SendRequest<'_>) -> String {
        let (tenant, message) = (self.account.tenant, request.message.id);
        match event {
            ProviderEvent::Receipt { target, kind, at, .. } => {
                let attempt = Some(request.attempt);
                assert_eq!(*target, ReceiptTarget::Attempt { tenant, message, attempt, connection: self.account.id });
                assert_eq!(*at, request.now.plus(after));
                match kind {
                    ReceiptKind::Delivered => "delivered".to_owned(),
                    ReceiptKind::Read => "read".to_owned(),
                    ReceiptKind::Failed(failure) => format!("failed {}", failure.code),
                    other => panic!("{other:?} is never told"),
                }
            }
            ProviderEvent::Inbound(inbound) => {
                assert_eq!((inbound.tenant, inbound.connection, inbound.channel), (tenant, self.account.id, request.channel));
                assert_eq!((inbound.from.as_str(), inbound.at), (request.message.to.as_str(), request.now.plus(after)));
                let (id, nth) = (message.to_string(), if after == RESUME_AFTER { "2" } else { "" });
                assert_eq!(inbound.provider_message_id, format!("sim_{}_{}_reply{nth}", &id["msg_".len()..], request.attempt));
                format!("inbound {:?}", inbound.text)
            }
            ProviderEvent::Complaint { tenant: whose, message: which } => {
                assert_eq!((*whose, *which), (tenant, message));
                "complaint".to_owned()
            }
            ProviderEvent::Bounced { tenant: whose, message: which, recipient: None } => {
                assert_eq!((*whose, *which), (tenant, message));
                "bounced".to_owned()
            }
            ProviderEvent::Bounced { .. } => panic!("the sandbox has no aliases"),
            ProviderEvent::OptedOut(_) => panic!("recipients opt out by their words"),
            ProviderEvent::Part(_) => panic!("the sandbox sends whole messages"),
            ProviderEvent::TemplateDecided { .. } => panic!("a message decides about no template"),
            ProviderEvent::LateResult(_) => panic!("the sandbox is never late"),
        }
    }
}

const INVALID: &str = "rejected invalid_recipient \"simulated: the recipient does not exist\"";
const TIMED_OUT: &str = "deferred Message None undeliverable \"simulated: timed out\"";
const THROTTLED: &str = "deferred Message Some(2s) rate_limited \"simulated: too many messages at once\"";
const REPLIED: &str = "accepted; +0ms delivered; +100ms inbound \"Reply to: Hello\"";
const UNKNOWN: &str = "unknown unknown_outcome";
const HELP: &str = "accepted; +0ms delivered; +100ms inbound \"HELP\"";
const BLOCKED: &str = "rejected blocked_by_recipient \"simulated: the recipient has blocked the sender\"";
const REFUSED: &str = "rejected content_rejected \"simulated: the content is not allowed\"";
const LATE: &str = "accepted; +30000ms delivered";
const CORRECTED: &str = "accepted; +0ms failed undeliverable; +30000ms delivered";

/// The first and every later attempt to phone or chat number N of the table.
fn numbered(n: u8, channel: Channel) -> (&'static str, &'static str) {
    const UNREACHABLE: &str = "rejected undeliverable \"simulated: delivery failed\"";
    const BOUNCED: &str = "accepted; +0ms failed undeliverable";
    const STOPPED: &str = "accepted; +0ms delivered; +100ms inbound \"STOP\"";
    const RESUMED: &str = "accepted; +0ms delivered; +100ms inbound \"STOP\"; +5000ms inbound \"START\"";
    const READ: &str = "accepted; +0ms delivered; +100ms read";
    match n {
        1 => (INVALID, INVALID),
        2 if channel.is_app() => (UNREACHABLE, UNREACHABLE),
        2 => (BOUNCED, BOUNCED),
        3 => (TIMED_OUT, PLAIN),
        4 => (THROTTLED, PLAIN),
        5 => ("accepted", "accepted"),
        6 => (REPLIED, REPLIED),
        7 => (STOPPED, STOPPED),
        8 => (UNKNOWN, PLAIN),
        10 if matches!(channel, Channel::Whatsapp | Channel::Instagram) => (READ, READ),
        11 => (RESUMED, RESUMED),
        12 => (HELP, HELP),
        13 => (BLOCKED, BLOCKED),
        14 => (REFUSED, REFUSED),
        15 => (LATE, LATE),
        16 => (CORRECTED, CORRECTED),
        17 => (TIMED_OUT, TIMED_OUT),
        _ => (PLAIN, PLAIN),
    }
}

const EMAILS: [(&str, &str, &str); 16] = [
    ("invalid", INVALID, INVALID),
    ("bounce", "accepted; +0ms bounced; +0ms failed undeliverable", "accepted; +0ms bounced; +0ms failed undeliverable"),
    ("delay", TIMED_OUT, PLAIN),
    ("throttle", THROTTLED, PLAIN),
    ("sent", "accepted", "accepted"),
    ("reply", REPLIED, REPLIED),
    ("unsubscribe", "accepted; +0ms delivered; +100ms inbound \"unsubscribe\"", "accepted; +0ms delivered; +100ms inbound \"unsubscribe\""),
    ("unknown", UNKNOWN, PLAIN),
    (
        "subscribe",
        "accepted; +0ms delivered; +100ms inbound \"unsubscribe\"; +5000ms inbound \"subscribe\"",
        "accepted; +0ms delivered; +100ms inbound \"unsubscribe\"; +5000ms inbound \"subscribe\"",
    ),
    ("help", HELP, HELP),
    ("blocked", BLOCKED, BLOCKED),
    ("rejected", REFUSED, REFUSED),
    ("late", LATE, LATE),
    ("corrected", CORRECTED, CORRECTED),
    ("expired", TIMED_OUT, TIMED_OUT),
    ("complaint", "accepted; +0ms delivered; +100ms complaint", "accepted; +0ms delivered; +100ms complaint"),
];

async fn expect(channel: Channel, to: &str, wanted: (&str, &str)) {
    let world = World::of(channel);
    let message = world.message(to);
    for (attempt, wanted) in [(0, wanted.0), (1, wanted.1), (2, wanted.1)] {
        assert_eq!(world.attempt(&message, channel, attempt).await, wanted, "{channel} {to} attempt {attempt}");
    }
}

#[tokio::test]
async fn phones() {
    for channel in PHONES {
        for n in 0..=20 {
            for area in ["212", "500"] {
                expect(channel, &format!("+1{area}55500{n:02}"), numbered(n, channel)).await;
            }
        }
    }
}

#[tokio::test]
async fn chats() {
    for channel in CHATS {
        for n in 0..=20 {
            expect(channel, &format!("9000000{n:02}"), numbered(n, channel)).await;
        }
    }
}

#[tokio::test]
async fn emails() {
    for (name, first, later) in EMAILS {
        for domain in ["example.com", "example.org", "example.net", "shop.test", "mail.shop.test"] {
            expect(Channel::Email, &format!("{name}@{domain}"), (first, later)).await;
            expect(Channel::Email, &format!("{name}+order.17@{domain}"), (first, later)).await;
        }
    }
}

#[tokio::test]
async fn everyone_else_gets_everything() {
    for channel in PHONES {
        for to in ["+34600111222", "+15005560001", "+15005550101", "+1500555001", "+150055500011", "+25005550001", "900000001"] {
            expect(channel, to, (PLAIN, PLAIN)).await;
        }
    }
    for channel in CHATS {
        for to in ["900000101", "90000001", "9000000001", "-900000001", "800000001", "+15005550001"] {
            expect(channel, to, (PLAIN, PLAIN)).await;
        }
    }
    let emails = [
        "ada@example.org",
        "invalid@example.edu",
        "invalid@mail.example.org",
        "invalid@test",
        "invalid@atest",
        "bounces@example.org",
        "read@example.org",
        "a+bounce@example.org",
    ];
    for to in emails {
        expect(Channel::Email, to, (PLAIN, PLAIN)).await;
    }
}

#[tokio::test]
async fn the_sms_after_an_undeliverable_whatsapp_arrives() {
    const TO: &str = "+12125550002";
    let world = World::of(Channel::Whatsapp);
    let asked = world.message(TO);
    assert!(world.attempt(&asked, Channel::Whatsapp, 0).await.starts_with("rejected undeliverable"));
    assert_eq!(world.attempt(&asked, Channel::Sms, 1).await, PLAIN, "whatsapp was asked for");

    let mut chosen = world.message(TO);
    chosen.request_mut().requested_channel = RequestedChannel::Auto;
    assert_eq!(world.attempt(&chosen, Channel::Sms, 0).await, "accepted; +0ms failed undeliverable", "sms was chosen at once");
    let mut changes: Vec<Change> = Vec::new();
    chosen.state.begin_attempt(NodeId(1), request(&chosen).now, &mut changes);
    assert_eq!(world.attempt(&chosen, Channel::Sms, 1).await, PLAIN, "whatsapp was chosen first");

    let mut resent = chosen.clone();
    resent.state.detail.attempts[0].channel = Channel::Sms;
    assert_eq!(world.attempt(&resent, Channel::Sms, 1).await, "accepted; +0ms failed undeliverable", "sms was chosen at once, and again");
}

#[tokio::test]
async fn the_sms_after_a_refusal_by_a_messaging_app_arrives() {
    for n in [13, 14, 16] {
        let to = format!("+12125550{n:03}");
        let world = World::of(Channel::Whatsapp);
        let asked = world.message(&to);
        assert_eq!(world.attempt(&asked, Channel::Whatsapp, 0).await, numbered(n, Channel::Whatsapp).0, "whatsapp was asked for");
        assert_eq!(world.attempt(&asked, Channel::Sms, 1).await, PLAIN, "{to}");
    }
}

#[tokio::test]
async fn automatic_answers_are_not_answered() {
    let world = World::of(Channel::Sms);
    for n in [6, 7, 11, 12] {
        let mut message = world.message(&format!("+12125550{n:03}"));
        message.state.detail.compliance = true;
        assert_eq!(world.attempt(&message, Channel::Sms, 0).await, PLAIN, "{n}");
    }
}

#[tokio::test]
async fn a_reply_repeats_a_hundred_characters_and_no_more() {
    let world = World::of(Channel::Sms);
    let mut message = world.message("+12125550006");
    message.request_mut().text = Some("ñ".repeat(101));
    let told = world.attempt(&message, Channel::Sms, 0).await;
    assert!(told.ends_with(&format!("inbound \"Reply to: {}\"", "ñ".repeat(100))), "{told}");
    message.request_mut().text = None;
    let told = world.attempt(&message, Channel::Sms, 0).await;
    assert!(told.ends_with("inbound \"Reply to: \""), "{told}");
}

#[tokio::test]
async fn it_can_do_everything_and_needs_no_settings() {
    let world = World::of(Channel::Sms);
    let capabilities = world.adapter.capabilities();
    assert_eq!(
        (capabilities.message_types, capabilities.receipts, capabilities.window),
        (MessageType::ALL, nuncio_channel::Receipts::ByAttempt, 256)
    );
    assert_eq!((nuncio_channel_sim::factory().kind(), nuncio_channel_sim::factory().channels()), ("sim", Channel::ALL));

    let mut account = account(Channel::Sms);
    account.settings.insert("host".to_owned(), json!("mail.example.org"));
    let faults = nuncio_channel_sim::factory().open(&account, &services(world.events.clone())).expect_err("there are no settings");
    assert_eq!(faults.iter().map(|FieldError { path, .. }| path.as_str()).collect::<Vec<_>>(), ["settings.host"]);
}
