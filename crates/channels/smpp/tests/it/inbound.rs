//! Receipts and messages from outside: on disk first, answered then.

use std::sync::atomic::Ordering;

use nuncio_channel::{Inbound, InboundPart, ProviderEvent, ReceiptTarget};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::sms::Alphabet;
use nuncio_domain::{Channel, TenantId};
use rusmpp::CommandId;
use serde_json::json;

use crate::smsc::{Script, Smsc, delivery, encode, pdu, receipt};
use crate::support::{NOW, Running, TO};

const TAKEN: CommandId = CommandId::DeliverSmResp;

fn inbound(event: ProviderEvent) -> Inbound {
    match event {
        ProviderEvent::Inbound(inbound) => inbound,
        other => panic!("{other:?}"),
    }
}

fn part(event: ProviderEvent) -> InboundPart {
    match event {
        ProviderEvent::Part(part) => *part,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_receipt_is_answered_when_it_is_on_disk() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let mut running = Running::start(smsc.port, json!({"binds": 2}));
    let (_, first) = smsc.bound().await;
    let (_, second) = smsc.bound().await;
    running.sink.refuses.store(true, Ordering::SeqCst);
    first.say(&receipt(7, "id1", "DELIVRD"));
    assert_eq!(smsc.other(TAKEN).await, (0x64, 7), "not now");
    running.sink.refuses.store(false, Ordering::SeqCst);
    // Any session will do.
    second.say(&receipt(8, "id1", "DELIVRD"));
    assert_eq!(smsc.other(TAKEN).await, (0, 8));
    let ProviderEvent::Receipt { target, kind, at, raw } = running.told().await else { panic!() };
    let ReceiptTarget::Reference { tenant, reference, .. } = target else { panic!() };
    assert_eq!((tenant, reference.as_str(), kind, at), (TenantId(3), "id1", ReceiptKind::Delivered, NOW));
    assert!(!raw.unwrap().contains("Hello"), "words of the message are not kept");
    // One that names nothing is refused for good, and nothing breaks.
    second.say(&delivery(9, 0x04, b"what?"));
    assert_eq!(smsc.other(TAKEN).await, (0x65, 9));
    assert!(running.stop().await.is_empty());
}

/// A repeat would say the same.
#[tokio::test]
async fn a_receipt_with_an_unknown_state_is_taken_for_sent() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let mut running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    for (sequence, stat, expected) in
        [(7, "WHATEVER", ReceiptKind::Sent), (8, "BUFFERED", ReceiptKind::Sent), (9, "DELIVERD", ReceiptKind::Delivered)]
    {
        says.say(&receipt(sequence, "id1", stat));
        let ProviderEvent::Receipt { kind, raw, .. } = running.told().await else { panic!() };
        assert_eq!((kind, raw.is_some_and(|raw| raw.contains(stat))), (expected, true), "{stat}");
        assert_eq!(smsc.other(TAKEN).await, (0, sequence));
    }
}

#[tokio::test]
async fn a_text_from_outside_comes_once_however_often_it_is_delivered() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let mut running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    says.say(&delivery(1, 0, b"Hola {\x1b\x65"));
    assert_eq!(smsc.other(TAKEN).await, (0, 1));
    let first = inbound(running.told().await);
    assert_eq!((first.channel, first.from.as_str(), first.text.as_str(), first.at), (Channel::Sms, TO, "Hola ä€", NOW));
    // People repeat themselves.
    says.say(&delivery(2, 0, b"Hola {\x1b\x65"));
    let second = inbound(running.told().await);
    assert_ne!(first.provider_message_id, second.provider_message_id);
    // SMSCs repeat what we refused, and what was under way when a session ended.
    running.sink.refuses.store(true, Ordering::SeqCst);
    says.say(&delivery(3, 0, b"Si"));
    assert_eq!(smsc.other(TAKEN).await, (0, 2));
    assert_eq!(smsc.other(TAKEN).await, (0x64, 3));
    running.sink.refuses.store(false, Ordering::SeqCst);
    says.say(&delivery(4, 0, b"Si"));
    assert_eq!(smsc.other(TAKEN).await, (0, 4));
    let third = inbound(running.told().await);
    says.octets(Vec::new());
    let (_, says) = smsc.bound().await;
    says.say(&delivery(1, 0, b"Si"));
    assert_eq!(inbound(running.told().await).provider_message_id, third.provider_message_id);
    assert!(running.stop().await.is_empty());
}

/// A queue that an SMSC empties after an outage can hold a START and the STOP after it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_of_a_person_are_stored_in_the_order_in_which_they_came() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let mut running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    let text = |n: u32| format!("text {n}");
    says.octets((0..500).flat_map(|n| encode(&delivery(n + 1, 0, text(n).as_bytes()))).collect());
    for n in 0..500 {
        assert_eq!(inbound(running.told().await).text, text(n));
    }
}

#[tokio::test]
async fn parts_name_their_message_and_are_answered_when_they_are_on_disk() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let mut running = Running::start(smsc.port, json!({"binds": 2}));
    let (_, one) = smsc.bound().await;
    let (_, two) = smsc.bound().await;
    running.sink.refuses.store(true, Ordering::SeqCst);
    one.say(&delivery(1, 0x40, b"\x05\x00\x03\x07\x02\x02world"));
    assert_eq!(smsc.other(TAKEN).await, (0x64, 1));
    running.sink.refuses.store(false, Ordering::SeqCst);
    one.say(&delivery(2, 0x40, b"\x05\x00\x03\x07\x02\x02world"));
    let second = part(running.told().await);
    two.say(&delivery(3, 0x40, b"\x05\x00\x03\x07\x02\x01Hello, "));
    let first = part(running.told().await);
    assert_eq!(second.key, first.key, "of one message");
    assert_eq!((second.sequence, first.sequence, first.total), (2, 1, 2));
    assert_eq!((first.octets.as_slice(), first.alphabet), (b"Hello, ".as_slice(), Alphabet::Gsm7));
    let mut answers = [smsc.other(TAKEN).await, smsc.other(TAKEN).await];
    answers.sort_unstable();
    assert_eq!(answers, [(0, 2), (0, 3)]);
    one.say(&delivery(4, 0x40, b"\x06\x08\x04\x01\x07\x03\x02middle"));
    let other = part(running.told().await);
    assert_ne!(other.key, first.key);
    assert_eq!((other.sequence, other.total), (2, 3));
}

#[tokio::test]
async fn a_delivery_that_cannot_be_read_is_refused_and_breaks_nothing() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let mut running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    let mut broken = vec![0, 0, 0, 20, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9];
    broken.extend_from_slice(b"\0\x01\x01a");
    says.octets(broken);
    assert_eq!(smsc.other(TAKEN).await, (0x65, 9));
    // Too long to store: a repeat would fail as well.
    let body = [&b"\0\x01\x01"[..], &[b'1'; 9_000], b"\0\x01\x0134600111222\0\0\0\0\0\0\0\0\0\0\x01x"].concat();
    says.octets(pdu(5, 8, &body));
    assert_eq!(smsc.other(TAKEN).await, (0x65, 8));
    says.say(&delivery(10, 0, b"x"));
    assert_eq!(inbound(running.told().await).text, "x");
}
