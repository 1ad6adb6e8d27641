//! Provider references, and raw receipts.

use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, Step};
use nuncio_domain::message::{FailureCode, Status};
use nuncio_domain::{ConnectionId, MessageId, TenantId};
use nuncio_store::{RawReceipt, StrayReceipt, Transition, Transitioned, next_lookup};

use crate::harness::{Backend, Harness, in_tx};
use crate::make::{failure, settle, settle_by};

fn raw(h: &Harness, connection: ConnectionId, reference: &str) -> RawReceipt {
    RawReceipt { id: h.id(), connection, reference: reference.to_owned(), raw: format!("id:{reference} stat:DELIVRD \u{1F4E8}") }
}

async fn tell(h: &Harness, tenant: TenantId, raw: RawReceipt) -> Option<Status> {
    let transition = Transition::of_reference(tenant, raw, ReceiptKind::Delivered, h.tick(), h.tick());
    match h.store.transition(transition).await.unwrap() {
        Transitioned::Found { state, .. } => Some(state.status),
        Transitioned::Missing => None,
    }
}

pub(crate) async fn references_come_with_the_answer_and_receipts_are_kept(h: &Harness) {
    let (tenant, connection) = (h.world.tenant, h.world.connection);
    let message = h.sending(1).await;
    let refs = ["7F", "80"].map(str::to_owned).to_vec();
    let outcome = Outcome::Accepted { refs, cost: None };
    let other = h.sending(2).await;
    let taken = h.transition(message.id, settle_by(Receipts::ByReference, 0, 1, outcome.clone()));
    let twin = Outcome::Unknown { failure: failure(FailureCode::UnknownOutcome), refs: vec!["79".to_owned(), "81".to_owned()] };
    h.store.transition(taken).await.unwrap();
    h.step(other.id, settle(0, 1, twin)).await;
    let found =
        async |tenant, connection, reference| h.read().await.find_message_by_reference(tenant, connection, reference).await.unwrap();
    assert_eq!(found(tenant, connection, "80").await, Some(message.id));
    for (tenant, connection, reference) in [(tenant, connection, "7f"), (tenant, h.id(), "7F"), (h.other.tenant, connection, "7F")] {
        assert_eq!(found(tenant, connection, reference).await, None, "{reference}");
        assert_eq!(tell(h, tenant, raw(h, connection, reference)).await, None, "{reference}");
    }
    // Receipts in one batch find their own messages.
    let (one, two) = (raw(h, connection, "7F"), raw(h, connection, "80"));
    let together =
        tokio::join!(tell(h, tenant, one.clone()), tell(h, tenant, raw(h, connection, "81")), tell(h, tenant, raw(h, connection, "82")));
    assert_eq!((together.0, together.2), (Some(Status::Sent), None), "the other part is missing");
    assert!(together.1.is_some(), "the other message's");
    let others = h.read().await.list_receipts(tenant, other.id).await.unwrap();
    assert_eq!(others.iter().map(|r| r.receipt.reference.as_str()).collect::<Vec<_>>(), ["81"]);
    assert_eq!(tell(h, tenant, two.clone()).await, Some(Status::Delivered));
    // A receipt without effect is stored, and a repeated one is stored once.
    let again = raw(h, connection, "80");
    tell(h, tenant, again.clone()).await;
    tell(h, tenant, again.clone()).await;
    let kept: Vec<_> = h.read().await.list_receipts(tenant, message.id).await.unwrap().into_iter().map(|r| r.receipt).collect();
    assert_eq!(kept, [one, two, again]);
    assert_eq!(h.read().await.list_receipts(h.other.tenant, message.id).await.unwrap(), []);
    // If a provider reuses an id, it belongs to the newer message, whichever gets a receipt first.
    let newer = h.sending(3).await;
    let outcome = Outcome::Accepted { refs: vec!["80".to_owned()], cost: None };
    h.step(newer.id, settle_by(Receipts::ByReference, 0, 1, outcome)).await;
    assert_eq!(tell(h, tenant, raw(h, connection, "80")).await, Some(Status::Delivered));
    assert_eq!(h.read().await.list_receipts(tenant, newer.id).await.unwrap().len(), 1);
    // For an unknown message, nothing is stored.
    let nobody: MessageId = h.id();
    let step = Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Read, at: h.tick() };
    let transition = Transition { raw: Some(Box::new(raw(h, connection, "x"))), ..h.transition(nobody, step) };
    h.store.transition(transition).await.unwrap();
    assert_eq!(h.read().await.list_receipts(tenant, nobody).await.unwrap(), []);
}

