//! What goes out, and what answers mean.

use std::sync::atomic::{AtomicUsize, Ordering};

use nuncio_channel::{Outcome, ProviderEvent, ReceiptTarget, Receipts};
use nuncio_domain::MessageType;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Content, FailureCode};
use rusmpp::values::{DataCoding, Npi, Ton};
use serde_json::json;

use crate::smsc::{Act, Script, Smsc, pdu, receipt};
use crate::support::{Running, draft, send, send_message, short};

#[tokio::test]
async fn a_text_goes_out_as_the_settings_say() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let running = Running::start(smsc.port, json!({"from": "ACME", "service_type": "CMT", "registered_delivery": "failure"}));
    assert_eq!(short(&running.send("Olé {1}€").await), ("accepted", None, vec!["id1"]));
    let (_, _, submit) = smsc.submitted().await;
    assert_eq!(
        (submit.source_addr_ton, submit.source_addr_npi, submit.source_addr.to_string()),
        (Ton::Alphanumeric, Npi::Unknown, "ACME".to_owned())
    );
    assert_eq!(
        (submit.dest_addr_ton, submit.dest_addr_npi, submit.destination_addr.to_string()),
        (Ton::International, Npi::Isdn, "34600111222".to_owned())
    );
    assert_eq!(u8::from(submit.registered_delivery), 2);
    // The message expires an hour from now.
    assert_eq!(submit.validity_period.to_string(), "000000010000000R");
    assert_eq!((submit.data_coding, submit.short_message().as_ref()), (DataCoding::McSpecific, &b"Ol\x05 \x1b\x281\x1b\x29\x1b\x65"[..]));

    running.send("Привет").await;
    let (_, _, submit) = smsc.submitted().await;
    assert_eq!((submit.data_coding, &submit.short_message().as_ref()[..2]), (DataCoding::Ucs2, &[0x04, 0x1F][..]));
}

#[tokio::test]
async fn all_parts_are_named_and_the_same_in_every_attempt() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let running = Running::start(smsc.port, json!({}));
    let long = "a".repeat(400);
    for (number, ids) in [(1, ["id1", "id2", "id3"]), (1, ["id4", "id5", "id6"]), (2, ["id7", "id8", "id9"])] {
        assert_eq!(short(&send(&running.adapter, &long, number).await), ("accepted", None, ids.to_vec()));
    }
    let mut parts = Vec::new();
    for _ in 0..9 {
        parts.push(smsc.submitted().await.2.short_message().as_ref().to_vec());
    }
    assert_eq!(parts[..3], parts[3..6], "a phone that gets some parts twice puts one message together");
    assert_eq!(
        parts[..3].iter().map(|p| (p[0], p[4], p[5], p.len())).collect::<Vec<_>>(),
        [(5, 3, 1, 159), (5, 3, 2, 159), (5, 3, 3, 100)]
    );
    assert_ne!(parts[0][3], parts[6][3], "another message has another reference");
}

#[tokio::test]
async fn what_is_refused_at_its_first_part_has_not_gone_out() {
    for (status, outcome) in
        [(0x0B, ("rejected", Some(FailureCode::InvalidRecipient), vec![])), (0x58, ("connection", Some(FailureCode::RateLimited), vec![]))]
    {
        let smsc = Smsc::start(Script::new(move |_, _| Act::Refuse(status))).await;
        let running = Running::start(smsc.port, json!({}));
        assert_eq!(short(&running.send(&"a".repeat(400)).await), outcome);
        assert!(smsc.taken.lock().unwrap().is_empty());
    }
}

#[tokio::test]
async fn statuses_of_the_providers_own_mean_what_the_settings_say() {
    for (status, kind, code) in [
        (0x400, "deferred", FailureCode::Undeliverable),
        (0x401, "connection", FailureCode::Undeliverable),
        (0x402, "rejected", FailureCode::ProviderRejected),
    ] {
        let smsc = Smsc::start(Script::new(move |_, _| Act::Refuse(status))).await;
        let running = Running::start(smsc.port, json!({"retry_statuses": "0x400", "pause_statuses": "1025"}));
        assert_eq!(short(&running.send("x").await), (kind, Some(code), vec![]), "{status:#x}");
    }
}

