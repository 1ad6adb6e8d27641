//! Broadcasts, their recipients, and the effects of messages on both.

use std::time::Duration;

use nuncio_domain::broadcast::{
    Body, Broadcast, BroadcastChannel, BroadcastType, ContactStatus, Counts, ReviewPolicy, ReviewResult, Status, Variables,
};
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Purpose, Transfer};
use nuncio_domain::lifecycle::{Applied, Outcome, ReceiptKind, Scope, Step};

use nuncio_domain::message::{Cost, Failure, FailureCode, Membership, Money, Quote, QuoteState};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, BroadcastContactId, BroadcastId, Channel, Micros, Recipient, SenderId, TenantId, Timestamp};
use nuncio_store::{
    Accept, Accepted, BroadcastClick, BroadcastLink, DueBroadcast, ImportProgress, LinkClicks, NewBroadcastContact, Skip, Suppression,
    SuppressionReason,
};

use crate::harness::{Harness, NODE, START, in_tx};
use crate::make::{failure, phone, receipt, settle, start, taken};

pub(crate) const ALL: PageRequest = PageRequest::newest(100);

fn draft(h: &Harness, tenant: TenantId) -> Broadcast {
    Broadcast {
        tenant,
        id: h.id(),
        status: Status::Draft,
        channel: BroadcastChannel::Sms,
        message_type: BroadcastType::Text,
        sender: h.world.sender,
        version: 0,
        due_at: None,
        starved: false,
        total: 0,
        html: Some("<p>x</p>".to_owned()),
        body: Body {
            name: "news".to_owned(),
            text: Some("hello".to_owned()),
            review: Some(ReviewResult {
                score: 0.5,
                categories: vec!["spam".to_owned()],
                reasoning: "why".to_owned(),
                reviewed_at: START,
                flagged_content: Vec::new(),
                version: 1,
            }),
            ..Body::default()
        },
        updated_at: START,
        counts: Counts::default(),
    }
}

fn contact(h: &Harness, to: u32) -> NewBroadcastContact {
    NewBroadcastContact { id: h.id(), recipient: phone(to), variables: Variables::default() }
}

pub(crate) async fn find(h: &Harness, id: BroadcastId) -> Broadcast {
    h.read().await.find_broadcast(h.world.tenant, id).await.unwrap().unwrap()
}

/// Creates a broadcast in this status with this many recipients, numbered from 1.
pub(crate) async fn with_contacts(h: &Harness, count: u32, status: Status) -> (BroadcastId, Vec<NewBroadcastContact>) {
    let mut broadcast = draft(h, h.world.tenant);
    let mut contacts: Vec<_> = (1..=count).map(|n| contact(h, n)).collect();
    contacts[0].variables.template_variables = Some([("1".to_owned(), "Ada".to_owned())].into());
    let mut tx = h.begin().await;
    tx.insert_broadcast(&broadcast).await.unwrap();
    assert_eq!(tx.insert_broadcast_contacts(h.world.tenant, broadcast.id, &contacts).await.unwrap(), Some(u64::from(count)));
    (broadcast.status, broadcast.version) = (status, 1);
    assert!(tx.update_broadcast(&broadcast, 0).await.unwrap());
    tx.commit().await.unwrap();
    (broadcast.id, contacts)
}

pub(crate) fn item(h: &Harness, id: BroadcastId, contact: &NewBroadcastContact) -> Accept {
    let mut item = h.item(&contact.recipient);
    item.message.state.detail.broadcast = Some(Membership::new(id, contact.id, false));
    item.broadcast_fence = 1; // one change since the insert
    item
}

pub(crate) fn claimed(h: &Harness, id: BroadcastId, contact: &NewBroadcastContact) -> Accept {
    Accept { claim: Some(nuncio_store::Claim { node: NODE }), ..item(h, id, contact) }
}

/// Returns the statuses of all recipients, in order.
pub(crate) async fn standing(h: &Harness, id: BroadcastId) -> Vec<ContactStatus> {
    let page = h.read().await.list_broadcast_contacts(h.world.tenant, id, &[], ALL).await.unwrap();
    page.items.iter().rev().map(|c| c.status).collect()
}

/// PostgreSQL plans the statements while tables are empty. The plans must not read all recipients of a broadcast for each batch.
pub(crate) async fn a_batch_reads_its_own_recipients_alone(h: &Harness) {
    let (id, contacts) = with_contacts(h, 3_000, Status::Sending).await;
    for batch in contacts[..60].chunks(20) {
        let answers = h.accept_at_once(batch.iter().map(|contact| claimed(h, id, contact)).collect()).await;
        assert!(answers.iter().all(|answer| matches!(answer, Ok(Accepted::New { .. }))), "{answers:?}");
    }
    let pages = h.pages_read(&["unnest", "broadcast_contacts"]).await;
    assert!(pages.is_none_or(|pages| pages < 20 * 25), "{pages:?} pages");
}