/// A cached reference can be outdated: another node may have stored it for a newer message.
pub(crate) async fn an_id_that_another_node_was_given_again_is_the_newer_messages(h: &Harness) {
    if h.backend == Backend::Sqlite {
        return; // SQLite has a single node
    }
    let (tenant, connection) = (h.world.tenant, h.world.connection);
    let another = h.another().await;
    let taken = |id: &str| settle_by(Receipts::ByReference, 0, 1, Outcome::Accepted { refs: vec![id.to_owned()], cost: None });
    for (id, is_delivered) in [("90", false), ("91", true)] {
        let (older, newer) = (h.sending(1).await, h.sending(2).await);
        h.step(older.id, taken(id)).await;
        if is_delivered {
            assert_eq!(tell(h, tenant, raw(h, connection, id)).await, Some(Status::Delivered));
        }
        another.transition(h.transition(newer.id, taken(id))).await.unwrap();
        assert_eq!(tell(h, tenant, raw(h, connection, id)).await, Some(Status::Delivered));
        assert_eq!(h.lookup(newer.id).await.state.status, Status::Delivered, "{id}");
        let mut read = h.read().await;
        assert_eq!(read.list_receipts(tenant, older.id).await.unwrap().len(), usize::from(is_delivered));
        assert_eq!(read.list_receipts(tenant, newer.id).await.unwrap().len(), 1);
    }
    another.close().await;
}

pub(crate) async fn a_stray_receipt_waits_and_is_given_up(h: &Harness) {
    let (tenant, connection) = (h.world.tenant, h.world.connection);
    let (first, second) = (h.tick(), h.tick());
    let failed = ReceiptKind::Failed(failure(FailureCode::Undeliverable));
    let stray = |kind, reference| StrayReceipt { tenant, receipt: raw(h, connection, reference), kind, at: first, tries: 0 };
    let (late, early) = (stray(failed, "late"), stray(ReceiptKind::Delivered, "early"));
    let mut tx = h.begin().await;
    tx.insert_stray(&late, second).await.unwrap();
    tx.insert_stray(&early, first).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.due_strays(first, 10).await.unwrap(), std::slice::from_ref(&early));
    assert_eq!(h.read().await.due_strays(second, 10).await.unwrap(), [early.clone(), late.clone()]);
    assert_eq!(h.read().await.due_strays(second, 1).await.unwrap(), std::slice::from_ref(&early));
    assert_eq!(h.read().await.list_strays(tenant).await.unwrap().len(), 2, "also while they are looked for");

    let mut tx = h.begin().await;
    tx.reschedule_stray(&early, None).await.unwrap();
    tx.reschedule_stray(&late, Some(second)).await.unwrap();
    // A concurrent lookup by another node does not count again.
    tx.reschedule_stray(&late, None).await.unwrap();
    tx.delete_stray(h.other.tenant, late.receipt.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.due_strays(second, 10).await.unwrap(), [StrayReceipt { tries: 1, ..late.clone() }]);
    let shown = h.read().await.list_strays(tenant).await.unwrap();
    assert!(shown.contains(&StrayReceipt { tries: 1, ..early }), "{shown:?}");
    in_tx!(h, |tx| tx.delete_stray(tenant, late.receipt.id).await.unwrap());
    assert_eq!(h.read().await.due_strays(second, 10).await.unwrap(), []);
    // One that cannot be read does not block the others.
    let mut tx = h.begin().await;
    let (unreadable, fine) = (stray(ReceiptKind::Read, "unreadable"), stray(ReceiptKind::Read, "fine"));
    tx.insert_stray(&unreadable, first).await.unwrap();
    tx.insert_stray(&fine, second).await.unwrap();
    tx.commit().await.unwrap();
    h.sql("UPDATE stray_receipts SET kind = '?' WHERE reference = 'unreadable'").await;
    assert_eq!(h.read().await.due_strays(second, 10).await.unwrap(), [fine]);
    // Lookups end after about a day.
    let waits: Vec<_> = (0..).map_while(next_lookup).collect();
    let day = waits.iter().sum::<std::time::Duration>().as_secs();
    assert!((80_000..100_000).contains(&day), "{day}");
}
