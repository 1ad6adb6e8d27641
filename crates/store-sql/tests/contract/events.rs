//! The event log.

use std::time::Duration;

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_store::{LogPayload, NewEvent, Occurrence};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::harness::{Harness, START};
use crate::make::phone;

pub(crate) async fn what_happened_to_a_resource_is_told_in_order(h: &Harness) {
    let resource = Uuid::from_u128(7);
    let occurrence = |status: &str| Occurrence {
        kind: EventType::BroadcastStatusChanged,
        sender: Some(h.world.sender),
        data: Map::from_iter([("broadcast".to_owned(), json!({"status": status}))]),
    };
    let event = |sequence, statuses: &[&str]| NewEvent {
        kind: ResourceKind::Broadcast,
        resource,
        sequence,
        occurrences: statuses.iter().map(|s| occurrence(s)).collect(),
    };
    let mut tx = h.store.begin().await.unwrap();
    tx.insert_event(h.world.tenant, &event(1, &["pending_review", "approved"]), START).await.unwrap();
    tx.insert_event(h.world.tenant, &event(3, &["sending"]), START).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    let payload = tx.list_resource_events(h.world.tenant, ResourceKind::Broadcast, resource).await.unwrap();
    assert_eq!(payload, [(1, vec![occurrence("pending_review"), occurrence("approved")]), (3, vec![occurrence("sending")])]);
    assert_eq!(tx.list_resource_events(h.world.tenant, ResourceKind::Contact, resource).await.unwrap(), []);
    assert_eq!(tx.list_resource_events(h.other.tenant, ResourceKind::Broadcast, resource).await.unwrap(), []);
    drop(tx);
    let mut tx = h.store.begin().await.unwrap();
    assert!(tx.insert_event(h.world.tenant, &event(3, &["paused"]), START).await.is_err(), "two events cannot have one sequence");
}

