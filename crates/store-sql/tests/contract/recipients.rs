//! Rows of broadcast recipients, and how rarely they are written.

use nuncio_domain::broadcast::ContactStatus::{self, Delivered, Failed, Pending, Queued, Sending, Skipped};
use nuncio_domain::broadcast::{Counts, Status};
use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, Step};
use nuncio_domain::message::FailureCode;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{BroadcastId, limits};
use nuncio_store::{Accepted, NewBroadcastContact, Transition};

use crate::broadcasts::{ALL, claimed, find, item, standing, with_contacts};
use crate::harness::{Harness, NODE, START, in_tx};
use crate::make::{DAY, failure, phone, receipt, settle, settle_by, start, taken};

const EVERY: [ContactStatus; 6] = [Pending, Queued, Sending, Delivered, Failed, Skipped];

/// Returns the phone numbers of the recipients with a status.
async fn listed(h: &Harness, id: BroadcastId, status: &[ContactStatus]) -> Vec<String> {
    let page = h.read().await.list_broadcast_contacts(h.world.tenant, id, status, ALL).await.unwrap();
    assert_eq!(page.next, None);
    assert!(page.items.iter().all(|c| status.contains(&c.status)), "{:?}", page.items);
    page.items.iter().rev().map(|c| c.recipient.identifier.clone()).collect()
}

/// Creates a broadcast with a recipient in each state: pending, queued, sending, accepted, accepted without receipts, accepted with overdue
/// receipt, delivered, rejected, cancelled.
async fn of_every_kind(h: &Harness) -> (BroadcastId, Vec<NewBroadcastContact>) {
    let (id, contacts) = with_contacts(h, 9, Status::Sending).await;
    h.accept(item(h, id, &contacts[1])).await;
    h.accept(claimed(h, id, &contacts[2])).await;
    let sent = |n: usize, receipts| {
        let mut new = claimed(h, id, &contacts[n]);
        if receipts == Receipts::Never {
            new.message.state.detail.broadcast.as_mut().unwrap().no_receipts = true;
        }
        async move {
            let message = h.accept(new).await;
            let outcome = Outcome::Accepted { refs: vec![format!("p{n}")], cost: None };
            let (_, state) = h.step(message.id, settle_by(receipts, 0, message.state.fence, outcome)).await;
            (message, state)
        }
    };
    sent(3, Receipts::ByReference).await;
    sent(4, Receipts::Never).await;
    let (silent, state) = sent(5, Receipts::ByReference).await;
    let late = Transition { now: START.plus(3 * DAY), ..h.transition(silent.id, Step::Deadline { fence: state.fence }) };
    h.store.transition(late).await.unwrap();
    let (arrived, _) = sent(6, Receipts::ByReference).await;
    h.step(arrived.id, receipt(ReceiptKind::Delivered, h.tick())).await;
    let refused = h.accept(claimed(h, id, &contacts[7])).await;
    h.step(refused.id, settle(0, refused.state.fence, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) })).await;
    let cancelled = h.accept(item(h, id, &contacts[8])).await;
    h.step(cancelled.id, Step::Cancel).await;
    (id, contacts)
}

pub(crate) async fn recipients_are_listed_by_what_their_messages_say(h: &Harness) {
    let (id, contacts) = of_every_kind(h).await;
    let expected = [Pending, Queued, Sending, Sending, Delivered, Sending, Delivered, Failed, Skipped];
    assert_eq!(standing(h, id).await, expected);
    for status in EVERY {
        let those = contacts.iter().zip(expected).filter(|(_, s)| *s == status).map(|(c, _)| c.recipient.identifier.clone());
        assert_eq!(listed(h, id, &[status]).await, those.collect::<Vec<_>>(), "{status}");
    }
    assert_eq!(listed(h, id, &EVERY).await.len(), contacts.len());
    assert_eq!(listed(h, id, &[Failed, Skipped]).await.len(), 2);
    let counts = Counts { queued: 1, sending: 3, sent: 2, delivered: 2, failed: 1, skipped: 1, awaited: 3, taken: 4, ..Counts::default() };
    assert_eq!(find(h, id).await.counts, counts);
}

