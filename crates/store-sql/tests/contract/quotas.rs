//! Storage quotas of environments.

use nuncio_domain::Recipient;
use nuncio_domain::lifecycle::Step;
use nuncio_store::{Accept, Accepted, Erasure, Storage};

use crate::contacts::inbound;
use crate::harness::{Harness, in_tx};
use crate::make::{phone, with_key};

/// Returns the bytes according to the rows.
async fn counted(h: &Harness) -> i64 {
    let tenant = h.world.tenant.0;
    let rows = h.number(&format!("SELECT COALESCE(SUM(OCTET_LENGTH(request)), 0) FROM messages WHERE tenant_id = {tenant}")).await;
    rows + h.number(&format!("SELECT COALESCE(SUM(OCTET_LENGTH(data)), 0) FROM spool_chunks WHERE tenant_id = {tenant}")).await
}

async fn storage(h: &Harness) -> Option<Storage> {
    h.read().await.find_storage(h.world.tenant).await.unwrap()
}

async fn limit(h: &Harness, max_bytes: Option<i64>) {
    in_tx!(h, |tx| tx.limit_storage(h.world.tenant, max_bytes).await.unwrap());
}

/// Checks the counted bytes against the rows and the quota; returns them.
async fn check(h: &Harness) -> i64 {
    let storage = storage(h).await.unwrap();
    assert_eq!(storage.stored_bytes, counted(h).await);
    assert!(storage.stored_bytes <= storage.max_bytes);
    storage.stored_bytes
}

fn large(h: &Harness, to: &Recipient) -> Accept {
    let mut item = h.item(to);
    item.message.request_mut().html_body = Some("<p>x</p>".repeat(100_000));
    item
}

pub(crate) async fn a_quota_counts_what_is_stored_and_refuses_the_rest(h: &Harness) {
    h.accept(h.item(&phone(1))).await;
    let first = h.accept(large(h, &phone(1))).await;
    assert_eq!(h.read().await.find_storage(h.world.tenant).await.unwrap(), None, "off until it is set");
    // What came is no larger in its row than what is sent.
    let mut mail = inbound(h, &phone(4), "q");
    let html = "<p>y</p>".repeat(50_000);
    mail.message.request_mut().html_body = Some(html.clone());
    assert!(in_tx!(h, |tx| tx.insert_inbound(&mail).await.unwrap()));
    assert_eq!(h.lookup(mail.message.id).await.request.html_body, Some(html));
    let longest = h.number("SELECT MAX(LENGTH(request)) FROM messages WHERE direction = 2").await;
    assert!(longest < 10_000, "{longest}");
    let before = counted(h).await;
    limit(h, Some(before + 2_000_000)).await;
    assert_eq!(check(h).await, before);
    h.accept(h.item(&phone(2))).await;
    h.accept(large(h, &phone(2))).await;
    h.accept(h.item_in(&h.other, &phone(2))).await;
    let mut tx = h.begin().await;
    assert!(tx.insert_inbound(&inbound(h, &phone(1), "p")).await.unwrap());
    tx.commit().await.unwrap();
    let kept = check(h).await;
    // Of two more, one fits, also within one batch. The other leaves no key and no chunks.
    let keyed = |key| with_key(large(h, &phone(3)), key, 7);
    let mut answers = h.accept_at_once(vec![keyed("a"), keyed("b"), h.item(&phone(3))]).await;
    assert!(matches!(answers.pop(), Some(Ok(Accepted::New { .. }))), "there is room for a small one");
    let refused = answers.iter().position(|answer| matches!(answer, Ok(Accepted::Full { .. }))).unwrap();
    let Ok(Accepted::Full { storage: seen, required }) = answers[refused] else { panic!("{:?}", answers[refused]) };
    assert!(required > 800_000 && seen.stored_bytes >= kept && seen.max_bytes == before + 2_000_000);
    assert!(matches!(answers[1 - refused], Ok(Accepted::New { .. })));
    check(h).await;
    let (taken, free) = if refused == 1 { ("a", "b") } else { ("b", "a") };
    assert!(matches!(h.store.accept(keyed(taken)).await, Ok(Accepted::Duplicate { .. })), "a repeat costs nothing");
    check(h).await;
    // Erasing frees space.
    let mut tx = h.begin().await;
    let erasure = Erasure { tenant: h.world.tenant, address: first.address, recipient: phone(1) };
    let ids = tx.messages_to_erase(&erasure, false, None, 10).await.unwrap();
    assert_eq!(ids.len(), 3);
    tx.commit().await.unwrap();
    h.step(first.id, Step::Erase).await;
    in_tx!(h, |tx| tx.erase_messages(h.world.tenant, &ids).await.unwrap());
    check(h).await;
    h.accept(keyed(free)).await;
    check(h).await;
    limit(h, None).await;
    assert_eq!(storage(h).await, None);
    let last = h.accept(large(h, &phone(3))).await;
    limit(h, Some(1)).await;
    assert_eq!(storage(h).await, Some(Storage { max_bytes: 1, stored_bytes: counted(h).await }), "counted anew");
    // Only chunks without a message are deleted.
    let (kept, refused) = (h.rows_of("spool_chunks").await, h.id());
    let mut tx = h.begin().await;
    tx.insert_spool_chunk(h.world.tenant, refused, 0, b"x", h.tick()).await.unwrap();
    for id in [refused, last.id] {
        tx.delete_spool(h.world.tenant, id).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(h.rows_of("spool_chunks").await, kept);
}

pub(crate) async fn many_store_no_more_than_the_quota(h: &Harness) {
    h.accept(h.item(&phone(1))).await;
    let one = counted(h).await;
    limit(h, Some(one * 11)).await;
    let answers = h.accept_at_once((0..40).map(|n| h.item(&phone(n))).collect()).await;
    let new = answers.iter().filter(|answer| matches!(answer, Ok(Accepted::New { .. }))).count();
    assert_eq!((new, check(h).await), (10, one * 11));
}