pub(crate) async fn a_broadcast_comes_back_as_it_was(h: &Harness) {
    let (one, two) = (draft(h, h.world.tenant), draft(h, h.world.tenant));
    let mut tx = h.begin().await;
    for broadcast in [&one, &two, &draft(h, h.other.tenant)] {
        tx.insert_broadcast(broadcast).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    assert_eq!(tx.find_broadcast(h.world.tenant, one.id).await.unwrap(), Some(one.clone()));
    assert_eq!(tx.find_broadcast(h.other.tenant, one.id).await.unwrap(), None);
    let page = tx.list_broadcasts(h.world.tenant, &[], PageRequest::newest(1)).await.unwrap();
    assert_eq!((page.items[0].clone(), page.next), (Broadcast { html: None, ..two.clone() }, Some(two.id.uuid())));
    let changed = Broadcast { status: Status::Escalated, version: 2, html: None, ..one.clone() };
    assert!(tx.update_broadcast(&changed, 0).await.unwrap());
    assert!(!tx.update_broadcast(&changed, 0).await.unwrap(), "somebody was faster");
    let page = tx.list_broadcasts(h.world.tenant, &[Status::Escalated, Status::Failed], ALL).await.unwrap();
    assert_eq!((page.items, page.next), (vec![changed], None));
}

pub(crate) async fn recipients_of_a_draft_come_and_go(h: &Harness) {
    let tenant = h.world.tenant;
    let broadcast = draft(h, tenant);
    let id = broadcast.id;
    let mut tx = h.begin().await;
    tx.insert_broadcast(&broadcast).await.unwrap();
    let mut contacts: Vec<_> = (1..=5).map(|n| contact(h, n)).collect();
    contacts[0].variables.template_variables = Some([("1".to_owned(), "Ada".to_owned())].into());
    assert_eq!(tx.insert_broadcast_contacts(tenant, id, &contacts[..3]).await.unwrap(), Some(3));
    assert_eq!(tx.insert_broadcast_contacts(tenant, id, &[contact(h, 3), contacts[3].clone()]).await.unwrap(), Some(1));
    assert_eq!(tx.insert_broadcast_contacts(h.other.tenant, id, &contacts[4..]).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(find(h, id).await.total, 4);
    let mut tx = h.begin().await;
    let page = tx.list_broadcast_contacts(tenant, id, &[ContactStatus::Pending], PageRequest::newest(3)).await.unwrap();
    assert_eq!(page.items.iter().map(|c| c.id).collect::<Vec<_>>(), [contacts[3].id, contacts[2].id, contacts[1].id]);
    let page = tx.list_broadcast_contacts(tenant, id, &[], PageRequest::older(3, page.next)).await.unwrap();
    assert_eq!((page.items.len(), page.items[0].variables.clone(), page.next), (1, contacts[0].variables.clone(), None));
    assert_eq!(tx.list_broadcast_contacts(tenant, id, &[ContactStatus::Failed], ALL).await.unwrap().items.len(), 0);
    let found = tx.find_broadcast_recipient(tenant, id, &contacts[0].recipient).await.unwrap();
    assert_eq!(found, page.items.first().cloned());
    assert_eq!(tx.find_broadcast_recipient(tenant, id, &contacts[4].recipient).await.unwrap(), None);
    assert_eq!(tx.find_broadcast_recipient(h.other.tenant, id, &contacts[0].recipient).await.unwrap(), None);
    let pending = tx.pending_broadcast_contacts(tenant, id, Some(contacts[0].id), 2).await.unwrap();
    assert_eq!((pending.found, pending.next), (contacts[1..3].to_vec(), Some(contacts[2].id)));
    let rest = tx.pending_broadcast_contacts(tenant, id, pending.next, 2).await.unwrap();
    assert_eq!((rest.found, rest.next), (contacts[3..4].to_vec(), None));
    assert_eq!(tx.delete_broadcast_contact(tenant, id, contacts[0].id).await.unwrap(), Some(true));
    assert_eq!(tx.delete_broadcast_contact(tenant, id, contacts[0].id).await.unwrap(), Some(false));
    assert_eq!(tx.delete_broadcast_contact(h.other.tenant, id, contacts[1].id).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(find(h, id).await.total, 3);
    let mut tx = h.begin().await;
    tx.put_broadcast_import(tenant, id, "file", &ImportProgress::default()).await.unwrap();
    assert_eq!(tx.delete_broadcast_contacts(h.other.tenant, id, 2).await.unwrap(), None);
    assert_eq!(tx.delete_broadcast_contacts(tenant, id, 2).await.unwrap(), Some(false));
    assert_eq!(tx.find_broadcast(tenant, id).await.unwrap().unwrap().total, 1);
    assert!(tx.find_broadcast_import(tenant, id, "file").await.unwrap().is_some());
    assert_eq!(tx.delete_broadcast_contacts(tenant, id, 2).await.unwrap(), Some(true));
    assert_eq!(tx.find_broadcast(tenant, id).await.unwrap().unwrap().total, 0);
    assert!(tx.find_broadcast_import(tenant, id, "file").await.unwrap().is_none());
    assert_eq!(tx.insert_broadcast_contacts(tenant, id, &contacts[..3]).await.unwrap(), Some(3));
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    assert_eq!(tx.delete_draft_broadcast(h.other.tenant, id, 2).await.unwrap(), None);
    assert_eq!(tx.delete_draft_broadcast(tenant, id, 2).await.unwrap(), Some(false));
    assert_eq!(tx.find_broadcast(tenant, id).await.unwrap().unwrap().total, 1);
    assert_eq!(tx.delete_draft_broadcast(tenant, id, 2).await.unwrap(), Some(true));
    assert_eq!(tx.find_broadcast(tenant, id).await.unwrap(), None);
    tx.commit().await.unwrap();
    assert_eq!(h.rows_of("broadcast_contacts").await, 0);
    let (sending, contacts) = with_contacts(h, 1, Status::Sending).await;
    let mut tx = h.begin().await;
    assert_eq!(tx.insert_broadcast_contacts(tenant, sending, &[contact(h, 9)]).await.unwrap(), None);
    assert_eq!(tx.delete_broadcast_contact(tenant, sending, contacts[0].id).await.unwrap(), None);
    assert_eq!(tx.delete_broadcast_contacts(tenant, sending, 2).await.unwrap(), None);
    assert_eq!(tx.delete_draft_broadcast(tenant, sending, 2).await.unwrap(), None);
}

pub(crate) async fn a_recipient_is_handed_over_once(h: &Harness) {
    let (id, contacts) = with_contacts(h, 3, Status::Sending).await;
    let message = h.accept(item(h, id, &contacts[0])).await;
    assert!(matches!(h.store.accept(item(h, id, &contacts[0])).await, Ok(Accepted::Closed)));
    // Also within one batch, among unrelated messages.
    let twice = vec![item(h, id, &contacts[1]), h.item(&phone(50)), claimed(h, id, &contacts[1])];
    let answers = h.accept_at_once(twice).await;
    let new = answers.iter().filter(|a| matches!(a, Ok(Accepted::New { .. }))).count();
    let closed = answers.iter().filter(|a| matches!(a, Ok(Accepted::Closed))).count();
    assert_eq!((new, closed), (2, 1));
    assert_eq!(h.rows_of("messages").await, 3);
    let stranger: BroadcastContactId = h.id();
    let nobody = NewBroadcastContact { id: stranger, ..contacts[2].clone() };
    assert!(matches!(h.store.accept(item(h, id, &nobody)).await, Ok(Accepted::Closed)));
    assert_eq!(standing(h, id).await, [ContactStatus::Queued, ContactStatus::Queued, ContactStatus::Pending]);
    let page = h.read().await.list_broadcast_contacts(h.world.tenant, id, &[ContactStatus::Queued], ALL).await.unwrap();
    assert_eq!(page.items.last().unwrap().message, Some(message.id));
    let broadcast = find(h, id).await;
    assert_eq!(broadcast.counts, Counts { queued: 2, awaited: 2, ..Counts::default() });
    assert_eq!((broadcast.pending(), broadcast.waiting()), (3, 1));
}

pub(crate) async fn nobody_is_handed_over_by_a_broadcast_that_does_not_send(h: &Harness) {
    for status in [Status::Draft, Status::Paused, Status::Cancelled, Status::Completed] {
        let (id, contacts) = with_contacts(h, 1, status).await;
        assert!(matches!(h.store.accept(item(h, id, &contacts[0])).await, Ok(Accepted::Closed)), "{status}");
        assert_eq!(standing(h, id).await, [ContactStatus::Pending]);
        let mut tx = h.begin().await;
        let failures = [(contacts[0].id, Some(failure(FailureCode::Internal)))];
        assert_eq!(tx.end_broadcast_contacts(h.world.tenant, id, &failures, START).await.unwrap(), 0, "{status}");
    }
    assert_eq!(h.rows_of("messages").await, 0);
    assert_eq!(h.rows_of("contacts").await, 0, "no recipient is made for nothing");
}

/// Only the current fence may spend a reservation.
pub(crate) async fn a_reservation_is_spent_under_one_fence(h: &Harness) {
    let (id, contacts) = with_contacts(h, 3, Status::Sending).await;
    let priced = |contact, fence| {
        let mut item = Accept { broadcast_fence: fence, ..claimed(h, id, contact) };
        let cost = Cost { fee: Micros(1), provider: Micros(9) };
        let quotes = vec![Quote { channel: Channel::Sms, cost, state: QuoteState::Open }];
        item.message.state.detail.money = Some(Money { quotes, prepaid: true, limited_sender: None });
        item
    };
    let reserve = Transfer { purpose: Purpose::Reserve, resource: id.uuid(), part: 1, amount: Micros(30), sender: None };
    in_tx!(h, |tx| tx.transfer(h.world.tenant, &reserve, START).await.unwrap());
    let first = h.accept(priced(&contacts[0], 1)).await;
    let mut tx = h.begin().await;
    let due = DueBroadcast { tenant: h.world.tenant, id, fence: 1, due_at: START, cursor: None, starved: false };
    assert!(tx.claim_broadcast(&due, None).await.unwrap());
    tx.commit().await.unwrap();
    let answers = h.accept_at_once(vec![priced(&contacts[1], 1), priced(&contacts[2], 2), priced(&contacts[1], 3)]).await;
    let closed: Vec<_> = answers.iter().map(|answer| matches!(answer, Ok(Accepted::Closed))).collect();
    assert_eq!(closed, [true, false, true]);
    assert_eq!(standing(h, id).await[1], ContactStatus::Pending);
    let counts = async || find(h, id).await.counts;
    let two = Counts { sending: 2, awaited: 2, prepaid: 20, held: 20, ..Counts::default() };
    assert_eq!(counts().await, two);
    h.step(first.id, settle(0, first.state.fence, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) })).await;
    assert_eq!(counts().await, Counts { sending: 1, awaited: 1, failed: 1, held: 10, ..two });
    let balance = h.read().await.find_balance(h.world.tenant).await.unwrap();
    assert_eq!((balance.available, balance.reserved), (Micros(-20), Micros(20)), "what failed gave back its part");
    let broadcast = find(h, id).await;
    let reserved = Broadcast { body: Body { reserved: 30, ..broadcast.body.clone() }, ..broadcast };
    assert_eq!((reserved.unspent(), reserved.held_money()), (Micros(10), Micros(20)));
}

pub(crate) async fn whoever_is_erased_leaves_broadcasts(h: &Harness) {
    let (tenant, gone, mark) = (h.world.tenant, phone(1), crate::make::mark(&phone(1)));
    let (draft, _) = with_contacts(h, 2, Status::Draft).await;
    let (waiting, pending) = with_contacts(h, 2, Status::Sending).await;
    let (sending, handed) = with_contacts(h, 2, Status::Sending).await;
    let (failing, failed) = with_contacts(h, 2, Status::Sending).await;
    let message = h.accept(item(h, sending, &handed[0])).await;
    let mut tx = h.begin().await;
    let words = Failure::own(FailureCode::ContentRejected, "too much for +34600000001");
    assert_eq!(tx.end_broadcast_contacts(tenant, failing, &[(failed[0].id, Some(words))], START).await.unwrap(), 1);
    tx.erase_broadcast_contacts(h.other.tenant, &gone, &mark, START).await.unwrap();
    tx.erase_broadcast_contacts(tenant, &gone, &mark, START).await.unwrap();
    tx.commit().await.unwrap();
    for id in [draft, waiting, sending, failing] {
        let page = h.read().await.list_broadcast_contacts(tenant, id, &[], ALL).await.unwrap();
        let identifiers: Vec<_> = page.items.iter().rev().map(|c| c.recipient.identifier.clone()).collect();
        let other = phone(2).identifier;
        assert_eq!(identifiers, if id == draft { vec![other] } else { vec![mark.clone(), other] });
    }
    assert_eq!((find(h, draft).await.total, find(h, draft).await.waiting()), (1, 1));
    assert_eq!(find(h, waiting).await.counts, Counts { skipped: 1, ..Counts::default() });
    assert_eq!(standing(h, waiting).await, [ContactStatus::Skipped, ContactStatus::Pending]);
    assert!(matches!(h.store.accept(item(h, waiting, &pending[0])).await, Ok(Accepted::Closed)), "planned before, written after");
    assert_eq!(find(h, sending).await.counts, Counts { queued: 1, awaited: 1, ..Counts::default() });
    let page = h.read().await.list_broadcast_contacts(tenant, failing, &[ContactStatus::Failed], ALL).await.unwrap();
    let left = page.items[0].failure.as_ref().map(|f| (f.code, f.message.as_str()));
    assert_eq!(left, Some((FailureCode::ContentRejected, FailureCode::ContentRejected.as_str())));
    // The message's later results still count.
    h.step(message.id, Step::Erase).await;
    assert_eq!(find(h, sending).await.counts, Counts { skipped: 1, ..Counts::default() });
}

pub(crate) async fn counts_follow_the_messages(h: &Harness) {
    let (id, contacts) = with_contacts(h, 5, Status::Sending).await;
    let sent = h.accept(claimed(h, id, &contacts[0])).await;
    let refused = h.accept(claimed(h, id, &contacts[1])).await;
    let queued = h.accept(item(h, id, &contacts[2])).await;
    let mut tx = h.begin().await;
    let suppression = Suppression {
        id: h.id(),
        recipient: contacts[3].recipient.clone(),
        sender: None,
        reason: SuppressionReason::Manual,
        source: String::new(),
    };
    tx.insert_suppression(h.world.tenant, &suppression, START).await.unwrap();
    tx.commit().await.unwrap();
    h.accept(claimed(h, id, &contacts[3])).await;
    let own = Failure::own(FailureCode::ContentRejected, "no");
    let mut tx = h.begin().await;
    let failures = [contacts[4].id, contacts[4].id, contacts[3].id].map(|contact| (contact, Some(own.clone())));
    assert_eq!(tx.end_broadcast_contacts(h.world.tenant, id, &failures, START).await.unwrap(), 1, "the others have ended or a message");
    tx.commit().await.unwrap();
    let counts = async || find(h, id).await.counts;
    let base = Counts { queued: 1, sending: 2, failed: 1, skipped: 1, awaited: 3, ..Counts::default() };
    assert_eq!(counts().await, base);
    h.step(sent.id, settle(0, sent.state.fence, taken("p"))).await;
    assert_eq!(counts().await, Counts { sent: 1, taken: 1, ..base });
    h.step(refused.id, settle(0, refused.state.fence, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) })).await;
    assert_eq!(counts().await, Counts { sending: 1, sent: 1, taken: 1, failed: 2, awaited: 2, ..base });
    h.step(queued.id, Step::Cancel).await;
    // Two facts of one message in one batch, and a repeated one.
    let at = h.tick();
    let steps = [ReceiptKind::Delivered, ReceiptKind::Read, ReceiptKind::Read];
    h.steps_at_once(steps.map(|kind| h.transition(sent.id, receipt(kind, at))).into()).await;
    let end = Counts { queued: 0, sending: 0, sent: 0, delivered: 1, failed: 2, skipped: 2, awaited: 0, taken: 1, ..Counts::default() };
    assert_eq!(counts().await, end);
    use ContactStatus::{Delivered, Failed, Skipped};
    assert_eq!(standing(h, id).await, [Delivered, Failed, Skipped, Skipped, Failed]);
    let page = h.read().await.list_broadcast_contacts(h.world.tenant, id, &[Failed], ALL).await.unwrap();
    let codes: Vec<_> = page.items.iter().map(|c| c.failure.as_ref().unwrap().code).collect();
    assert_eq!(codes, [FailureCode::ContentRejected, FailureCode::InvalidRecipient]);
    assert!(page.items.iter().all(|c| c.processed_at.is_some()));
    // A late receipt corrects a failure.
    h.step(refused.id, receipt(ReceiptKind::Delivered, h.tick())).await;
    assert_eq!(counts().await, Counts { delivered: 2, failed: 1, taken: 2, ..end });
    assert_eq!(h.number("SELECT SUM(delivered) FROM broadcast_counts").await, 2);
}

