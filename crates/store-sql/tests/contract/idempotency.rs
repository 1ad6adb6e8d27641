//! Idempotency keys.

use nuncio_domain::broadcast::{Broadcast, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::message::Message;
use nuncio_domain::{Timestamp, limits};
use nuncio_store::{Accept, Idempotency, IdempotentOperation, Repeat};

use crate::broadcasts::{find, with_contacts};
use crate::harness::{Harness, START, in_tx};
use crate::make::{MINUTE, duplicate, new, phone, with_key};

pub(crate) async fn a_key_used_again_names_the_original(h: &Harness) {
    let (original, _) = new(h.store.accept(with_key(h.item(&phone(1)), "key", 1)).await);
    assert_eq!(duplicate(h.store.accept(with_key(h.item(&phone(1)), "key", 1)).await), (original.id, true));
    assert_eq!(duplicate(h.store.accept(with_key(h.item(&phone(2)), "key", 2)).await), (original.id, false));
    assert_eq!((h.rows_of("messages").await, h.rows_of("log").await, h.rows_of("addresses").await), (1, 1, 1));
    assert_eq!(original.request.idempotency_key.as_deref(), Some("key"));
    assert_eq!(h.lookup(original.id).await, original);
    // Keys are compared byte by byte, and within an environment.
    for key in ["KEY", "key ", "ke\u{301}y", "kéy", ""] {
        new(h.store.accept(with_key(h.item(&phone(1)), key, 1)).await);
    }
    let (foreign, _) = new(h.store.accept(with_key(h.item_in(&h.other, &phone(1)), "key", 1)).await);
    let mut tx = h.read().await;
    for (tenant, id) in [(h.world.tenant, original.id), (h.other.tenant, foreign.id)] {
        let found = tx.find_message_by_idempotency_key(tenant, IdempotentOperation::SendMessage, "key").await.unwrap();
        assert_eq!(found, Some(id));
    }
    assert_eq!(tx.find_message_by_idempotency_key(h.world.tenant, IdempotentOperation::SendMessage, "kEy").await.unwrap(), None);
}

async fn one_wins(h: &Harness, answers: Vec<nuncio_store::Result<nuncio_store::Accepted>>) -> Message {
    let mut winners = Vec::new();
    let mut originals = Vec::new();
    for answer in answers {
        match answer {
            Ok(nuncio_store::Accepted::New { message, .. }) => winners.push(*message),
            other => originals.push(duplicate(other)),
        }
    }
    assert_eq!(winners.len(), 1);
    let winner = winners.remove(0);
    assert!(originals.iter().all(|original| *original == (winner.id, true)));
    assert_eq!(h.lookup(winner.id).await, winner);
    winner
}

pub(crate) async fn of_a_hundred_with_one_key_one_wins(h: &Harness) {
    one_wins(h, h.accept_from_tasks((0..100).map(|_| with_key(h.item(&phone(1)), "crowd", 1))).await).await;
    one_wins(h, h.accept_at_once((0..20).map(|_| with_key(h.item(&phone(1)), "batch", 1)).collect()).await).await;
    assert_eq!(h.rows_of("messages").await, 2);
    // Many keys in one transaction, each twice and unordered.
    let items: Vec<Accept> = (0..40).map(|n| with_key(h.item(&phone(1)), &format!("{}", n * 7 % 20), 1)).collect();
    let answers = h.accept_at_once(items).await;
    let (first, second): (Vec<_>, Vec<_>) = answers.into_iter().enumerate().partition(|(n, _)| *n < 20);
    let originals: Vec<_> = first.into_iter().map(|(_, answer)| new(answer).0.id).collect();
    for ((n, answer), original) in second.into_iter().zip(originals) {
        assert_eq!(duplicate(answer), (original, true), "{n}");
    }
}

pub(crate) async fn keys_are_forgotten_a_while_after_the_end(h: &Harness) {
    let first = h.accept(with_key(h.item(&phone(1)), "first", 1)).await;
    let second = h.accept(with_key(h.item(&phone(1)), "second", 1)).await;
    h.accept(with_key(h.item(&phone(1)), "third", 1)).await;
    // Both end in one transaction, at different times.
    let ends = [h.transition(second.id, Step::Cancel), h.transition(first.id, Step::Cancel)];
    let (late, early) = (ends[0].now, ends[1].now);
    h.steps_at_once(ends.into()).await;
    let after = |at: Timestamp| at.plus(limits::IDEMPOTENCY_RETENTION);
    let horizon = full_minute(after(early.max(late)));
    let purge = async |now, limit| in_tx!(h, |tx| tx.purge_idempotency_keys(now, limit).await.unwrap());
    let too_early = after(early.min(late)).minus(std::time::Duration::from_millis(1));
    assert_eq!((purge(too_early, 9).await, purge(too_early, 9).await), (3, 0), "each is looked at once");
    assert_eq!(h.rows_of("idempotency_keys").await, 3);
    assert_eq!((purge(horizon, 1).await, purge(horizon, 9).await, purge(horizon, 9).await), (1, 1, 0));
    assert_eq!(h.rows_of("idempotency_keys").await, 1);
    new(h.store.accept(with_key(h.item(&phone(1)), "first", 9)).await);
    duplicate(h.store.accept(with_key(h.item(&phone(1)), "third", 1)).await);
    a_broadcast_keeps_its_key(h).await;
}

async fn a_broadcast_keeps_its_key(h: &Harness) {
    let (id, _) = with_contacts(h, 1, Status::Sending).await;
    let guard = Idempotency { operation: IdempotentOperation::CreateBroadcast, key: "news".to_owned(), fingerprint: [1; 32] };
    let week = |n: u32| START.plus(limits::IDEMPOTENCY_RETENTION * n);
    in_tx!(h, |tx| tx.claim_idempotency_key(h.world.tenant, &guard, id.uuid(), week(1)).await.unwrap());
    let left_at = async |now| {
        in_tx!(h, |tx| tx.purge_idempotency_keys(now, 9).await.unwrap());
        h.number("SELECT COUNT(*) FROM idempotency_keys WHERE key = 'news'").await
    };
    assert_eq!((left_at(week(1)).await, left_at(week(5)).await), (1, 1), "it is not final");
    let broadcast = find(h, id).await;
    let ended = Broadcast { status: Status::Completed, version: broadcast.version + 1, updated_at: week(5), ..broadcast };
    assert!(in_tx!(h, |tx| tx.update_broadcast(&ended, ended.version - 1).await.unwrap()));
    assert_eq!((left_at(week(6).minus(MINUTE)).await, left_at(week(6)).await), (1, 0));
}

pub(crate) async fn keys_that_stay_hide_none_that_go(h: &Harness) {
    h.accept(with_key(h.item(&phone(1)), "waiting", 1)).await;
    let lately = h.accept(with_key(h.item(&phone(1)), "lately", 1)).await;
    for n in 0..3 {
        let over = h.accept(with_key(h.item(&phone(1)), &format!("over {n}"), 1)).await;
        h.step(over.id, Step::Cancel).await;
    }
    let now = h.tick().plus(limits::IDEMPOTENCY_RETENTION);
    let ends = nuncio_store::Transition { now: now.minus(MINUTE), ..h.transition(lately.id, Step::Cancel) };
    h.store.transition(ends).await.unwrap();
    // Many that stay are due before those that go, and more than one look finds at a time.
    for key in ["waiting", "lately"] {
        h.sql(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) \
             INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at) \
             SELECT k.tenant_id, k.operation, k.key || '-' || n.i, k.fingerprint, k.resource_id, 1 \
             FROM idempotency_keys k CROSS JOIN n WHERE k.key = '{key}'"
        ))
        .await;
    }
    let mut looks = Vec::new();
    while looks.last().is_none_or(|looked_at| *looked_at == 20) && looks.len() < 9 {
        looks.push(in_tx!(h, |tx| tx.purge_idempotency_keys(now, 20).await.unwrap()));
    }
    assert_eq!(looks, [20, 20, 20, 20, 20, 5], "as long as one is full");
    let left = async |condition: &str| h.number(&format!("SELECT COUNT(*) FROM idempotency_keys WHERE {condition}")).await;
    assert_eq!((left("key LIKE 'waiting%'").await, left("key LIKE 'lately%'").await, left("key LIKE 'over%'").await), (51, 51, 0));
    let again = |since: Timestamp| full_minute(since.plus(limits::IDEMPOTENCY_RETENTION)).millis();
    for since in [now, now.minus(MINUTE)] {
        assert_eq!(left(&format!("check_at = {}", again(since))).await, 51, "none is due by now");
    }
}

