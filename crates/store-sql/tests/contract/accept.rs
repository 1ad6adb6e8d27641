//! Accepting new messages.

use std::collections::BTreeSet;

use nuncio_domain::broadcast;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::message::{Attachment, AttachmentSource, AttemptStatus, Cost, FailureCode, Message, NodeId, Status, Wait};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, MessageId, Micros, Recipient, TenantId, Timestamp};
use nuncio_store::{Accept, Accepted, Claim, MessageFilter, StoreError, Suppression, SuppressionReason, Transition};

use crate::broadcasts::{claimed, with_contacts};
use crate::harness::{Backend, Harness, NODE, START};
use crate::make::{Boxed, failure, found, new, phone, settle, start, started, taken, with_key};

pub(crate) async fn a_new_recipient_gets_an_address_and_a_contact(h: &Harness) {
    let item = h.item(&phone(1));
    let (message, contact) = new(h.store.accept(item.clone()).await);
    assert_eq!((message.address, contact), (item.new_address, item.new_contact));
    assert_eq!((message.state.status, message.state.version, message.state.fence), (Status::Queued, 1, 0));
    assert_eq!(message.state.wait, item.message.state.wait);
    assert_eq!(h.lookup(message.id).await, message);
    let known = h.read().await.find_address(h.world.tenant, &phone(1)).await.unwrap();
    assert_eq!(known, Some((item.new_address, item.new_contact)));
    let events = h.events(message.id).await;
    assert_eq!(events.len(), 1);
    assert_eq!((events[0].message, events[0].recorded_at, events[0].changes.len()), (message.id, item.message.state.updated_at, 1));
}

pub(crate) async fn a_known_recipient_keeps_both(h: &Harness) {
    let (first, contact) = new(h.store.accept(h.item(&phone(1))).await);
    let (second, same) = new(h.store.accept(h.item(&phone(1))).await);
    assert_eq!((second.address, same), (first.address, contact));
    assert_eq!((h.rows_of("addresses").await, h.rows_of("contacts").await), (1, 1));
    // Another kind of identifier, or another environment, is another address.
    let chat = Recipient { kind: AddressKind::Telegram, identifier: phone(1).identifier };
    let (third, other) = new(h.store.accept(h.item(&chat)).await);
    assert!(third.address != first.address && other != contact);
    let (fourth, other) = new(h.store.accept(h.item_in(&h.other, &phone(1))).await);
    assert!(fourth.address != first.address && other != contact);
    assert_eq!((h.rows_of("addresses").await, h.rows_of("contacts").await), (3, 3));
}

pub(crate) async fn a_new_recipient_of_many_messages_is_made_once(h: &Harness) {
    let mut answers = h.accept_at_once((0..9).map(|_| h.item(&phone(1))).collect()).await;
    answers.extend(h.accept_from_tasks((0..50).map(|_| h.item(&phone(2)))).await);
    let made: BTreeSet<_> = answers
        .into_iter()
        .map(|a| {
            let (m, c) = new(a);
            (m.to, m.address, c)
        })
        .collect();
    assert_eq!(made.len(), 2, "{made:?}");
    assert_eq!((h.rows_of("addresses").await, h.rows_of("contacts").await, h.rows_of("messages").await), (2, 2, 59));
}

pub(crate) async fn a_claimed_message_is_born_sending(h: &Harness) {
    let message = h.sending(1).await;
    assert_eq!((message.state.status, message.state.fence, message.state.version), (Status::Sending, 1, 2));
    assert_eq!(message.state.wait, Wait::Owned { node: NODE });
    let statuses: Vec<_> = message.state.detail.attempts.iter().map(|a| a.status).collect();
    assert_eq!(statuses, [AttemptStatus::Started]);
    assert_eq!(h.lookup(message.id).await, message);
    let events = h.events(message.id).await;
    let told: Vec<Vec<_>> = events.iter().map(|e| e.changes.iter().map(|c| c.status).collect()).collect();
    assert_eq!(told, [[Status::Queued, Status::Sending]], "one row for both");
    let owned = h.read().await.messages_owned_by(NODE, 10).await.unwrap().messages;
    assert_eq!(owned.iter().map(|m| m.id).collect::<Vec<_>>(), [message.id]);
}

