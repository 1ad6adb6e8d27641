//! Addresses, metrics, suppressions and inbound messages.

use futures::future::join_all;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Outcome;
use nuncio_domain::message::{Direction, FailureCode, Status, Wait};
use nuncio_domain::{AddressId, AddressKind, Channel, Recipient, Timestamp};
use nuncio_store::{MetricDelta, NewInbound, Suppression, SuppressionReason};

use crate::harness::{Harness, NODE, START, in_tx};
use crate::make::{DAY, failure, mark, new, phone, settle, start};

pub(crate) async fn metrics_add_up(h: &Harness) {
    let (tenant, address): (_, AddressId) = (h.world.tenant, h.id());
    let (early, late) = (h.tick(), h.tick());
    let delta = |successes, at| MetricDelta { successes, failures: 1, delivery_ms: 1_000, timed: successes, last_success_at: at };
    let rounds = [
        vec![(tenant, address, Channel::Voice, delta(1, None)), (tenant, address, Channel::Sms, delta(2, Some(late)))],
        // Another node's metrics are written late, and one call contains a row twice.
        vec![(tenant, address, Channel::Sms, delta(3, Some(early))), (tenant, address, Channel::Sms, delta(i64::from(i32::MAX), None))],
        vec![(h.other.tenant, address, Channel::Sms, delta(50, Some(late)))],
        vec![],
    ];
    for deltas in rounds {
        h.store.add_metrics(deltas).await.unwrap();
    }
    let metrics = h.read().await.channel_metrics(tenant, address).await.unwrap();
    assert_eq!(metrics.iter().map(|m| m.channel).collect::<Vec<_>>(), [Channel::Sms, Channel::Voice]);
    let successes = 5 + i64::from(i32::MAX);
    let expected = MetricDelta { successes, failures: 3, delivery_ms: 3_000, timed: successes, last_success_at: Some(late) };
    assert_eq!((metrics[0].sums, metrics[0].last_inbound_at), (expected, None));
    assert_eq!(metrics[1].sums, delta(1, None));
    let unknown = h.id();
    assert!(h.read().await.channel_metrics(tenant, unknown).await.unwrap().is_empty());
}

pub(crate) fn inbound(h: &Harness, from: &Recipient, provider: &str) -> NewInbound {
    let mut message = h.item(from).message;
    message.direction = Direction::Inbound;
    (message.state.status, message.state.wait) = (Status::Received, Wait::Nothing);
    NewInbound {
        written_at: message.id.created_at(),
        message,
        from: from.clone(),
        country: "ES".to_owned(),
        mark: mark(from),
        new_address: h.id(),
        new_contact: h.id(),
        provider_key: provider.to_owned(),
        is_proven: true,
    }
}

async fn receive(h: &Harness, inbound: &NewInbound) -> bool {
    in_tx!(h, |tx| tx.insert_inbound(inbound).await.unwrap())
}

pub(crate) async fn an_inbound_message_is_received_once(h: &Harness) {
    let first = inbound(h, &phone(1), "in \u{1F4E5}");
    assert!(receive(h, &first).await);
    let again = inbound(h, &phone(1), "in \u{1F4E5}");
    assert!(!receive(h, &again).await);
    let mut elsewhere = inbound(h, &phone(1), "in \u{1F4E5}");
    elsewhere.message.state.route.connection = h.id();
    assert!(receive(h, &elsewhere).await, "ids of another connection are others");

    let stored = h.lookup(first.message.id).await;
    assert_eq!((stored.state.status, stored.state.version, stored.address), (Status::Received, 1, first.new_address));
    assert_eq!(stored.request, first.message.request);
    assert_eq!(h.events(stored.id).await.len(), 1);
    assert_eq!(h.lookup_in(h.world.tenant, again.message.id).await, None);
    assert_eq!(h.lookup(elsewhere.message.id).await.address, stored.address, "the writer is known by now");
    let newest = elsewhere.message.id.created_at();
    let metrics = h.read().await.channel_metrics(h.world.tenant, stored.address).await.unwrap();
    assert_eq!((metrics[0].last_inbound_at, metrics[0].sums), (Some(newest), MetricDelta::default()));

    // A late message does not clear the mark, and a reply finds the same address.
    let mut late = inbound(h, &phone(1), "late");
    late.written_at = START;
    assert!(receive(h, &late).await);
    let metrics = h.read().await.channel_metrics(h.world.tenant, stored.address).await.unwrap();
    assert_eq!(metrics[0].last_inbound_at, Some(newest));
    let (answer, contact) = new(h.store.accept(h.item(&phone(1))).await);
    assert_eq!((answer.address, contact), (stored.address, first.new_contact));
}