#[tokio::test]
async fn a_response_after_its_timeout_is_reported() {
    let cases = [
        (0, ("accepted", None, vec!["late"]), Receipts::ByReference),
        (0x0B, ("rejected", Some(FailureCode::InvalidRecipient), vec![]), Receipts::Never),
        (0x14, ("deferred", Some(FailureCode::RateLimited), vec![]), Receipts::ByReference),
    ];
    for (status, outcome, receipts) in cases {
        let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
        let registered = if receipts == Receipts::Never { "none" } else { "final" };
        let mut running = Running::start(smsc.port, json!({"timeout_seconds": 2, "registered_delivery": registered}));
        let (_, says) = smsc.bound().await;
        let message = draft("x", 0);
        assert_eq!(short(&send_message(&running.adapter, &message).await), ("unknown", Some(FailureCode::UnknownOutcome), vec![]));
        let (_, sequence, _) = smsc.submitted().await;
        says.answer(sequence, status, "late");
        let ProviderEvent::LateResult(late) = running.told().await else { panic!("another event") };
        assert_eq!((late.message, late.attempt, late.receipts), (message.id, 0, receipts));
        assert_eq!(short(&late.outcome), outcome);
    }
}

#[tokio::test]
async fn a_late_response_to_a_part_says_what_it_can() {
    let unknown = Some(FailureCode::UnknownOutcome);
    let cases = [
        (0, 0, ("unknown", unknown, vec!["late"])),
        (0, 0x0B, ("rejected", Some(FailureCode::InvalidRecipient), vec![])),
        (1, 0, ("unknown", unknown, vec!["id0", "late"])),
        (2, 0, ("accepted", None, vec!["id0", "id1", "late"])),
        (2, 0x0B, ("rejected", Some(FailureCode::InvalidRecipient), vec![])),
    ];
    for (unanswered, status, outcome) in cases {
        let mut smsc = Smsc::start(Script::new(move |n, _| if n == unanswered { Act::Leave } else { Act::Take(format!("id{n}")) })).await;
        let mut running = Running::start(smsc.port, json!({"timeout_seconds": 2}));
        let (_, says) = smsc.bound().await;
        assert_eq!(short(&running.send(&"a".repeat(400)).await).0, "unknown");
        for _ in 0..unanswered {
            smsc.submitted().await;
        }
        says.answer(smsc.submitted().await.1, status, "late");
        let ProviderEvent::LateResult(late) = running.told().await else { panic!("another event") };
        assert_eq!(short(&late.outcome), outcome, "part {unanswered}, {status:#x}");
    }
}

#[tokio::test]
async fn what_is_half_out_is_unknown_with_what_is_known() {
    for stop in [Act::HangUp, Act::Say(vec![0; 16])] {
        let acts = [Act::Take("id1".into()), Act::Take("id2".into()), stop];
        let smsc = Smsc::start(Script::new(move |number, _| acts[number].clone())).await;
        let running = Running::start(smsc.port, json!({}));
        let outcome = running.send(&"a".repeat(400)).await;
        assert_eq!(short(&outcome), ("unknown", Some(FailureCode::UnknownOutcome), vec!["id1", "id2"]));
        let Outcome::Unknown { failure, .. } = outcome else { panic!() };
        assert!(failure.message.starts_with("the SMSC took 2 of 3 parts; then: "), "{failure:?}");
    }
}

#[tokio::test]
async fn a_part_that_is_refused_for_good_rejects_the_message_and_one_that_is_throttled_is_repeated() {
    let acts = [Act::Take("id1".into()), Act::Refuse(0x0B)];
    let smsc = Smsc::start(Script::new(move |number, _| acts[number].clone())).await;
    let outcome = Running::start(smsc.port, json!({})).send(&"a".repeat(400)).await;
    let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
    assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::InvalidRecipient, Some("0x0B")));
    assert!(failure.message.starts_with("the SMSC took 1 of 3 parts; then: "), "{failure:?}");

    let acts = [Act::Take("id1".into()), Act::Refuse(0x58), Act::Refuse(0x14), Act::Take("id2".into()), Act::Take("id3".into())];
    let asked = AtomicUsize::new(0);
    let smsc = Smsc::start(Script::new(move |_, _| acts[asked.fetch_add(1, Ordering::Relaxed)].clone())).await;
    let outcome = Running::start(smsc.port, json!({})).send(&"a".repeat(400)).await;
    assert_eq!(short(&outcome), ("accepted", None, vec!["id1", "id2", "id3"]), "{outcome:?}");
}

#[tokio::test]
async fn other_ways_of_marking_parts() {
    for (multipart, count) in [("udh16", 3), ("sar", 3), ("payload", 1)] {
        let mut smsc = Smsc::start(Script::takes()).await;
        let running = Running::start(smsc.port, json!({ "multipart": multipart }));
        let text = format!("{}b", "a".repeat(305));
        let outcome = running.send(&"a".repeat(400)).await;
        assert_eq!(short(&outcome).2.len(), count, "{multipart}");
        assert_eq!(short(&running.send(&text).await).0, "accepted");
        let (_, _, submit) = smsc.submitted().await;
        let seen = (submit.short_message().as_ref().len(), submit.short_message().as_ref().first().copied(), submit.tlvs().len());
        let expected = match multipart {
            "udh16" => (159, Some(6), 0),
            "sar" => (153, Some(b'a'), 3),
            _ => (0, None, 1),
        };
        assert_eq!(seen, expected, "{multipart}");
    }
}

