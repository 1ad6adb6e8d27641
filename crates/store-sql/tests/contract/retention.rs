//! Deletion of expired data.

use std::time::Duration;

use nuncio_domain::Timestamp;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, Step};
use nuncio_domain::message::{FailureCode, Message};
use nuncio_store::{DeliveryLog, NewEvent, Position, ProviderIds, RawReceipt, StrayReceipt, Transition};
use uuid::Uuid;

use crate::contacts::inbound;
use crate::harness::{Harness, START, in_tx};
use crate::make::{failure, phone, settle, settle_by};

/// Returns a time after everything created so far, and not after what is created next.
fn later(h: &Harness) -> Timestamp {
    h.tick();
    h.tick()
}

/// Creates a delivered message with a provider reference and a receipt.
async fn delivered(h: &Harness, reference: &str) -> Message {
    let message = h.sending(1).await;
    let outcome = Outcome::Accepted { refs: vec![reference.to_owned()], cost: None };
    h.step(message.id, settle_by(Receipts::ByReference, 0, message.state.fence, outcome)).await;
    let raw = RawReceipt { id: h.id(), connection: h.world.connection, reference: reference.to_owned(), raw: "DELIVRD".to_owned() };
    let step = Step::Receipt { attempt: Some(0), part: 0, kind: ReceiptKind::Delivered, at: h.tick() };
    h.store.transition(Transition { raw: Some(Box::new(raw)), ..h.transition(message.id, step) }).await.unwrap();
    message
}

/// Walks once over all messages; returns the number of steps, and how many messages are gone.
async fn forget_messages(h: &Harness, before: Timestamp, limit: u32) -> (usize, i64) {
    let rows = h.rows_of("messages").await;
    let (mut place, mut steps) = (None, 0);
    loop {
        place = in_tx!(h, |tx| tx.forget_messages(h.world.tenant, place, before, limit).await.unwrap());
        steps += 1;
        if place.is_none() {
            return (steps, rows - h.rows_of("messages").await);
        }
    }
}

pub(crate) async fn finished_messages_leave_with_all_that_is_theirs(h: &Harness) {
    let tenant = h.world.tenant;
    in_tx!(h, |tx| tx.limit_storage(tenant, Some(1_000_000_000)).await.unwrap());
    let first = delivered(h, "1").await;
    let failed = h.sending(1).await;
    h.step(failed.id, settle(0, 1, Outcome::Rejected { failure: failure(FailureCode::Undeliverable) })).await;
    let mut large = h.item(&phone(1));
    large.message.request_mut().html_body = Some("<p>x</p>".repeat(100_000));
    let large = h.accept(large).await;
    h.step(large.id, Step::Cancel).await;
    let unfinished = [h.accept(h.item(&phone(1))).await.id, h.sending(1).await.id, h.sent(1).await.id];
    let other = h.accept(h.item_in(&h.other, &phone(1))).await;
    let between = later(h);
    let last = delivered(h, "2").await;

    assert_eq!(forget_messages(h, first.id.created_at(), 10).await, (1, 0), "none is older than the first");
    assert_eq!(forget_messages(h, between, 2).await, (4, 3), "a step at a time");
    assert_eq!(forget_messages(h, between, 2).await, (2, 0));
    for gone in [first.id, failed.id, large.id] {
        assert_eq!(h.lookup_in(tenant, gone).await, None);
        assert_eq!(h.read().await.list_message_events(tenant, gone).await.unwrap(), []);
    }
    for (table, rows) in [("messages", 5), ("states", 5), ("receipts", 1), ("flagged", 0), ("spool_chunks", 0)] {
        assert_eq!(h.rows_of(table).await, rows, "{table}");
    }
    for kept in [unfinished[0], unfinished[1], unfinished[2], last.id] {
        assert!(h.lookup_in(tenant, kept).await.is_some());
    }
    assert!(h.lookup_in(h.other.tenant, other.id).await.is_some());
    let stored = h.read().await.find_storage(tenant).await.unwrap().unwrap().stored_bytes;
    let counted = h.number(&format!("SELECT COALESCE(SUM(OCTET_LENGTH(request)), 0) FROM messages WHERE tenant_id = {}", tenant.0)).await;
    assert_eq!(stored, counted, "the room is free again");

    // Retention counts from the end of a message, however old it is.
    let ended = h.tick();
    h.step(unfinished[0], Step::Cancel).await;
    assert_eq!(forget_messages(h, ended, 10).await, (1, 1), "the one that was delivered before that");
    assert_eq!(forget_messages(h, later(h), 10).await, (1, 1));
}