pub(crate) async fn the_log_is_read_in_commit_order(h: &Harness) {
    let tenant = h.world.tenant;
    let begin = h.read().await.log_end(tenant).await.unwrap();
    let (first, second) = (h.accept(h.claimed(&phone(1))).await, h.accept(h.item(&phone(2))).await);
    h.accept(h.item_in(&h.other, &phone(1))).await;
    let mut tx = h.store.begin().await.unwrap();
    let payload = NewEvent { kind: ResourceKind::Contact, resource: Uuid::from_u128(9), sequence: 1, occurrences: Vec::new() };
    tx.insert_event(tenant, &payload, START).await.unwrap();
    tx.insert_event(tenant, &NewEvent { sequence: 2, ..payload }, START).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    let all = tx.read_log(tenant, begin, 10).await.unwrap();
    let heads: Vec<_> = all.iter().map(|e| (e.resource, e.sequence)).collect();
    let contact = Uuid::from_u128(9);
    assert_eq!(heads, [(first.id.uuid(), 1), (second.id.uuid(), 1), (contact, 1), (contact, 2)]);
    assert!(matches!(&all[0].payload, LogPayload::Message(changes) if changes.len() == 2), "queued and sending");
    assert!(matches!(all[2].payload, LogPayload::Other(ResourceKind::Contact, _)));
    assert!(all.is_sorted_by_key(|e| e.position));
    // In pages, from any position.
    let mut walked = Vec::new();
    let mut at = begin;
    while let [entry] = tx.read_log(tenant, at, 1).await.unwrap().as_slice() {
        at = entry.position;
        walked.push(entry.clone());
    }
    assert_eq!(walked, all);
    let newest = tx.list_log(tenant, None, None, 10).await.unwrap();
    assert_eq!(newest, all.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(tx.list_log(tenant, None, Some(all[2].position), 1).await.unwrap(), [all[1].clone()]);
    assert!(tx.log_end(tenant).await.unwrap() >= at);
    for (sequence, found) in [(1, Some(0)), (2, Some(0)), (0, None)] {
        assert_eq!(
            tx.find_log_entry(tenant, ResourceKind::Message, first.id.uuid(), sequence).await.unwrap(),
            found.map(|n: usize| all[n].clone())
        );
    }
    assert_eq!(tx.find_log_entry(h.other.tenant, ResourceKind::Message, first.id.uuid(), 1).await.unwrap(), None);
}

pub(crate) async fn the_log_is_searched_by_time_and_resource(h: &Harness) {
    let tenant = h.world.tenant;
    let at = |n: u64| START.plus(Duration::from_secs(10 * n));
    assert!(
        h.read().await.list_log(tenant, None, Some(h.read().await.log_place(tenant, at(1)).await.unwrap()), 9).await.unwrap().is_empty()
    );
    for n in 0..20_u64 {
        let event =
            |n: u64| NewEvent { kind: ResourceKind::Contact, resource: Uuid::from_u128(n.into()), sequence: 1, occurrences: Vec::new() };
        let mut tx = h.store.begin().await.unwrap();
        tx.insert_event(tenant, &event(n), at(n)).await.unwrap();
        tx.insert_event(h.other.tenant, &event(100 + n), at(n)).await.unwrap();
        if n % 5 == 0 {
            tx.insert_event(tenant, &NewEvent { sequence: 2 + n as i64, ..event(777) }, at(n)).await.unwrap();
        }
        tx.commit().await.unwrap();
    }
    let mut tx = h.read().await;
    for n in 0..=21 {
        let place = tx.log_place(tenant, at(n)).await.unwrap();
        let before = tx.list_log(tenant, None, Some(place), 100).await.unwrap();
        assert_eq!(before.len() as u64, n.min(20) + n.min(20).div_ceil(5), "what was written before {n}");
        assert!(before.iter().all(|entry| entry.recorded_at < at(n)));
        assert_eq!(tx.log_place(tenant, at(n).minus(Duration::from_secs(9))).await.unwrap(), place, "between two rows");
    }
    let resource = Some(Uuid::from_u128(777));
    let of_resource = tx.list_log(tenant, resource, None, 3).await.unwrap();
    assert_eq!(of_resource.iter().map(|e| e.sequence).collect::<Vec<_>>(), [17, 12, 7]);
    let rest = tx.list_log(tenant, resource, Some(of_resource[2].position), 3).await.unwrap();
    assert_eq!(rest.iter().map(|e| e.sequence).collect::<Vec<_>>(), [2]);
    assert!(tx.list_log(h.other.tenant, resource, None, 3).await.unwrap().is_empty());
}

/// A transaction gets its position at commit: whatever is committed later is behind everything already read.
pub(crate) async fn positions_follow_the_order_of_commits(h: &Harness) {
    let tenant = h.world.tenant;
    let event = |n: u128| NewEvent { kind: ResourceKind::Contact, resource: Uuid::from_u128(n), sequence: 1, occurrences: Vec::new() };
    let begin = h.read().await.log_end(tenant).await.unwrap();
    let mut late = h.store.begin().await.unwrap();
    late.insert_event(tenant, &event(1), START).await.unwrap();
    let mut early = h.store.begin().await.unwrap();
    early.insert_event(tenant, &event(2), START).await.unwrap();
    early.commit().await.unwrap();
    let seen =
        async || -> Vec<u128> { h.read().await.read_log(tenant, begin, 10).await.unwrap().iter().map(|e| e.resource.as_u128()).collect() };
    assert_eq!(seen().await, [2]);
    let mut dropped = h.store.begin().await.unwrap();
    dropped.insert_event(tenant, &event(3), START).await.unwrap();
    drop(dropped);
    late.commit().await.unwrap();
    assert_eq!(seen().await, [2, 1]);
    assert_eq!(gaps(h).await, 0, "a transaction that was rolled back took no position");
}

/// Returns how many positions are missing in the logs of all tenants.
pub(crate) async fn gaps(h: &Harness) -> i64 {
    h.number(
        "SELECT CAST(COALESCE(SUM(h.position - l.count), 0) AS BIGINT) FROM log_heads h JOIN \
         (SELECT tenant_id, COUNT(*) AS count FROM log GROUP BY tenant_id) l ON l.tenant_id = h.tenant_id",
    )
    .await
}