pub(crate) async fn a_conversation_begins_with_the_first_word_and_after_silence(h: &Harness) {
    let opens = async |from: &Recipient, channel, at, provider: &str| {
        let mut message = inbound(h, from, provider);
        message.written_at = at;
        message.message.state.route.channel = channel;
        assert!(receive(h, &message).await);
        let change = h.events(message.message.id).await[0].changes[0].clone();
        assert!(serde_json::to_string(&change).unwrap().contains("\"n\":true") == change.conversation, "silent when it is not");
        change.conversation
    };
    let before_a_day = |at: nuncio_domain::Timestamp| at.plus(DAY - std::time::Duration::from_millis(1));
    assert!(opens(&phone(1), Channel::Sms, START, "1").await, "the first word");
    assert!(!opens(&phone(1), Channel::Sms, before_a_day(START), "2").await);
    assert!(opens(&phone(1), Channel::Whatsapp, before_a_day(START), "3").await, "by another channel");
    assert!(!opens(&phone(1), Channel::Sms, START, "4").await, "one that comes late");
    assert!(opens(&phone(1), Channel::Sms, before_a_day(START).plus(DAY), "5").await, "after a day of silence");
    assert!(opens(&phone(2), Channel::Sms, START, "6").await, "somebody else");
}

pub(crate) async fn a_reply_goes_out_although_its_recipient_opted_out(h: &Harness) {
    let wrote = inbound(h, &phone(1), "STOP");
    let mut reply = h.item(&phone(1)).message;
    reply.address = wrote.new_address;
    reply.state.detail.compliance = true;
    let mut plain = reply.clone();
    (plain.id, plain.state.detail.compliance) = (h.id(), false);
    let suppression = Suppression {
        id: h.id(),
        recipient: phone(1),
        sender: Some(h.world.sender),
        reason: SuppressionReason::OptOut,
        source: "STOP".to_owned(),
    };
    let mut tx = h.begin().await;
    assert!(tx.insert_inbound(&wrote).await.unwrap());
    assert!(tx.insert_suppression(h.world.tenant, &suppression, START).await.unwrap());
    for message in [&reply, &plain] {
        tx.insert_reply(message).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(h.lookup(reply.id).await.request, reply.request);
    let (_, state) = h.step(reply.id, start(NODE, 0)).await;
    assert_eq!(state.status, Status::Sending);
    h.step(reply.id, settle(0, 1, Outcome::Rejected { failure: failure(FailureCode::Undeliverable) })).await;
    let (_, state) = h.step(plain.id, start(NODE, 0)).await;
    assert_eq!((state.status, state.detail.failure.unwrap().code), (Status::Failed, FailureCode::RecipientSuppressed));
    assert_eq!(h.events(reply.id).await.len(), 3);
}

pub(crate) async fn what_is_not_proven_marks_no_channel(h: &Harness) {
    let wrote = |provider: &str, is_proven| NewInbound { is_proven, ..inbound(h, &phone(1), provider) };
    let begins = async |id| h.events(id).await[0].changes[0].conversation;
    let unproven = wrote("1", false);
    assert!(receive(h, &unproven).await && !receive(h, &unproven).await);
    let (address, _) = h.read().await.find_address(h.world.tenant, &phone(1)).await.unwrap().unwrap();
    let marked = async || {
        let metrics = h.read().await.channel_metrics(h.world.tenant, address).await.unwrap();
        metrics.iter().any(|metrics| metrics.last_inbound_at.is_some())
    };
    assert_eq!((marked().await, begins(unproven.message.id).await), (false, false));
    let proven = wrote("2", true);
    assert!(receive(h, &proven).await);
    assert_eq!((marked().await, begins(proven.message.id).await), (true, true));
}

pub(crate) async fn a_new_writer_of_many_messages_is_made_once(h: &Harness) {
    let messages: Vec<_> = (0..20).map(|n| inbound(h, &phone(1), &n.to_string())).collect();
    let received = join_all(messages.iter().map(|message| receive(h, message)));
    let sent = join_all((0..20).map(|_| h.store.accept(h.item(&phone(1)))));
    let (received, sent) = futures::future::join(received, sent).await;
    assert!(received.into_iter().all(|fresh| fresh));
    let mut made: Vec<_> = sent.into_iter().map(|answer| new(answer).0.address).collect();
    for message in &messages {
        made.push(h.lookup(message.message.id).await.address);
    }
    made.dedup();
    assert_eq!((made.len(), h.rows_of("addresses").await, h.rows_of("contacts").await), (1, 1, 1));
}

pub(crate) async fn suppressions_hold_until_lifted(h: &Harness) {
    let (tenant, sender, other) = (h.world.tenant, h.world.sender, h.id());
    let entry = |number, sender, reason| Suppression { id: h.id(), recipient: phone(number), sender, reason, source: "STOP".to_owned() };
    let mut tx = h.begin().await;
    for (entry, fresh) in [
        (entry(1, None, SuppressionReason::Bounce), true),
        (entry(1, None, SuppressionReason::Bounce), false),
        (entry(1, Some(sender), SuppressionReason::OptOut), true),
        (entry(2, Some(sender), SuppressionReason::OptOut), true),
        (entry(2, Some(sender), SuppressionReason::OptOut), false),
    ] {
        assert_eq!(tx.insert_suppression(tenant, &entry, START).await.unwrap(), fresh, "{entry:?}");
    }
    tx.commit().await.unwrap();
    let suppressed =
        async |kind, number: u32, sender| h.read().await.is_suppressed(tenant, kind, &phone(number).identifier, sender).await.unwrap();
    assert!(suppressed(AddressKind::Phone, 1, other).await, "for all senders");
    assert!(suppressed(AddressKind::Phone, 2, sender).await);
    assert!(!suppressed(AddressKind::Phone, 2, other).await);
    assert!(!suppressed(AddressKind::Telegram, 1, sender).await);
    assert!(!suppressed(AddressKind::Phone, 3, sender).await);
    assert!(!h.read().await.is_suppressed(h.other.tenant, AddressKind::Phone, &phone(1).identifier, sender).await.unwrap());

    let mut tx = h.begin().await;
    assert!(!tx.delete_opt_out(tenant, &phone(2), other, START).await.unwrap());
    assert!(!tx.delete_opt_out(h.other.tenant, &phone(2), sender, START).await.unwrap());
    let before = Timestamp::from_millis(START.millis() - 1);
    for number in [1, 2] {
        assert!(!tx.delete_opt_out(tenant, &phone(number), sender, before).await.unwrap(), "it was given later");
        assert!(tx.delete_opt_out(tenant, &phone(number), sender, START).await.unwrap());
        assert!(!tx.delete_opt_out(tenant, &phone(number), sender, START).await.unwrap());
    }
    tx.commit().await.unwrap();
    assert!(suppressed(AddressKind::Phone, 1, sender).await, "the bounce stays");
    assert!(!suppressed(AddressKind::Phone, 2, sender).await);
}