pub(crate) async fn messages_that_stay_are_read_once_in_a_pass(h: &Harness) {
    let mut stay = Vec::new();
    for _ in 0..5 {
        stay.push(h.accept(h.item(&phone(1))).await.id);
    }
    let over = [delivered(h, "1").await.id, delivered(h, "2").await.id];
    let before = later(h);
    delivered(h, "3").await;
    let step = async |after| in_tx!(h, |tx| tx.forget_messages(h.world.tenant, after, before, 3).await.unwrap());
    assert_eq!(step(None).await, Some(stay[2]), "no more rows are read than that");
    assert_eq!((step(Some(stay[2])).await, h.rows_of("messages").await), (Some(over[0]), 7));
    assert_eq!((step(Some(over[0])).await, h.rows_of("messages").await), (None, 6));
    for gone in over {
        assert_eq!(h.lookup_in(h.world.tenant, gone).await, None);
    }

    // The next pass begins with the oldest again.
    h.step(stay[0], Step::Cancel).await;
    assert_eq!(forget_messages(h, later(h), 3).await, (3, 2));
    assert_eq!(h.lookup_in(h.world.tenant, stay[0]).await, None);
}

pub(crate) async fn the_log_leaves_but_for_what_webhooks_wait_for(h: &Harness) {
    h.leaves_broken_rows();
    let tenant = h.world.tenant;
    let at = |n: u64| START.plus(Duration::from_secs(10 * n));
    for n in 0..10_u64 {
        let event = NewEvent { kind: ResourceKind::Contact, resource: Uuid::from_u128(7), sequence: n as i64 + 1, occurrences: Vec::new() };
        for world in [tenant, h.other.tenant] {
            in_tx!(h, |tx| tx.insert_event(world, &event, at(n)).await.unwrap());
        }
    }
    let forget = async |before, limit| in_tx!(h, |tx| tx.forget_log(tenant, before, limit).await.unwrap());
    let sequences = async |of| {
        let entries = h.read().await.read_log(of, Position::default(), 100).await.unwrap();
        entries.into_iter().map(|entry| entry.sequence).collect::<Vec<_>>()
    };
    assert_eq!(forget(at(0), 10).await, 0);
    assert_eq!((forget(at(2), 1).await, forget(at(2), 1).await, forget(at(2), 1).await), (1, 1, 0));
    assert_eq!(sequences(tenant).await, [3, 4, 5, 6, 7, 8, 9, 10]);
    let told = h.read().await.list_resource_events(tenant, ResourceKind::Contact, Uuid::from_u128(7)).await.unwrap();
    assert_eq!(told.iter().map(|(sequence, _)| *sequence).collect::<Vec<_>>(), [3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(h.number(&format!("SELECT COUNT(*) FROM resource_log WHERE tenant_id = {}", tenant.0)).await, 8);

    // A webhook has read four of them.
    in_tx!(h, |tx| tx.open_log(tenant, Position { commit: 6, entry: 0 }, START).await.unwrap());
    assert_eq!(forget(at(9), 100).await, 3, "it is in the middle of the last of these");
    let fence = in_tx!(h, |tx| tx.claim_log(tenant, START.millis(), None).await.unwrap().unwrap());
    let read = Some(Position { commit: 10, entry: 0 });
    assert!(h.store.log_deliveries(DeliveryLog { tenant, deliveries: Vec::new(), read, fence }).await.unwrap());
    assert_eq!(forget(at(9), 100).await, 4);
    assert_eq!(sequences(tenant).await, [10]);
    assert_eq!(sequences(h.other.tenant).await.len(), 10, "others keep theirs");
    let event = NewEvent { kind: ResourceKind::Contact, resource: Uuid::from_u128(7), sequence: 11, occurrences: Vec::new() };
    in_tx!(h, |tx| tx.insert_event(tenant, &event, at(10)).await.unwrap());
    assert_eq!(h.read().await.log_end(tenant).await.unwrap().commit, 11, "positions go on");
}

pub(crate) async fn old_deliveries_and_strays_leave(h: &Harness) {
    let tenant = h.world.tenant;
    let made = h.tick();
    let delivery = |status, due_at| nuncio_store::Delivery { id: h.id_at(made), status, due_at, ..crate::webhooks::delivery(1, 1, 1) };
    use nuncio_domain::webhook::DeliveryStatus;
    let (done, dead, waits) =
        (delivery(DeliveryStatus::Delivered, None), delivery(DeliveryStatus::Dead, None), delivery(DeliveryStatus::Pending, Some(made)));
    let deliveries = vec![done.clone(), dead.clone(), waits.clone()];
    h.store.log_deliveries(DeliveryLog { tenant, deliveries, read: None, fence: 1 }).await.unwrap();
    let stray = |reference: &str| StrayReceipt {
        tenant,
        receipt: RawReceipt { id: h.id(), connection: h.world.connection, reference: reference.to_owned(), raw: "x".to_owned() },
        kind: ReceiptKind::Delivered,
        at: made,
        tries: 0,
    };
    let (given_up, looked_for) = (stray("a"), stray("b"));
    let mut tx = h.begin().await;
    tx.insert_stray(&given_up, made).await.unwrap();
    tx.insert_stray(&looked_for, made).await.unwrap();
    tx.reschedule_stray(&given_up, None).await.unwrap();
    tx.commit().await.unwrap();

    let before = later(h);
    let mut tx = h.begin().await;
    assert_eq!(tx.forget_deliveries(tenant, made, 9).await.unwrap(), 0);
    assert_eq!(tx.forget_strays(tenant, made, 9).await.unwrap(), 0);
    assert_eq!(tx.forget_deliveries(h.other.tenant, before, 9).await.unwrap(), 0);
    assert_eq!(tx.forget_deliveries(tenant, before, 1).await.unwrap(), 1);
    assert_eq!(tx.forget_deliveries(tenant, before, 9).await.unwrap(), 1);
    assert_eq!(tx.forget_strays(tenant, before, 9).await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert!(h.read().await.find_delivery(tenant, waits.id).await.unwrap().is_some());
    assert_eq!(h.read().await.list_strays(tenant).await.unwrap().len(), 1);
}

pub(crate) async fn ids_of_messages_that_are_gone_are_forgotten(h: &Harness) {
    for n in 0..5 {
        delivered(h, &format!("r{n}")).await;
    }
    let between = later(h);
    delivered(h, "r9").await;
    assert!(in_tx!(h, |tx| tx.forget_messages(h.world.tenant, None, between, 3).await.unwrap()).is_some());
    let (mut place, mut looks) = (None, 0);
    loop {
        let mut tx = h.begin().await;
        place = tx.forget_provider_ids(ProviderIds::Outbound, h.world.tenant, place, between, 2).await.unwrap();
        tx.commit().await.unwrap();
        if place.is_none() {
            break;
        }
        looks += 1;
    }
    assert_eq!((looks, h.rows_of("provider_refs").await), (3, 3), "two messages that are kept for now, and a new one");
}

pub(crate) async fn ids_of_inbound_messages_that_are_gone_are_forgotten(h: &Harness) {
    let receive = async |id: &str| in_tx!(h, |tx| tx.insert_inbound(&inbound(h, &phone(1), id)).await.unwrap());
    for id in ["a", "b", "c", "d", "e"] {
        assert!(receive(id).await);
    }
    let mut foreign = inbound(h, &phone(1), "f");
    foreign.message.tenant = h.other.tenant;
    assert!(in_tx!(h, |tx| tx.insert_inbound(&foreign).await.unwrap()));
    let between = later(h);
    assert!(receive("g").await);
    let walk = async |before| {
        let (mut place, mut looks) = (None, 0);
        loop {
            place = in_tx!(h, |tx| tx.forget_provider_ids(ProviderIds::Inbound, h.world.tenant, place, before, 2).await.unwrap());
            if place.is_none() {
                break (looks, h.rows_of("inbound_keys").await);
            }
            looks += 1;
        }
    };
    assert_eq!(walk(between).await, (3, 7), "all messages are still there");
    assert!(in_tx!(h, |tx| tx.forget_messages(h.world.tenant, None, between, 3).await.unwrap()).is_some());
    assert_eq!(walk(START).await, (3, 7), "none is that old");
    assert_eq!(walk(between).await, (3, 4), "two whose messages are kept for now, a new one, and one of others");
    assert_eq!((receive("d").await, receive("g").await, receive("a").await), (false, false, true));
}

pub(crate) async fn tables_have_sizes(h: &Harness) {
    let sizes = h.read().await.table_sizes().await.unwrap();
    assert!(sizes.iter().any(|size| size.table == "messages" && size.bytes >= 4_096));
    assert!(sizes.is_sorted_by(|a, b| a.bytes >= b.bytes));
}