pub(crate) async fn what_is_cancelled_does_not_start(h: &Harness) {
    let (id, contacts) = with_contacts(h, 3, Status::Sending).await;
    let waiting = h.accept(item(h, id, &contacts[0])).await;
    let under_way = h.accept(claimed(h, id, &contacts[1])).await;
    let other = h.accept(h.item(&phone(60))).await;
    let unsent = async |after| {
        let found = h.read().await.unsent_broadcast_messages(h.world.tenant, id, after, 10).await.unwrap();
        assert_eq!(found.next, None);
        found.found
    };
    assert_eq!(unsent(None).await, [waiting.id]);
    let shards: Vec<i16> = (0..64).collect();
    let due = h.read().await.due_messages(&shards, &Skip::default(), START.plus(Duration::from_secs(60)), 9).await.unwrap().messages;
    assert_eq!(due.iter().map(|m| (m.id, m.bulk)).collect::<Vec<_>>(), [(waiting.id, true), (other.id, false)]);
    let skip = Skip { all: Vec::new(), bulk: vec![h.world.connection] };
    let due = h.read().await.due_messages(&shards, &skip, START.plus(Duration::from_secs(60)), 9).await.unwrap().messages;
    assert_eq!(due.iter().map(|m| m.id).collect::<Vec<_>>(), [other.id]);
    assert_eq!(unsent(Some(contacts[0].id)).await, []);
    let mut tx = h.begin().await;
    let broadcast = tx.find_broadcast(h.world.tenant, id).await.unwrap().unwrap();
    assert!(tx.update_broadcast(&Broadcast { status: Status::Cancelled, version: 2, ..broadcast }, 1).await.unwrap());
    tx.commit().await.unwrap();
    let (_, state) = h
        .step(
            under_way.id,
            settle(
                0,
                under_way.state.fence,
                Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message },
            ),
        )
        .await;
    assert_eq!(unsent(None).await, [waiting.id, under_way.id]);
    for (message, fence) in [(waiting.id, 0), (under_way.id, state.fence)] {
        let (applied, state) = h.step(message, start(NODE, fence)).await;
        assert_eq!((applied, state.status.as_str()), (Applied::Yes, "cancelled"));
    }
    assert_eq!(h.step(other.id, start(NODE, 0)).await.1.status.as_str(), "sending");
    let broadcast = find(h, id).await;
    assert_eq!((broadcast.counts.skipped, broadcast.skipped(), broadcast.pending(), broadcast.counts.awaited), (2, 3, 0, 0));
}

