//! The adapter against an SMSC that we did not write: the npm package smpp.

use nuncio_channel::testing::{PeerProcess, node_peer, object};
use nuncio_channel::{ProviderEvent, ReceiptTarget};
use nuncio_domain::Redacted;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::FailureCode;
use serde_json::{Value, json};

use crate::support::{Running, account, draft, send_message, short, try_open};

/// The SMSC; it ends with the test.
struct Peer {
    process: PeerProcess,
    port: u16,
}

impl Peer {
    /// `None` where there is no node.
    fn start() -> Option<Self> {
        let mut process = PeerProcess::start(&mut node_peer("smsc.js", "smpp")?);
        Some(Self { port: process.port(), process })
    }

    /// The next event of this kind.
    fn next(&mut self, event: &str) -> Value {
        loop {
            let seen = self.process.seen();
            if seen["event"] == event {
                return seen;
            }
        }
    }

    fn tell(&mut self, line: &str) {
        self.process.tell(line);
        self.next(line);
    }
}

/// An adapter with the peer's password.
fn start(peer: &Peer, more: Value) -> Running {
    let mut account = account(peer.port, more);
    account.secrets = Redacted::new(object(json!({"password": "secret08"})));
    Running::of(&account)
}

fn reference(event: ProviderEvent) -> (String, ReceiptKind) {
    match event {
        ProviderEvent::Receipt { target: ReceiptTarget::Reference { reference, .. }, kind, .. } => (reference, kind),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMSC on node; ./test runs it"]
async fn heavy_what_a_foreign_smsc_reads() {
    let Some(mut peer) = Peer::start() else { return };
    let mut running = start(&peer, json!({"system_type": "VMA", "from": "ACME"}));
    let bound = peer.next("bind_transceiver");
    assert_eq!((&bound["systemId"], &bound["systemType"], &bound["version"]), (&json!("acme"), &json!("VMA"), &json!(0x34)));
    for (text, coding, parts) in [
        ("Olé {1} €", 0, 1),
        ("Привет \u{1F600}", 8, 1),
        (&*"€".repeat(100), 0, 2),
        (&*format!("{}\u{1F600}", "ж".repeat(133)), 8, 3),
        (&*"a".repeat(1_000), 0, 7),
    ] {
        let outcome = running.send(text).await;
        let (kind, _, refs) = short(&outcome);
        assert_eq!((kind, refs.len()), ("accepted", parts), "{outcome:?}");
        let mut read = String::new();
        for part in 1..=parts {
            let seen = peer.next("submit_sm");
            assert_eq!(seen["source"], json!([5, 0, "ACME"]));
            assert_eq!(seen["destination"], json!([1, 1, "34600111222"]));
            assert_eq!((&seen["dataCoding"], &seen["id"]), (&json!(coding), &json!(refs[part - 1])));
            if parts > 1 {
                let header = seen["udh"][0].as_str().unwrap();
                assert!(header.starts_with("0003") && header.ends_with(&format!("{parts:02x}{part:02x}")), "{header}");
            }
            read.push_str(seen["text"].as_str().unwrap());
        }
        assert_eq!(read, text);
        let mut receipts = Vec::new();
        for _ in 0..parts {
            receipts.push(reference(running.told().await));
        }
        receipts.sort_by_key(|(id, _)| refs.iter().position(|known| known == id));
        assert_eq!(receipts, refs.iter().map(|id| ((*id).to_owned(), ReceiptKind::Delivered)).collect::<Vec<_>>());
    }
    assert!(running.adapter.check().await.is_ok());
    running.stop().await;
    peer.next("unbind");
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMSC on node; ./test runs it"]
async fn heavy_what_a_foreign_smsc_answers() {
    let Some(mut peer) = Peer::start() else { return };
    let mut running = start(&peer, json!({"multipart": "payload", "timeout_seconds": 2}));
    for (to, outcome) in [
        ("+34600111000", ("rejected", Some(FailureCode::InvalidRecipient), vec![])),
        ("+34600111058", ("connection", Some(FailureCode::RateLimited), vec![])),
    ] {
        let mut message = draft("x", 1);
        message.to = to.to_owned();
        assert_eq!(short(&send_message(&running.adapter, &message).await), outcome);
    }
    let mut message = draft(&"long ".repeat(100), 1);
    message.to = "+34600111005".to_owned();
    assert_eq!(short(&send_message(&running.adapter, &message).await).2.len(), 1, "one message_payload");
    let (_, kind) = reference(running.told().await);
    let ReceiptKind::Failed(failure) = kind else { panic!("{kind:?}") };
    assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::Undeliverable, Some("UNDELIV 034")));

    for (text, expected) in [("reply Sí, {mañana}", "Sí, {mañana}"), ("reply long uno dos tres", "uno dos tres")] {
        assert_eq!(short(&running.send(text).await).0, "accepted");
        let mut parts = Vec::new();
        let (said, from) = loop {
            match running.told().await {
                ProviderEvent::Inbound(inbound) => break (inbound.text, inbound.from),
                ProviderEvent::Part(part) => parts.push(part),
                _ => {}
            }
            if let Some(first) = parts.first().filter(|first| parts.len() == usize::from(first.total)) {
                let (alphabet, from) = (first.alphabet, first.from.clone());
                parts.sort_unstable_by_key(|part| part.sequence);
                let octets: Vec<u8> = parts.iter().flat_map(|part| part.octets.iter().copied()).collect();
                break (nuncio_domain::sms::read(alphabet, &octets), from);
            }
        };
        assert_eq!((said.as_str(), from.as_str()), (expected, "+34600111222"));
        assert_eq!(peer.next("message_answered")["status"], 0);
    }
    peer.tell("hush");
    assert_eq!(short(&running.send("x").await), ("unknown", Some(FailureCode::UnknownOutcome), vec![]));
    let stranger = try_open(&account(peer.port, json!({}))).unwrap();
    assert!(stranger.check().await.unwrap_err().contains("the password is wrong"));
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMSC on node; ./test runs it"]
async fn heavy_many_at_once() {
    const EACH: usize = 500;
    let Some(mut peer) = Peer::start() else { return };
    let mut running = start(&peer, json!({"window": 50, "binds": 2}));
    running.up().await;
    // The peer writes a line for each; somebody must read them.
    let reading = std::thread::spawn(move || {
        for _ in 0..EACH * 10 {
            assert_eq!(peer.next("receipt_answered")["status"], 0);
        }
        peer
    });
    let began = std::time::Instant::now();
    let senders: Vec<_> = (0..10)
        .map(|number| {
            let adapter = running.adapter.clone();
            tokio::spawn(async move {
                let message = draft("Hello", number);
                let mut refs = Vec::new();
                for _ in 0..EACH / 10 {
                    let burst = (0..10).map(|_| {
                        let (adapter, message) = (adapter.clone(), message.clone());
                        tokio::spawn(async move { send_message(&adapter, &message).await })
                    });
                    for sent in burst.collect::<Vec<_>>() {
                        let outcome = sent.await.unwrap();
                        let (kind, _, ids) = short(&outcome);
                        assert_eq!((kind, ids.len()), ("accepted", 1), "{outcome:?}");
                        refs.push(ids[0].to_owned());
                    }
                }
                refs
            })
        })
        .collect();
    let mut refs = Vec::new();
    for sender in senders {
        refs.extend(sender.await.unwrap());
    }
    let sent_in = began.elapsed();
    let mut receipted = Vec::new();
    for _ in 0..EACH * 10 {
        let (id, kind) = reference(running.told().await);
        assert_eq!(kind, ReceiptKind::Delivered);
        receipted.push(id);
    }
    let all_in = began.elapsed();
    refs.sort_unstable();
    receipted.sort_unstable();
    assert_eq!(refs, receipted, "each message has one id, and each id one receipt");
    refs.dedup();
    assert_eq!(refs.len(), EACH * 10);
    println!("{} messages in {sent_in:?}, with receipts in {all_in:?}", EACH * 10);
    running.stop().await;
    drop(reading.join().unwrap());
}
