//! References of providers, and receipts as they came.

use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, Step};
use nuncio_domain::message::{FailureCode, Status};
use nuncio_domain::{ConnectionId, MessageId};
use nuncio_store::{RawReceipt, StrayReceipt, Transition, next_look};

use crate::harness::Harness;
use crate::make::{failure, settle};

fn raw(h: &Harness, connection: ConnectionId, reference: &str) -> RawReceipt {
    RawReceipt { id: h.id(), connection, reference: reference.to_owned(), raw: format!("id:{reference} stat:DELIVRD \u{1F4E8}") }
}

async fn tell(h: &Harness, message: MessageId, part: u8, raw: RawReceipt) -> Status {
    let step = Step::Receipt { attempt: Some(0), part, kind: ReceiptKind::Delivered, at: h.tick() };
    let transition = Transition { raw: Some(Box::new(raw)), ..h.transition(message, step) };
    h.store.transition(transition).await.unwrap();
    h.lookup(message).await.state.status
}

pub(crate) async fn references_come_with_the_answer_and_receipts_are_kept(h: &Harness) {
    let (tenant, connection) = (h.world.tenant, h.world.connection);
    let message = h.sending(1).await;
    let refs = ["7F", "80"].map(str::to_owned).to_vec();
    let outcome = Outcome::Accepted { refs, cost: None, receipts: Receipts::ByReference };
    let other = h.sending(2).await;
    let taken = h.transition(message.id, settle(0, 1, outcome.clone()));
    // In one batch with another that the provider took under one of the same ids: the first keeps it.
    let twin = Outcome::Unknown { failure: failure(FailureCode::UnknownOutcome), refs: vec!["80".to_owned(), "81".to_owned()] };
    h.store.transition(taken).await.unwrap();
    h.step(other.id, settle(0, 1, twin)).await;
    let mut tx = h.read().await;
    assert_eq!(tx.find_reference(tenant, connection, "7F").await.unwrap(), Some((message.id, 0, 0)));
    assert_eq!(tx.find_reference(tenant, connection, "80").await.unwrap(), Some((message.id, 0, 1)));
    assert_eq!(tx.find_reference(tenant, connection, "81").await.unwrap(), Some((other.id, 0, 1)));
    assert_eq!(tx.find_reference(tenant, connection, "7f").await.unwrap(), None);
    assert_eq!(tx.find_reference(tenant, h.id(), "7F").await.unwrap(), None);
    assert_eq!(tx.find_reference(h.other.tenant, connection, "7F").await.unwrap(), None);

    let (one, two) = (raw(h, connection, "7F"), raw(h, connection, "80"));
    assert_eq!(tell(h, message.id, 0, one.clone()).await, Status::Sent, "the other part is missing");
    assert_eq!(tell(h, message.id, 1, two.clone()).await, Status::Delivered);
    // Also one that changes nothing is kept, and one told twice is kept once.
    let again = raw(h, connection, "80");
    tell(h, message.id, 1, again.clone()).await;
    tell(h, message.id, 1, again.clone()).await;
    let kept: Vec<_> = h.read().await.list_receipts(tenant, message.id).await.unwrap().into_iter().map(|r| r.receipt).collect();
    assert_eq!(kept, [one, two, again]);
    assert_eq!(h.read().await.list_receipts(h.other.tenant, message.id).await.unwrap(), []);
    // Nobody's message: nothing is written.
    let nobody: MessageId = h.id();
    let step = Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Read, at: h.tick() };
    let transition = Transition { raw: Some(Box::new(raw(h, connection, "x"))), ..h.transition(nobody, step) };
    h.store.transition(transition).await.unwrap();
    assert_eq!(h.read().await.list_receipts(tenant, nobody).await.unwrap(), []);
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
    tx.put_off_stray(tenant, early.receipt.id, None).await.unwrap();
    tx.put_off_stray(tenant, late.receipt.id, Some(second)).await.unwrap();
    tx.delete_stray(h.other.tenant, late.receipt.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.due_strays(second, 10).await.unwrap(), [StrayReceipt { tries: 1, ..late.clone() }]);
    let shown = h.read().await.list_strays(tenant).await.unwrap();
    assert!(shown.contains(&StrayReceipt { tries: 1, ..early }), "{shown:?}");
    let mut tx = h.begin().await;
    tx.delete_stray(tenant, late.receipt.id).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.due_strays(second, 10).await.unwrap(), []);
    // About a day in all, and then no more.
    let waits: Vec<_> = (0..).map_while(next_look).collect();
    let day = waits.iter().sum::<std::time::Duration>().as_secs();
    assert!((80_000..100_000).contains(&day), "{day}");
}