/// A pause returns recipients, counts and money. Later events of an old message do not affect the new one.
pub(crate) async fn what_is_paused_goes_back_to_its_broadcast(h: &Harness) {
    let (id, contacts) = with_contacts(h, 3, Status::Sending).await;
    let reserve = Transfer { purpose: Purpose::Reserve, resource: id.uuid(), part: 1, amount: Micros(30), sender: None };
    in_tx!(h, |tx| tx.transfer(h.world.tenant, &reserve, START).await.unwrap());
    let priced = |contact, fence, prepaid| {
        let mut item = Accept { broadcast_fence: fence, ..item(h, id, contact) };
        let cost = Cost { fee: Micros(1), provider: Micros(9) };
        let quotes = vec![Quote { channel: Channel::Sms, cost, state: QuoteState::Open }];
        item.message.state.detail.money = Some(Money { quotes, prepaid, limited_sender: None });
        item
    };
    let set = async |status, seen| {
        let broadcast = find(h, id).await;
        let mut tx = h.begin().await;
        assert!(tx.update_broadcast(&Broadcast { status, version: seen + 1, ..broadcast }, seen).await.unwrap());
        tx.commit().await.unwrap();
    };
    let sums = async || {
        let balance = h.read().await.find_balance(h.world.tenant).await.unwrap();
        (balance.available.0, balance.reserved.0, find(h, id).await.counts)
    };
    let withdraw = || Step::Withdraw { halt: None };
    let mut old = Vec::new();
    for (contact, prepaid) in contacts.iter().zip([true, true, false]) {
        old.push(h.accept(priced(contact, 1, prepaid)).await);
    }
    let all = Counts { queued: 3, awaited: 3, prepaid: 20, held: 30, ..Counts::default() };
    assert_eq!(sums().await, (-40, 40, all));
    assert_eq!(h.step(old[0].id, withdraw()).await.0, Applied::Lost, "the broadcast is being sent");
    set(Status::Paused, 1).await;
    // By a withdrawal, by a start, and by both in one batch.
    assert_eq!(h.step(old[0].id, withdraw()).await.1.status.as_str(), "cancelled");
    assert_eq!(h.step(old[1].id, start(NODE, 7)).await.0, Applied::Lost, "another fence");
    let steps = vec![h.transition(old[1].id, start(NODE, 0)), h.transition(old[2].id, withdraw()), h.transition(old[1].id, withdraw())];
    h.steps_at_once(steps).await;
    // Two return what they took from the broadcast's reservation; the third releases its own.
    assert_eq!(sums().await, (-30, 30, Counts::default()));
    assert_eq!(standing(h, id).await, [ContactStatus::Pending; 3]);
    let page = h.read().await.list_broadcast_contacts(h.world.tenant, id, &[], ALL).await.unwrap();
    assert!(page.items.iter().all(|contact| contact.message.is_none()));
    set(Status::Sending, 2).await;
    let new = h.accept(priced(&contacts[0], 3, true)).await;
    let one = Counts { queued: 1, awaited: 1, prepaid: 10, held: 10, ..Counts::default() };
    assert_eq!(sums().await, (-30, 30, one));
    h.step(old[0].id, Step::Erase).await;
    h.step(old[0].id, receipt(ReceiptKind::Delivered, h.tick())).await;
    assert_eq!((sums().await.2, standing(h, id).await[0]), (one, ContactStatus::Queued), "the old message is not the recipient's any more");
    // After a cancel there is no reservation to return money to.
    set(Status::Cancelled, 3).await;
    assert_eq!(h.step(new.id, withdraw()).await.1.status.as_str(), "cancelled");
    assert_eq!(sums().await, (-20, 20, Counts { skipped: 1, prepaid: 10, ..Counts::default() }));
    assert_eq!(standing(h, id).await[0], ContactStatus::Skipped);
}

