//! Suppressions as callers see them, and those of erased contacts.

use nuncio_domain::message::{FailureCode, Status};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Recipient, SenderId};
use nuncio_store::{Accepted, Suppression, SuppressionReason};

use crate::contacts::inbound;
use crate::harness::{Harness, START};
use crate::make::{mark, new, phone};

const ALL: PageRequest = PageRequest::newest(100);

fn entry(h: &Harness, number: u32, sender: Option<SenderId>, reason: SuppressionReason) -> Suppression {
    Suppression { id: h.id(), recipient: phone(number), sender, reason, source: "x".to_owned() }
}

async fn insert(h: &Harness, entries: &[Suppression]) {
    let mut tx = h.begin().await;
    for entry in entries {
        assert!(tx.insert_suppression(h.world.tenant, entry, START).await.unwrap());
    }
    tx.commit().await.unwrap();
}

pub(crate) async fn suppressions_are_listed_and_lifted(h: &Harness) {
    let tenant = h.world.tenant;
    let entries = [
        entry(h, 1, None, SuppressionReason::Bounce),
        entry(h, 2, Some(h.world.sender), SuppressionReason::OptOut),
        entry(h, 1, Some(h.world.sender), SuppressionReason::OptOut),
    ];
    insert(h, &entries).await;
    let mut tx = h.read().await;
    let newest_first: Vec<_> = entries.iter().rev().cloned().collect();
    assert_eq!(tx.list_suppressions(tenant, &[], ALL).await.unwrap().items, newest_first);
    assert!(tx.list_suppressions(h.other.tenant, &[], ALL).await.unwrap().items.is_empty());
    assert_eq!(tx.list_suppressions(tenant, &[phone(2)], ALL).await.unwrap().items, entries[1..2]);
    assert_eq!(tx.list_suppressions(tenant, &[phone(2), phone(1)], ALL).await.unwrap().items.len(), 3);
    let email = Recipient { kind: nuncio_domain::AddressKind::Email, ..phone(1) };
    assert!(tx.list_suppressions(tenant, &[email], ALL).await.unwrap().items.is_empty());
    let page = tx.list_suppressions(tenant, &[phone(1)], PageRequest::newest(1)).await.unwrap();
    assert_eq!(page.items, entries[2..]);
    let page = tx.list_suppressions(tenant, &[phone(1)], PageRequest::older(1, page.next)).await.unwrap();
    assert_eq!((page.items.as_slice(), page.next), (&entries[..1], None));
    assert_eq!(tx.find_suppression(tenant, entries[1].id).await.unwrap().as_ref(), Some(&entries[1]));
    assert_eq!(tx.find_suppression(h.other.tenant, entries[1].id).await.unwrap(), None);
    drop(tx);
    let mut tx = h.begin().await;
    assert!(!tx.delete_suppression(h.other.tenant, entries[1].id).await.unwrap());
    assert!(tx.delete_suppression(tenant, entries[1].id).await.unwrap());
    assert!(!tx.delete_suppression(tenant, entries[1].id).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(h.rows_of("suppressions").await, 2);
}

pub(crate) async fn a_mark_holds_until_the_recipient_is_known_again(h: &Harness) {
    let tenant = h.world.tenant;
    let marked = |number| Recipient { identifier: mark(&phone(number)), ..phone(number) };
    // Of the three for one number, two are known under both names.
    insert(h, &[1, 2, 3].map(|n| entry(h, n, Some(h.world.sender), SuppressionReason::OptOut))).await;
    insert(h, &[entry(h, 1, None, SuppressionReason::Bounce)]).await;
    let mut tx = h.begin().await;
    for number in [1, 2, 3] {
        tx.rename_suppressions(tenant, &phone(number), &mark(&phone(number))).await.unwrap();
    }
    tx.rename_suppressions(h.other.tenant, &marked(3), "elsewhere").await.unwrap();
    tx.commit().await.unwrap();
    assert!(!h.read().await.is_suppressed(tenant, phone(1).kind, &phone(1).identifier, h.world.sender).await.unwrap());
    insert(h, &[entry(h, 1, Some(h.world.sender), SuppressionReason::OptOut)]).await;

    // The one that only the mark names is first: PostgreSQL looks for it before it knows that recipients here have suppressions.
    for number in [2, 1] {
        for _ in 0..2 {
            let (message, _) = new(h.store.accept(h.claimed(&phone(number))).await);
            let code = message.state.detail.failure.map(|f| f.code);
            assert_eq!((message.state.status, code), (Status::Failed, Some(FailureCode::RecipientSuppressed)), "{number}");
        }
        let listed = h.read().await.list_suppressions(tenant, &[phone(number)], ALL).await.unwrap();
        assert_eq!(listed.items.len(), if number == 1 { 2 } else { 1 }, "they stand under the identifier again");
    }
    // An inbound message also makes the recipient known.
    let mut tx = h.begin().await;
    assert!(tx.insert_inbound(&inbound(h, &phone(3), "p")).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.list_suppressions(tenant, &[phone(3)], ALL).await.unwrap().items.len(), 1);
    // The hash is different in another environment.
    let item = h.item_in(&h.other, &phone(3));
    assert!(matches!(h.store.accept(item).await.unwrap(), Accepted::New { message, .. } if message.state.status == Status::Queued));
}