/// Keys are looked at again on full minutes.
fn full_minute(at: Timestamp) -> Timestamp {
    let minute = MINUTE.as_millis() as i64;
    Timestamp::from_millis((at.millis() + minute - 1) / minute * minute)
}

pub(crate) async fn a_key_is_claimed_once_off_the_hot_path(h: &Harness) {
    let guard = |key: &str, fingerprint| Idempotency {
        operation: IdempotentOperation::CreateContact,
        key: key.to_owned(),
        fingerprint: [fingerprint; 32],
    };
    let (first, second) = (uuid::Uuid::from_u128(1), uuid::Uuid::from_u128(2));
    let tenant = h.world.tenant;
    let mut tx = h.store.begin().await.unwrap();
    assert_eq!(tx.claim_idempotency_key(tenant, &guard("k", 1), first, START).await.unwrap(), None);
    drop(tx);
    let mut tx = h.store.begin().await.unwrap();
    assert_eq!(tx.claim_idempotency_key(tenant, &guard("k", 1), second, START).await.unwrap(), None, "a dropped claim is none");
    tx.commit().await.unwrap();
    let mut tx = h.store.begin().await.unwrap();
    for (fingerprint, same_request) in [(1, true), (2, false)] {
        let claim = tx.claim_idempotency_key(tenant, &guard("k", fingerprint), first, START).await.unwrap();
        assert_eq!(claim, Some(Repeat { original: second, same_request }));
    }
    let other = Idempotency { operation: IdempotentOperation::CreateSender, ..guard("k", 1) };
    assert_eq!(tx.claim_idempotency_key(tenant, &other, first, START).await.unwrap(), None);
    assert_eq!(tx.claim_idempotency_key(h.other.tenant, &guard("k", 1), first, START).await.unwrap(), None);
    assert_eq!(tx.purge_idempotency_keys(START, 10).await.unwrap(), 3);
}