pub(crate) async fn a_broadcast_that_is_due_is_taken_by_one(h: &Harness) {
    let (id, contacts) = with_contacts(h, 1, Status::Sending).await;
    let due_at = START.plus(Duration::from_secs(5));
    let mut tx = h.begin().await;
    assert_eq!(tx.due_broadcasts(due_at, 10, 10).await.unwrap(), []);
    let broadcast = tx.find_broadcast(h.world.tenant, id).await.unwrap().unwrap();
    assert!(tx.update_broadcast(&Broadcast { due_at: Some(due_at), version: 2, ..broadcast }, 1).await.unwrap());
    assert_eq!(tx.due_broadcasts(START, 10, 10).await.unwrap(), []);
    let due = tx.due_broadcasts(due_at, 10, 10).await.unwrap();
    assert_eq!((due.len(), due[0].id, due[0].due_at), (1, id, due_at));
    assert_eq!(tx.due_broadcasts(due_at, 10, 0).await.unwrap(), [], "so many of each environment");
    let later = due_at.plus(Duration::from_secs(5));
    let moved = DueBroadcast { cursor: Some(contacts[0].id), starved: true, ..due[0] };
    assert!(tx.claim_broadcast(&moved, Some(later)).await.unwrap());
    assert!(!tx.claim_broadcast(&moved, Some(later)).await.unwrap(), "somebody was faster");
    assert_eq!(tx.due_broadcasts(due_at, 10, 10).await.unwrap(), []);
    let again = tx.due_broadcasts(later, 10, 10).await.unwrap();
    assert_eq!(again, [DueBroadcast { fence: due[0].fence + 1, due_at: later, ..moved }]);
    assert!(tx.claim_broadcast(&again[0], None).await.unwrap());
    let claimed = tx.find_broadcast(h.world.tenant, id).await.unwrap().unwrap();
    assert_eq!((claimed.due_at, claimed.starved), (None, true));
}