#[tokio::test]
async fn what_an_sms_cannot_carry_is_said_in_words_or_refused() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let running = Running::start(smsc.port, json!({}));
    let mut message = draft("See", 1);
    message.message_type = MessageType::Image;
    message.request_mut().content = Some(Box::new(Content { media_url: Some("https://x.example/a.png".into()), ..Content::default() }));
    assert_eq!(short(&send_message(&running.adapter, &message).await).0, "accepted");
    assert_eq!(smsc.submitted().await.2.short_message().as_ref(), b"See\nhttps://x.example/a.png");
    for kind in [MessageType::Sticker, MessageType::Reaction] {
        message.message_type = kind;
        assert_eq!(short(&send_message(&running.adapter, &message).await), ("rejected", Some(FailureCode::ContentRejected), vec![]));
    }
    let mut message = draft("x", 1);
    message.to = "nobody at all".into();
    assert_eq!(short(&send_message(&running.adapter, &message).await), ("rejected", Some(FailureCode::InvalidRecipient), vec![]));
    message.to = "+34600111222".into();
    message.from = "Señor".into();
    assert_eq!(short(&send_message(&running.adapter, &message).await), ("rejected", Some(FailureCode::ProviderRejected), vec![]));
    assert_eq!(smsc.taken.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn an_id_of_another_base_is_the_same_in_answer_and_receipt() {
    let script = Script::new(|_, _| Act::After(Box::new(receipt(7, "0000002587", "DELIVRD")), "0A1B".into()));
    let smsc = Smsc::start(script).await;
    let mut running = Running::start(smsc.port, json!({"message_id_format": "hex_decimal"}));
    // The receipt comes before the answer.
    let outcome = running.send("x").await;
    let told = running.told().await;
    let ProviderEvent::Receipt { target: ReceiptTarget::Reference { reference, .. }, kind, raw, .. } = told else { panic!() };
    assert_eq!((kind, vec![reference.as_str()]), (ReceiptKind::Delivered, short(&outcome).2));
    assert!(raw.unwrap().starts_with("id:0000002587"), "as it came");
}

#[tokio::test]
async fn an_id_of_any_length_is_the_same_in_answer_and_receipt() {
    let id = format!("{}\0", "7".repeat(9_000));
    let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
    let mut running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    let answering = async {
        let (_, sequence, _) = smsc.submitted().await;
        says.octets(pdu(0x8000_0004, sequence, id.as_bytes()));
    };
    let outcome = tokio::join!(running.send("x"), answering).0.with_bounded_references();
    // The parameter receipted_message_id, in a receipt without a text.
    let fields = b"\0\x01\x0134600111222\0\x01\x0112345\0\x04\0\0\0\0\0\0\0\0\0\x04\x27\0\x01\x02\0\x1e";
    let body = [&fields[..], &(id.len() as u16).to_be_bytes(), id.as_bytes()].concat();
    says.octets(pdu(5, 7, &body));
    let told = running.told().await;
    let ProviderEvent::Receipt { target: ReceiptTarget::Reference { reference, .. }, kind, .. } = told else { panic!() };
    assert_eq!((kind, vec![reference.as_str()]), (ReceiptKind::Delivered, short(&outcome).2));
    assert_eq!(reference.len(), 255, "the store can keep it");
}

#[tokio::test]
async fn a_window_is_filled_and_not_overfilled() {
    let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
    let running = Running::start(smsc.port, json!({"window": 3}));
    let (_, says) = smsc.bound().await;
    let sends: Vec<_> = (0..5)
        .map(|number| {
            let adapter = running.adapter.clone();
            tokio::spawn(async move { send(&adapter, "x", number).await })
        })
        .collect();
    // Three go out before any is answered; each answer lets one more out.
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(smsc.submitted().await.1);
    }
    for answered in 0..5 {
        assert_eq!(smsc.taken.lock().unwrap().len(), 5.min(3 + answered));
        says.take(waiting.remove(0), &format!("id{answered}"));
        if answered < 2 {
            waiting.push(smsc.submitted().await.1);
        }
    }
    for sent in sends {
        assert_eq!(short(&sent.await.unwrap()).0, "accepted");
    }
}
