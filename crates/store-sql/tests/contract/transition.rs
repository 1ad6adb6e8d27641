//! Steps of messages.

use std::collections::BTreeSet;

use futures::future::join_all;
use nuncio_domain::MessageId;
use nuncio_domain::lifecycle::{Applied, Outcome, ReceiptKind, Resolution, Step};
use nuncio_domain::message::{AttemptStatus, FailureCode, HeldReason, NodeId, Status, Wait};
use nuncio_store::{Skip, StoreError, Suppression, SuppressionReason, Transitioned};

use crate::harness::{Backend, Harness, NODE, START, in_tx};
use crate::make::{DAY, MINUTE, failure, found, phone, receipt, settle, start, started, taken};

/// A second live node.
const RIVAL: NodeId = NodeId(2);

async fn rival(h: &Harness) {
    in_tx!(h, |tx| tx.insert_node(RIVAL, START).await.unwrap());
}

pub(crate) async fn of_two_starters_one_wins(h: &Harness) {
    rival(h).await;
    let message = h.accept(h.item(&phone(1))).await;
    let starts = vec![h.transition(message.id, start(NODE, 0)), h.transition(message.id, start(RIVAL, 0))];
    let mut answers = h.steps_at_once(starts).await;
    let (lost, state) = found(answers.remove(1));
    let mut whole = started(answers.remove(0));
    assert_eq!((lost, state.wait, state.fence), (Applied::Lost, Wait::Owned { node: NODE }, 1));
    assert_eq!(h.lookup(message.id).await, whole);
    whole.state = message.state.clone();
    assert_eq!(whole, message, "a start answers the whole message");
    assert_eq!(h.events(message.id).await.len(), 2);

    // In separate transactions, and many times.
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(h.accept(h.item(&phone(n))).await.id);
    }
    let races = ids.iter().flat_map(|id| [(*id, NODE), (*id, RIVAL)]);
    let answers = join_all(races.map(|(id, node)| h.step(id, start(node, 0)))).await;
    assert_eq!(answers.iter().filter(|(applied, _)| *applied == Applied::Yes).count(), 20);
    for id in ids {
        assert_eq!(h.lookup(id).await.state.detail.attempts.len(), 1);
    }
}

pub(crate) async fn steps_of_one_message_fold_in_any_order(h: &Harness) {
    for turn in 0..6_u32 {
        let message = h.sending(turn).await;
        let now = h.tick();
        let mut steps =
            vec![settle(0, message.state.fence, taken("p")), receipt(ReceiptKind::Delivered, now), receipt(ReceiptKind::Read, now)];
        steps.swap(0, turn as usize % 3);
        steps.swap(1, 1 + turn as usize / 3);
        let bystander = h.sending(99).await;
        let mut items: Vec<_> = steps.into_iter().map(|step| h.transition(message.id, step)).collect();
        items.insert(1, h.transition(bystander.id, settle(0, bystander.state.fence, taken("q"))));
        let answers = h.steps_at_once(items).await;
        let last = found(answers.into_iter().last().unwrap()).1;
        assert_eq!((last.status, last.wait), (Status::Read, Wait::Nothing));
        assert_eq!(h.lookup(message.id).await.state, last, "what was answered is what is stored");
        assert_eq!(h.events(message.id).await.len(), 2, "one row for the birth, one for the batch");
        assert_eq!(h.lookup(bystander.id).await.state.status, Status::Sent);
    }
}