pub(crate) async fn an_import_is_remembered_with_its_recipients(h: &Harness) {
    let (id, _) = with_contacts(h, 2, Status::Draft).await;
    let progress = ImportProgress { rows: 9, added: 5, duplicates: 3, invalid: 1 };
    let mut tx = h.begin().await;
    assert_eq!(tx.find_broadcast_import(h.world.tenant, id, "x").await.unwrap(), None);
    tx.put_broadcast_import(h.world.tenant, id, "x", &ImportProgress { rows: 1, ..ImportProgress::default() }).await.unwrap();
    tx.put_broadcast_import(h.world.tenant, id, "x", &progress).await.unwrap();
    // More than fit into one statement, including existing and repeated recipients.
    let contact = |n: usize| {
        let recipient = Recipient { kind: AddressKind::Phone, identifier: format!("+3469{:07}", n % 1_200) };
        NewBroadcastContact { id: h.id(), recipient, variables: Variables::default() }
    };
    let many: Vec<_> = (0..1_300).map(contact).collect();
    assert_eq!(tx.insert_broadcast_contacts(h.world.tenant, id, &many).await.unwrap(), Some(1_200));
    assert_eq!(tx.insert_broadcast_contacts(h.world.tenant, id, &many[..3]).await.unwrap(), Some(0));
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    assert_eq!(tx.find_broadcast_import(h.world.tenant, id, "x").await.unwrap(), Some(progress));
    assert_eq!(tx.find_broadcast_import(h.world.tenant, id, "y").await.unwrap(), None);
    assert_eq!(tx.find_broadcast(h.world.tenant, id).await.unwrap().unwrap().total, 1_202);
    let sender = tx.find_broadcast(h.world.tenant, id).await.unwrap().unwrap().sender;
    assert_eq!(tx.find_broadcast_contact(h.world.tenant, id, many[7].id).await.unwrap().as_ref(), Some(&many[7]));
    assert_eq!(tx.find_broadcast_contact(h.world.tenant, h.id(), many[7].id).await.unwrap(), None, "of another broadcast");
    assert_eq!(tx.count_suppressed_contacts(h.world.tenant, id, sender).await.unwrap(), 0);
    drop(tx);
    let suppress = async |n: usize, sender: Option<SenderId>| {
        let mut tx = h.begin().await;
        let suppression = Suppression {
            id: h.id(),
            recipient: many[n].recipient.clone(),
            sender,
            reason: SuppressionReason::Manual,
            source: String::new(),
        };
        tx.insert_suppression(h.world.tenant, &suppression, START).await.unwrap();
        tx.commit().await.unwrap();
    };
    suppress(0, None).await;
    suppress(1, Some(sender)).await;
    suppress(1, None).await;
    suppress(2, Some(h.id())).await;
    let mut tx = h.read().await;
    assert_eq!(tx.count_suppressed_contacts(h.world.tenant, id, sender).await.unwrap(), 2, "another sender's does not count");
    let since = async |tx: &mut dyn nuncio_store::Tx, at| tx.suppressed_since(h.world.tenant, id, sender, at).await.unwrap();
    assert_eq!(since(&mut *tx, START).await, [(SuppressionReason::Manual, 2)]);
    assert_eq!(since(&mut *tx, Timestamp::from_millis(4_000_000_000_000)).await, []);
    drop(tx);
    let mut tx = h.begin().await;
    assert_eq!(tx.delete_draft_broadcast(h.world.tenant, id, 2_000).await.unwrap(), Some(true));
    assert_eq!(tx.find_broadcast_import(h.world.tenant, id, "x").await.unwrap(), None, "it goes with its broadcast");
}