/// After the message is deleted, the row alone yields the same status.
pub(crate) async fn recipients_outlive_their_messages(h: &Harness) {
    let (id, _) = of_every_kind(h).await;
    let before = standing(h, id).await;
    let rows = h.rows_of("messages").await;
    let mut tx = h.begin().await;
    assert_eq!(tx.forget_messages(h.world.tenant, None, START.plus(9 * DAY), 100).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(rows - h.rows_of("messages").await, 5);
    assert_eq!(standing(h, id).await, before);
    assert_eq!(listed(h, id, &[Delivered]).await.len(), 2);
}

/// A recipient's row is written when it is enqueued, and again if it fails. Other steps of its message do not write it.
pub(crate) async fn a_recipient_is_written_once(h: &Harness) {
    let (id, contacts) = with_contacts(h, 2, Status::Sending).await;
    let row = async |n: usize| {
        let of = format!("broadcast_contacts WHERE id = {}", h.literal(contacts[n].id));
        h.sql(&format!("SELECT message_id, outcome, failure, processed_at FROM {of}")).await
    };
    let (arrives, fails) = (h.accept(item(h, id, &contacts[0])).await, h.accept(item(h, id, &contacts[1])).await);
    let handed = [row(0).await, row(1).await];
    for message in [&arrives, &fails] {
        h.step(message.id, start(NODE, 0)).await;
    }
    h.step(arrives.id, settle(0, 1, taken("p"))).await;
    h.step(arrives.id, receipt(ReceiptKind::Delivered, h.tick())).await;
    assert_eq!([row(0).await, row(1).await], handed);
    h.step(fails.id, settle(0, 1, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) })).await;
    assert_ne!(row(1).await, handed[1]);
    assert_eq!(standing(h, id).await, [Delivered, Failed]);
}

/// Finding a few failed recipients does not read the others, and finding pending ones ends soon.
pub(crate) async fn the_few_are_found_among_many(h: &Harness) {
    let many = limits::SCAN_ROWS + 2_000;
    let (id, contacts) = with_contacts(h, many, Status::Sending).await;
    let mut tx = h.begin().await;
    let failures = [0, 1].map(|n: usize| (contacts[n].id, Some(failure(FailureCode::ContentRejected))));
    assert_eq!(tx.end_broadcast_contacts(h.world.tenant, id, &failures, START).await.unwrap(), 2);
    tx.commit().await.unwrap();
    assert_eq!(listed(h, id, &[Failed]).await, [phone(1).identifier, phone(2).identifier]);
    // According to their rows, all but the last are enqueued.
    let last = contacts.last().unwrap();
    let message = h.literal(contacts[0].id);
    h.sql(&format!("UPDATE broadcast_contacts SET message_id = {message} WHERE id < {}", h.literal(last.id))).await;
    let scan = async |after| h.read().await.pending_broadcast_contacts(h.world.tenant, id, after, 10).await.unwrap();
    let first = scan(None).await;
    assert!(first.found.is_empty() && first.next.is_some_and(|next| next < last.id));
    let second = scan(first.next).await;
    assert_eq!((second.found, second.next), (vec![last.clone()], None));
    let page = h.read().await.list_broadcast_contacts(h.world.tenant, id, &[Pending], PageRequest::newest(1)).await.unwrap();
    assert_eq!(page.items[0].id, last.id);
    h.leaves_broken_rows();
}

/// If a message is rejected after its recipient was claimed, the recipient stays pending.
pub(crate) async fn what_is_refused_leaves_its_recipient_pending(h: &Harness) {
    let (id, contacts) = with_contacts(h, 2, Status::Sending).await;
    in_tx!(h, |tx| tx.limit_storage(h.world.tenant, Some(1)).await.unwrap());
    let refused = h.store.accept(item(h, id, &contacts[0])).await;
    assert!(matches!(refused, Ok(Accepted::Full { .. })), "{refused:?}");
    assert_eq!(standing(h, id).await, [Pending, Pending]);
    assert_eq!(find(h, id).await.counts, Counts::default());
    in_tx!(h, |tx| tx.limit_storage(h.world.tenant, None).await.unwrap());
    h.accept(item(h, id, &contacts[0])).await;
    assert_eq!(standing(h, id).await, [Queued, Pending]);
}