pub(crate) async fn a_new_message_passes_the_steps_that_wait(h: &Harness) {
    const STEPS: u32 = 600;
    let old: Vec<_> = h.accept_from_tasks((1..=STEPS).map(|n| h.item(&phone(n)))).await.into_iter().map(|a| new(a).0.id).collect();
    let begin = h.read().await.log_end(h.world.tenant).await.unwrap();
    let item = h.item(&phone(1));
    let id = item.message.id;
    let cancel = |id| async move { drop(found(h.store.transition(h.transition(id, Step::Cancel)).await)) };
    let mut items: Vec<Boxed<'_, ()>> = old.into_iter().map(|id| Box::pin(cancel(id)) as _).collect();
    items.push(Box::pin(async { drop(new(h.store.accept(item).await)) }));
    let nothing = Box::pin(async { drop(h.store.transition(h.transition(h.id(), Step::Cancel)).await) });
    h.at_once(nothing, items).await;
    let log = h.read().await.read_log(h.world.tenant, begin, 1000).await.unwrap();
    assert_eq!(log.len(), STEPS as usize + 1);
    let place = log.iter().position(|entry| entry.resource == id.uuid()).unwrap();
    assert!(place < 64, "it was written after {place} steps");
}

pub(crate) async fn a_start_waits_for_the_results_that_made_room(h: &Harness) {
    const RESULTS: u32 = 600;
    let old = h.accept_from_tasks((1..=RESULTS).map(|n| h.claimed(&phone(n)))).await;
    let old: Vec<_> = old.into_iter().map(|a| new(a).0).collect();
    let begin = h.read().await.log_end(h.world.tenant).await.unwrap();
    let (item, other) = (h.claimed(&phone(1)), h.item(&phone(2)));
    let (started, queued) = (item.message.id, other.message.id);
    let result = |message: Message| async move {
        let frees = Some(message.state.route.connection);
        let step = settle(0, message.state.fence, taken(&message.id.to_string()));
        drop(found(h.store.transition(Transition { frees, ..h.transition(message.id, step) }).await));
    };
    let mut items: Vec<_> = old.into_iter().map(|message| Box::pin(result(message)) as Boxed<'_, ()>).collect();
    for item in [other, item] {
        items.push(Box::pin(async { drop(new(h.store.accept(item).await)) }));
    }
    let nothing = Box::pin(async { drop(h.store.transition(h.transition(h.id(), Step::Cancel)).await) });
    h.at_once(nothing, items).await;
    let log = h.read().await.read_log(h.world.tenant, begin, 1000).await.unwrap();
    assert_eq!(log.len(), RESULTS as usize + 2);
    let place = |id: MessageId| log.iter().position(|entry| entry.resource == id.uuid()).unwrap();
    // A transaction holds at most 256 items, its new messages first.
    assert!(place(started) > RESULTS as usize - 256, "it was written after {} results", place(started));
    assert!(place(queued) < 64, "what starts no attempt was written after {} results", place(queued));
}

pub(crate) async fn a_new_message_passes_a_broadcast(h: &Harness) {
    const RECIPIENTS: u32 = 600;
    let (of, contacts) = with_contacts(h, RECIPIENTS, broadcast::Status::Sending).await;
    let begin = h.read().await.log_end(h.world.tenant).await.unwrap();
    let item = h.item(&phone(1));
    let id = item.message.id;
    let mut items: Vec<_> = contacts.iter().map(|contact| claimed(h, of, contact)).collect();
    items.push(item);
    assert!(h.accept_at_once(items).await.iter().all(|answer| matches!(answer, Ok(Accepted::New { .. }))));
    let log = h.read().await.read_log(h.world.tenant, begin, 1000).await.unwrap();
    assert_eq!(log.len(), RECIPIENTS as usize + 1);
    let place = log.iter().position(|entry| entry.resource == id.uuid()).unwrap();
    assert!(place < 64, "it was written after {place} messages of a broadcast");
}

pub(crate) async fn a_suppressed_recipient_gets_nothing(h: &Harness) {
    let entry = |number, sender, reason| Suppression { id: h.id(), recipient: phone(number), sender, reason, source: "test".to_owned() };
    let mut tx = h.begin().await;
    for (number, sender, reason) in [
        (1, None, SuppressionReason::Bounce),
        (2, Some(h.world.sender), SuppressionReason::OptOut),
        (3, Some(h.id()), SuppressionReason::OptOut),
    ] {
        assert!(tx.insert_suppression(h.world.tenant, &entry(number, sender, reason), START).await.unwrap());
    }
    tx.commit().await.unwrap();
    for number in [1, 2] {
        let key = number.to_string();
        let item = Accept { claim: Some(Claim { node: NODE }), ..with_key(h.item(&phone(number)), &key, 1) };
        let message = h.accept(item).await;
        assert_eq!((message.state.status, message.state.wait), (Status::Failed, Wait::Nothing));
        assert!(message.state.detail.attempts.is_empty());
        assert_eq!(message.state.detail.failure.as_ref().map(|f| f.code), Some(FailureCode::RecipientSuppressed));
        assert_eq!(h.lookup(message.id).await, message);
        let events = h.events(message.id).await;
        assert_eq!((events.len(), events[0].changes[0].status), (1, Status::Failed));
    }
    // A suppression for another sender, or in the other environment, does not apply.
    assert_eq!(h.accept(h.claimed(&phone(3))).await.state.status, Status::Sending);
    assert_eq!(h.accept(h.item_in(&h.other, &phone(1))).await.state.status, Status::Queued);
}

pub(crate) async fn a_stale_plan_writes_nothing(h: &Harness) {
    let mut tx = h.begin().await;
    tx.raise_epoch(h.world.tenant).await.unwrap();
    tx.commit().await.unwrap();
    let stale = with_key(h.item(&phone(1)), "key", 1);
    let mut nowhere = h.item(&phone(2));
    nowhere.message.tenant = TenantId(404);
    let mut fresh = with_key(h.item(&phone(1)), "key", 1);
    fresh.epoch += 1;
    for item in [&stale, &nowhere] {
        assert!(matches!(h.store.accept(item.clone()).await, Ok(Accepted::Stale)));
    }
    for table in ["messages", "states", "log", "addresses", "contacts", "idempotency_keys"] {
        assert_eq!(h.rows_of(table).await, 0, "{table}");
    }
    // Together with a current one in the same transaction, it is still stale.
    let mut answers = h.accept_at_once(vec![stale.clone(), fresh, stale]).await;
    assert!(matches!(answers.remove(2), Ok(Accepted::Stale)));
    assert!(matches!(answers.remove(0), Ok(Accepted::Stale)));
    new(answers.remove(0));
    assert_eq!(h.rows_of("messages").await, 1);
}

pub(crate) async fn a_large_request_comes_back_whole(h: &Harness) {
    for (number, bytes) in [(1, 300_000), (2, 5_000_000)] {
        let mut item = h.item(&phone(number));
        item.message.request_mut().metadata = Some([("size".to_owned(), bytes.into())].into_iter().collect());
        item.message.request_mut().attachments = vec![Attachment {
            id: h.id(),
            filename: "café.bin".to_owned(),
            content_type: "application/octet-stream".to_owned(),
            content_id: None,
            size: Some(bytes),
            source: AttachmentSource::Base64("ä7".repeat(bytes as usize / 3).into()),
        }];
        let asked = item.message.request.clone();
        let message = h.accept(item).await;
        assert!(message.request == asked, "the answer");
        assert!(h.lookup(message.id).await == message, "lookup");
        let page = PageRequest::newest(5);
        let filter = MessageFilter { to: Some(message.to.clone()), ..MessageFilter::default() };
        let listed = h.read().await.list_messages(h.world.tenant, &filter, page).await.unwrap();
        let mut outline = message.clone();
        outline.request_mut().drop_bulk();
        assert!(listed.items == [outline.clone()], "list");
        let metadata = [("size".to_owned(), bytes.to_string())].into_iter().collect();
        let filter = MessageFilter { metadata, ..MessageFilter::default() };
        let listed = h.read().await.list_messages(h.world.tenant, &filter, page).await.unwrap();
        assert!(listed.items == [outline], "list by metadata");
        let sent = started(h.store.transition(h.transition(message.id, start(NODE, 0))).await);
        assert!(sent.request == asked, "start");
    }
}

pub(crate) async fn a_large_request_to_a_suppressed_recipient_comes_back_too(h: &Harness) {
    let entry = Suppression { id: h.id(), recipient: phone(1), sender: None, reason: SuppressionReason::Manual, source: String::new() };
    let mut tx = h.begin().await;
    tx.insert_suppression(h.world.tenant, &entry, START).await.unwrap();
    tx.commit().await.unwrap();
    let mut item = h.item(&phone(1));
    item.message.request_mut().html_body = Some("<p>".repeat(100_000));
    let message = h.accept(item).await;
    assert_eq!(message.state.status, Status::Failed);
    assert!(h.lookup(message.id).await == message);
}

pub(crate) async fn every_value_comes_back_as_it_was(h: &Harness) {
    let odd = "e\u{301} \u{1F469}\u{200D}\u{1F680} \u{10FFFF} \\ \" ' % _ \r\n\t\u{7f}\u{1} ﷽";
    let recipient = Recipient { kind: AddressKind::Email, identifier: "\u{1F4EE}.\u{10348}@exämple.org".to_owned() };
    let mut item =
        Accept { country: String::new(), claim: Some(Claim { node: NodeId(i64::MAX) }), ..with_key(h.item(&recipient), odd, 255) };
    let mut tx = h.begin().await;
    tx.insert_node(NodeId(i64::MAX), START).await.unwrap();
    tx.insert_node(NodeId(i64::MIN), START).await.unwrap();
    tx.commit().await.unwrap();
    let message = &mut item.message;
    message.from = String::new();
    message.request_mut().text = Some(odd.to_owned());
    message.request_mut().subject = Some(String::new());
    message.request_mut().html_body = None;
    message.request_mut().fallback_enabled = false;
    message.request_mut().scheduled_at = Some(Timestamp::from_millis(253_402_300_799_999));
    message.request_mut().metadata = serde_json::from_value(serde_json::json!({
        "": null, odd: odd, "numbers": [i64::MIN, i64::MAX, u64::MAX, 0.1, -1.5e20], "deep": {"a": [{}]}
    }))
    .unwrap();
    message.state.expires_at = Timestamp::from_millis(253_402_300_799_999);
    message.state.route.provider = odd.to_owned();
    message.state.detail.segments = Some(u16::MAX);
    let accepted = h.accept(item).await;
    assert_eq!(h.lookup(accepted.id).await, accepted);
    let stored = h.read().await.find_address(h.world.tenant, &recipient).await.unwrap();
    assert_eq!(stored.map(|(address, _)| address), Some(accepted.address));

    let cost = Some(Cost { fee: Micros(i64::MAX), provider: Micros(i64::MIN) });
    let outcome = nuncio_domain::lifecycle::Outcome::Accepted { refs: vec![odd.to_owned()], cost };
    let (_, state) = h.step(accepted.id, settle(0, accepted.state.fence, outcome)).await;
    assert_eq!((state.detail.cost, state.detail.attempts[0].provider_message_id.as_deref()), (cost, Some(odd)));
    assert_eq!(h.lookup(accepted.id).await.state, state);
    assert_eq!(h.events(accepted.id).await[1].changes[0].cost, cost);

    let lowest = h.accept(Accept { claim: Some(Claim { node: NodeId(i64::MIN) }), ..h.item(&phone(7)) }).await;
    assert_eq!(h.lookup(lowest.id).await.state.wait, Wait::Owned { node: NodeId(i64::MIN) });
    assert_eq!(lowest.request.idempotency_key, None);
    let mut empty = failure(FailureCode::Undeliverable);
    (empty.message, empty.provider_code) = (String::new(), Some(String::new()));
    let refused = nuncio_domain::lifecycle::Outcome::Rejected { failure: empty.clone() };
    h.step(lowest.id, settle(0, lowest.state.fence, refused)).await;
    assert_eq!(h.lookup(lowest.id).await.state.detail.failure, Some(empty));
}

pub(crate) async fn a_message_that_cannot_be_written_fails_alone(h: &Harness) {
    let good: Vec<_> = (0..12).map(|n| h.item(&phone(n))).collect();
    let mut twice = h.item(&phone(30));
    twice.message.id = good[3].message.id;
    let mut poison = h.item(&phone(31));
    poison.message.from = "a\0b".to_owned();
    let mut items = good.clone();
    items.insert(8, twice);
    items.insert(5, poison);
    let answers = h.accept_at_once(items).await;
    let mut written = BTreeSet::new();
    for (n, answer) in answers.into_iter().enumerate() {
        match (n, h.backend) {
            (9, _) => assert!(matches!(answer, Err(StoreError::Conflict(_))), "{answer:?}"),
            (5, Backend::Postgres) => assert!(matches!(answer, Err(StoreError::Other(_))), "{answer:?}"),
            (5, Backend::Sqlite) => assert_eq!(new(answer).0.from, "a\0b"),
            _ => assert!(written.insert(new(answer).0.id)),
        }
    }
    assert_eq!(written, good.iter().map(|item| item.message.id).collect());
    for item in &good {
        assert_eq!(h.lookup(item.message.id).await.to, item.message.to, "the first of the two was kept");
        h.events(item.message.id).await;
    }
    assert_eq!(h.rows_of("states").await, h.rows_of("messages").await);
    assert_eq!(h.rows_of("addresses").await, h.rows_of("contacts").await);
}

/// A message must never refer to the address of another recipient.
pub(crate) async fn an_address_that_is_taken_is_given_to_nobody_else(h: &Harness) {
    let first = h.accept(h.item(&phone(1))).await;
    let mut second = h.item(&phone(2));
    second.new_address = first.address;
    second.message.address = first.address;
    let answer = h.store.accept(second.clone()).await;
    assert!(matches!(answer, Err(StoreError::Conflict(_))), "{answer:?}");
    assert_eq!((h.rows_of("messages").await, h.rows_of("addresses").await, h.rows_of("agenda").await), (1, 1, 1), "nothing is half-done");
    assert_ne!(h.accept(h.item(&phone(2))).await.address, first.address);
}

pub(crate) async fn what_was_handed_in_is_written_though_nobody_waits(h: &Harness) {
    let item = h.item(&phone(1));
    let id: MessageId = item.message.id;
    {
        let mut asked = h.store.accept(item);
        // The first poll enqueues it; then the caller is dropped.
        let _ = futures::poll!(asked.as_mut());
    }
    // Later items queue behind it.
    h.accept(h.item(&phone(2))).await;
    assert_eq!(h.lookup(id).await.id.uuid(), id.uuid());
}

pub(crate) async fn a_settled_message_comes_back_with_its_attempt(h: &Harness) {
    let message = h.sent(1).await;
    assert_eq!(h.lookup(message.id).await, message);
    let (again, state) = h.step(message.id, settle(0, message.state.fence, taken("p"))).await;
    assert_eq!((again, state), (nuncio_domain::lifecycle::Applied::Lost, message.state));
}