/// Two nodes enqueue the same recipients at the same time, each on two lanes.
pub(crate) async fn two_nodes_hand_over_each_recipient_once(h: &Harness) {
    let (id, contacts) = with_contacts(h, 200, Status::Sending).await;
    let another = h.another().await;
    let items = || contacts.iter().map(|c| claimed(h, id, c)).collect::<Vec<_>>();
    let (mine, theirs) = (items(), items());
    let run = |store: std::sync::Arc<dyn nuncio_store::Store>, items: Vec<Accept>| async move {
        let tasks: Vec<_> = items
            .into_iter()
            .map(|item| {
                let store = store.clone();
                tokio::spawn(async move { store.accept(item).await.unwrap() })
            })
            .collect();
        let mut new = Vec::new();
        for task in tasks {
            if let Accepted::New { message, .. } = task.await.unwrap() {
                new.push(*message);
            }
        }
        new
    };
    let (mine, theirs) = tokio::join!(run(h.store.clone(), mine), run(another.clone(), theirs));
    assert_eq!(mine.len() + theirs.len(), 200);
    let recipients: std::collections::BTreeSet<_> = mine.iter().chain(&theirs).map(|m| m.to.clone()).collect();
    assert_eq!(recipients.len(), 200);
    let steps = mine.iter().chain(&theirs).map(|m| h.transition(m.id, settle(0, m.state.fence, taken("p"))));
    futures::future::join_all(
        steps.enumerate().map(|(n, step)| if n % 2 == 0 { h.store.transition(step) } else { another.transition(step) }),
    )
    .await;
    let counts = find(h, id).await.counts;
    assert_eq!(counts, Counts { sending: 200, sent: 200, awaited: 200, taken: 200, ..Counts::default() });
    another.close().await;
}

