//! The event log.

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_store::{NewEvent, Occurrence};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::harness::{Harness, START};

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
    let told = tx.list_resource_events(h.world.tenant, ResourceKind::Broadcast, resource).await.unwrap();
    assert_eq!(told, [(1, vec![occurrence("pending_review"), occurrence("approved")]), (3, vec![occurrence("sending")])]);
    assert_eq!(tx.list_resource_events(h.world.tenant, ResourceKind::Contact, resource).await.unwrap(), []);
    assert_eq!(tx.list_resource_events(h.other.tenant, ResourceKind::Broadcast, resource).await.unwrap(), []);
    drop(tx);
    let mut tx = h.store.begin().await.unwrap();
    assert!(tx.insert_event(h.world.tenant, &event(3, &["paused"]), START).await.is_err(), "two events cannot have one sequence");
}