pub(crate) async fn what_a_step_told_is_answered(h: &Harness) {
    let message = h.sending(1).await;
    let now = h.tick();
    let items = vec![
        h.transition(message.id, settle(0, message.state.fence, taken("p"))),
        h.transition(message.id, receipt(ReceiptKind::Delivered, now)),
        h.transition(message.id, receipt(ReceiptKind::Delivered, now)),
    ];
    let told: Vec<Vec<Status>> = h
        .steps_at_once(items)
        .await
        .into_iter()
        .map(|answer| match answer {
            Ok(Transitioned::Found { changes, address, message: None, .. }) => {
                assert_eq!(address, message.address);
                changes.iter().map(|c| c.status).collect()
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(told, [vec![Status::Sent], vec![Status::Delivered], vec![]]);
}

pub(crate) async fn a_zombie_is_believed_but_not_obeyed(h: &Harness) {
    rival(h).await;
    let message = h.sending(1).await;
    let (recovered, state) = h.step(message.id, Step::Recover { node: NODE, retry_in: MINUTE }).await;
    assert_eq!((recovered, state.detail.attempts[0].status), (Applied::Yes, AttemptStatus::Unknown));
    let again = started(h.store.transition(h.transition(message.id, start(RIVAL, state.fence))).await);
    assert!(again.state.detail.possible_duplicate);
    let (applied, state) = h.step(message.id, settle(0, message.state.fence, taken("p-17"))).await;
    assert_eq!((applied, state.status, state.wait), (Applied::Yes, Status::Sent, Wait::Owned { node: RIVAL }));
    assert_eq!(state.fence, again.state.fence, "its decision is refused");
    let stored = h.lookup(message.id).await.state;
    assert_eq!(stored.detail.attempts[0].provider_message_id.as_deref(), Some("p-17"));
    assert!(stored.detail.possible_duplicate);
    assert!(h.events(message.id).await.last().unwrap().changes[0].possible_duplicate);
    let (applied, _) = h.step(message.id, Step::Recover { node: NODE, retry_in: MINUTE }).await;
    assert_eq!(applied, Applied::Lost);
}

pub(crate) async fn what_is_not_there_is_missing(h: &Harness) {
    let foreign = h.accept(h.item_in(&h.other, &phone(1))).await;
    let known = h.sending(1).await;
    let ghost: MessageId = h.id();
    let items = vec![
        h.transition(foreign.id, Step::Cancel),
        h.transition(ghost, start(NODE, 0)),
        h.transition(known.id, settle(0, known.state.fence, taken("p"))),
    ];
    let mut answers = h.steps_at_once(items).await;
    assert_eq!(found(answers.remove(2)).0, Applied::Yes);
    for answer in answers {
        assert!(matches!(answer, Ok(Transitioned::Missing)), "{answer:?}");
    }
    assert_eq!(h.lookup_in(h.other.tenant, foreign.id).await, Some(foreign));
}

pub(crate) async fn a_cancel_and_a_start_exclude_each_other(h: &Harness) {
    for cancel_first in [true, false] {
        let message = h.accept(h.item(&phone(1))).await;
        let mut items = vec![h.transition(message.id, start(NODE, 0)), h.transition(message.id, Step::Cancel)];
        if cancel_first {
            items.reverse();
        }
        let applied: Vec<_> = h.steps_at_once(items).await.into_iter().map(|answer| found(answer).0).collect();
        assert_eq!(applied, [Applied::Yes, Applied::Lost]);
        let status = h.lookup(message.id).await.state.status;
        assert_eq!(status, if cancel_first { Status::Cancelled } else { Status::Sending });
    }
    let mut ids = Vec::new();
    for n in 0..20 {
        ids.push(h.accept(h.item(&phone(n))).await.id);
    }
    let races = join_all(ids.iter().map(|id| futures::future::join(h.step(*id, start(NODE, 0)), h.step(*id, Step::Cancel)))).await;
    for (id, ((started, _), (cancelled, _))) in ids.iter().zip(races) {
        assert_ne!(started, cancelled, "exactly one of the two");
        let state = h.lookup(*id).await.state;
        assert_eq!(state.status == Status::Cancelled, cancelled == Applied::Yes);
        assert_eq!(state.detail.attempts.len(), usize::from(started == Applied::Yes));
        h.events(*id).await;
    }
}

pub(crate) async fn waiting_for_a_receipt_ends(h: &Harness) {
    let message = h.sent(1).await;
    let Wait::Receipt { deadline } = message.state.wait else { panic!("{:?}", message.state.wait) };
    let shards: Vec<i16> = (0..64).collect();
    let resting = Skip { all: vec![h.world.connection], bulk: Vec::new() };
    let due = async |at| h.read().await.due_messages(&shards, &resting, at, 9).await.unwrap().messages;
    let early = deadline.minus(std::time::Duration::from_millis(1));
    assert!(due(early).await.is_empty());
    let now_due = due(deadline).await;
    assert_eq!((now_due[0].id, now_due[0].fence, now_due[0].wait), (message.id, message.state.fence, Some(message.state.wait)));
    let mut step = h.transition(message.id, Step::Deadline { fence: message.state.fence });
    step.now = early;
    assert_eq!(found(h.store.transition(step.clone()).await).0, Applied::Lost);
    step.now = deadline;
    let (applied, state) = found(h.store.transition(step).await);
    assert_eq!((applied, state.wait, state.status), (Applied::Yes, Wait::Nothing, Status::Sent));
    assert!(due(deadline.plus(DAY)).await.is_empty());
}

pub(crate) async fn a_person_decides_about_a_held_message(h: &Harness) {
    for (action, status, wait) in
        [(Resolution::Sent, Status::Sent, true), (Resolution::Failed, Status::Failed, true), (Resolution::Resend, Status::Sending, false)]
    {
        let message = h.sending(1).await;
        assert_eq!(h.step(message.id, Step::Hold { reason: HeldReason::UnknownOutcome }).await.0, Applied::Yes);
        let held = h.lookup(message.id).await.state;
        assert!(matches!(held.wait, Wait::Held { reason: HeldReason::UnknownOutcome, .. }), "{:?}", held.wait);
        let waiting = h.read().await.held_messages(None, 9).await.unwrap();
        assert_eq!(waiting.iter().map(|m| (m.id, m.wait)).collect::<Vec<_>>(), [(message.id, Some(held.wait))]);
        let (applied, state) = h.step(message.id, Step::Resolve { action }).await;
        assert_eq!((applied, state.status, state.is_final()), (Applied::Yes, status, wait));
        assert!(h.read().await.held_messages(None, 9).await.unwrap().is_empty());
    }
}

pub(crate) async fn held_messages_are_walked_in_pages(h: &Harness) {
    let mut expected = Vec::new();
    for _ in 0..5 {
        let message = h.sending(1).await;
        assert_eq!(h.step(message.id, Step::Hold { reason: HeldReason::UnknownOutcome }).await.0, Applied::Yes);
        expected.push(message.id);
    }
    expected.sort_unstable();
    let (mut walked, mut after) = (Vec::new(), None);
    loop {
        let page = h.read().await.held_messages(after, 2).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        after = Some((last.tenant, last.id));
        walked.extend(page.iter().map(|m| m.id));
        // It is sent again and held again: it does not come twice.
        h.step(last.id, Step::Resolve { action: Resolution::Resend }).await;
        let waits = h.step(last.id, Step::Hold { reason: HeldReason::UnknownOutcome }).await.1.wait;
        assert!(matches!(waits, Wait::Held { .. }), "{waits:?}");
    }
    assert_eq!(walked, expected);
}

pub(crate) async fn a_recipient_suppressed_meanwhile_is_not_sent_to(h: &Harness) {
    let (first, second) = (h.accept(h.item(&phone(1))).await, h.accept(h.item(&phone(2))).await);
    for (to, sender) in [(1, None), (2, Some(h.id()))] {
        let recipient = phone(to);
        let entry = Suppression { id: h.id(), recipient, sender, reason: SuppressionReason::Complaint, source: String::new() };
        in_tx!(h, |tx| tx.insert_suppression(h.world.tenant, &entry, START).await.unwrap());
    }
    match h.store.transition(h.transition(first.id, start(NODE, 0))).await {
        Ok(Transitioned::Found { applied: Applied::Yes, state, message: None, .. }) => {
            assert_eq!(state.detail.failure.map(|f| f.code), Some(FailureCode::RecipientSuppressed));
        }
        other => panic!("{other:?}"),
    }
    assert!(h.lookup(first.id).await.state.detail.attempts.is_empty());
    started(h.store.transition(h.transition(second.id, start(NODE, 0))).await);
}

pub(crate) async fn a_retry_takes_the_fallback_route(h: &Harness) {
    let mut item = h.claimed(&phone(1));
    let sms = item.message.state.route.clone();
    let other = nuncio_domain::message::Route { channel: nuncio_domain::Channel::Voice, connection: h.id(), provider: "voice".to_owned() };
    item.message.state.detail.fallback = Some(other.clone());
    let message = h.accept(item).await;
    assert_eq!(message.state.route, sms);
    let refused = Outcome::Rejected { failure: failure(FailureCode::Undeliverable) };
    let (_, state) = h.step(message.id, settle(0, message.state.fence, refused)).await;
    let again = started(h.store.transition(h.transition(message.id, start(NODE, state.fence))).await);
    assert_eq!((again.state.route, again.state.detail.fallback), (other, None));
    assert_eq!(h.lookup(message.id).await.state.detail.attempts.len(), 2);
}

pub(crate) async fn a_message_that_cannot_be_read_fails_alone(h: &Harness) {
    h.leaves_broken_rows();
    let mut messages = Vec::new();
    for n in 0..12 {
        messages.push(h.sending(n).await);
    }
    let broken = messages[5].clone();
    h.sql(&format!("UPDATE states SET detail = '{{', revision = revision + 1 WHERE id = {}", h.literal(broken.id))).await;
    let items = messages.iter().map(|m| h.transition(m.id, settle(0, m.state.fence, taken("p")))).collect();
    let answers = h.steps_at_once(items).await;
    let mut written = BTreeSet::new();
    for (message, answer) in messages.iter().zip(answers) {
        if message.id == broken.id {
            assert!(matches!(answer, Err(StoreError::Corrupt { table: "messages", .. })), "{answer:?}");
        } else {
            assert_eq!(found(answer).0, Applied::Yes);
            written.insert(message.id);
        }
    }
    for id in written {
        let state = h.lookup(id).await.state;
        assert_eq!((state.status, state.detail.attempts.len()), (Status::Sent, 1));
        h.events(id).await;
    }
    let unread = h.read().await.lookup_message(h.world.tenant, broken.id).await;
    assert!(matches!(unread, Err(StoreError::Corrupt { .. })), "{unread:?}");
}

/// On PostgreSQL, all messages of its batch share its fate: what was sent before the panic may have been committed.
pub(crate) async fn a_message_that_panics_fails_alone(h: &Harness) {
    if h.backend == Backend::Postgres {
        return;
    }
    h.leaves_broken_rows();
    let mut messages = Vec::new();
    for n in 0..12 {
        messages.push(h.sending(n).await);
    }
    let broken = messages[5].clone();
    // The next version overflows.
    h.sql(&format!("UPDATE states SET version = {}, revision = revision + 1 WHERE id = {}", i64::MAX, h.literal(broken.id))).await;
    let items = messages.iter().map(|m| h.transition(m.id, settle(0, m.state.fence, taken("p")))).collect();
    for (message, answer) in messages.iter().zip(h.steps_at_once(items).await) {
        if message.id == broken.id {
            assert!(answer.is_err(), "{answer:?}");
        } else {
            assert_eq!(found(answer).0, Applied::Yes);
        }
    }
}