pub(crate) async fn a_review_policy_is_the_default_until_it_is_set(h: &Harness) {
    assert_eq!(h.read().await.review_policy(h.world.tenant).await.unwrap(), ReviewPolicy::default());
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    for policy in [
        ReviewPolicy { threshold: 0.75, blocked_words: words("gratis free"), allowed_domains: words("acme.example") },
        ReviewPolicy { threshold: 0.5, ..ReviewPolicy::default() },
    ] {
        in_tx!(h, |tx| tx.put_review_policy(h.world.tenant, &policy).await.unwrap());
        assert_eq!(h.read().await.review_policy(h.world.tenant).await.unwrap(), policy);
    }
    assert_eq!(h.read().await.review_policy(h.other.tenant).await.unwrap(), ReviewPolicy::default(), "another environment");
}

pub(crate) async fn links_are_found_and_clicks_are_counted(h: &Harness) {
    let (tenant, (id, _)) = (h.world.tenant, with_contacts(h, 1, Status::Sending).await);
    let link = |key: i64, url: &str| BroadcastLink { key, url: url.to_owned() };
    let mut tx = h.begin().await;
    tx.put_broadcast_links(tenant, id, &[link(1, "https://a.example"), link(2, "https://b.example")]).await.unwrap();
    tx.put_broadcast_links(tenant, id, &[link(1, "https://a.example")]).await.unwrap();
    tx.commit().await.unwrap();
    for (recipient, link, clicks) in [(7, 2, 1), (7, 2, 3), (-8, 2, 1), (7, 1, 1)] {
        let click = BroadcastClick { tenant, broadcast: id, link, recipient };
        in_tx!(h, |tx| tx.count_broadcast_clicks(click, clicks, START).await.unwrap());
    }
    let mut tx = h.read().await;
    assert_eq!(tx.find_broadcast_link(tenant, 2).await.unwrap(), Some((id, "https://b.example".to_owned())));
    assert_eq!(tx.find_broadcast_link(tenant, 3).await.unwrap(), None);
    assert_eq!(tx.find_broadcast_link(TenantId(tenant.0 + 1), 2).await.unwrap(), None);
    let clicks = |url: &str, recipients: u64, clicks: u64| LinkClicks { url: url.to_owned(), recipients, clicks };
    assert_eq!(tx.broadcast_clicks(tenant, id).await.unwrap(), [clicks("https://b.example", 2, 5), clicks("https://a.example", 1, 1)]);
}
