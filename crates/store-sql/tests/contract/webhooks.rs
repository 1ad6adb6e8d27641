//! Webhooks.

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::page::PageRequest;
use nuncio_domain::webhook::{DeliveryStatus, Webhook};
use nuncio_domain::{DeliveryId, EventId, Redacted, Timestamp};
use nuncio_store::{Delivery, DeliveryFilter, DeliveryLog, DeliveryTry, LogReader, Position};
use uuid::Uuid;

use crate::harness::{Harness, NODE, START};
use crate::make::MINUTE;

pub(crate) async fn a_webhook_comes_back_as_it_was(h: &Harness) {
    let tenant = h.world.tenant;
    let of = |sender, url: &str| Webhook {
        sender,
        url: url.to_owned(),
        events: vec![EventType::MessageSent, EventType::ContactMerged],
        active: true,
        sealed: Redacted::new(vec![1, 2]),
        failing_since: None,
        disabled_reason: None,
        created_at: START,
        updated_at: START,
    };
    let sender = Some(h.world.sender);
    let (own, world) = (of(sender, "https://a.example/x"), of(None, "https://b.example/y"));
    let mut tx = h.store.begin().await.unwrap();
    tx.put_webhook(tenant, &own).await.unwrap();
    tx.put_webhook(tenant, &world).await.unwrap();
    assert_eq!(tx.list_webhooks(tenant).await.unwrap(), [world.clone(), own.clone()]);
    assert_eq!(tx.webhooks_of_senders(tenant, &[h.world.sender, h.id()]).await.unwrap(), std::slice::from_ref(&own));
    assert_eq!(tx.webhooks_of_senders(tenant, &[]).await.unwrap(), []);
    assert_eq!(tx.webhooks_of_senders(h.other.tenant, &[h.world.sender]).await.unwrap(), []);
    let changed =
        Webhook { events: Vec::new(), active: false, failing_since: Some(START), disabled_reason: Some("gone".to_owned()), ..own };
    tx.put_webhook(tenant, &changed).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.store.begin().await.unwrap();
    assert_eq!(tx.find_webhook(tenant, sender).await.unwrap(), Some(changed));
    assert_eq!(tx.find_webhook(tenant, None).await.unwrap(), Some(world));
    assert_eq!(tx.find_webhook(h.other.tenant, None).await.unwrap(), None);
    assert!(!tx.delete_webhook(h.other.tenant, None).await.unwrap());
    assert!(tx.delete_webhook(tenant, None).await.unwrap());
    assert!(!tx.delete_webhook(tenant, None).await.unwrap());
    assert_eq!(tx.list_webhooks(tenant).await.unwrap().len(), 1);
}

pub(crate) fn delivery(n: u128, resource: u128, sequence: i64) -> Delivery {
    Delivery {
        id: DeliveryId::from_uuid(Uuid::from_u128(n)),
        sender: None,
        event: EventId::from_uuid(Uuid::from_u128(1_000 + n)),
        event_type: EventType::MessageSent,
        kind: ResourceKind::Message,
        resource: Uuid::from_u128(resource),
        sequence,
        url: "https://a.example/x".to_owned(),
        status: DeliveryStatus::Pending,
        tries: 0,
        due_at: Some(START),
        attempts: Vec::new(),
        reason: None,
        replays: 0,
        updated_at: START,
    }
}

async fn log(h: &Harness, deliveries: Vec<Delivery>, read: Option<Position>, fence: i64) -> bool {
    h.store.log_deliveries(DeliveryLog { tenant: h.world.tenant, deliveries, read, fence }).await.unwrap()
}

pub(crate) async fn a_log_has_one_reader(h: &Harness) {
    let tenant = h.world.tenant;
    let place = |commit| Position { commit, entry: 3 };
    let mut tx = h.store.begin().await.unwrap();
    let first = START.millis();
    tx.open_log(tenant, place(7), START).await.unwrap();
    tx.open_log(tenant, place(9), START.plus(MINUTE)).await.unwrap();
    assert_eq!(tx.claim_log(tenant, first, Some(NODE)).await.unwrap(), Some(first + 1));
    assert_eq!(tx.claim_log(tenant, first, Some(NODE)).await.unwrap(), None, "somebody was faster");
    tx.commit().await.unwrap();
    h.sending(1).await;
    let (epoch, head) = (h.read().await.epochs(&[tenant]).await.unwrap()[0].1, h.read().await.log_end(tenant).await.unwrap().commit);
    assert_eq!(head, 1, "that of the message");
    let reader = |read, fence, owner| LogReader { tenant, read, owner, fence, epoch, head };
    assert_eq!(h.read().await.log_readers().await.unwrap(), [reader(place(7), first + 1, Some(NODE))]);
    assert!(log(h, Vec::new(), Some(place(8)), first + 1).await);
    let mut tx = h.store.begin().await.unwrap();
    assert_eq!(tx.claim_log(tenant, first + 1, None).await.unwrap(), Some(first + 2));
    tx.commit().await.unwrap();
    assert!(!log(h, vec![delivery(1, 1, 1)], Some(place(9)), first + 1).await, "the reader was replaced");
    assert_eq!(h.read().await.log_readers().await.unwrap(), [reader(place(8), first + 2, None)], "its place does not count");
    assert!(h.read().await.find_delivery(tenant, delivery(1, 1, 1).id).await.unwrap().is_some(), "what it did does");
    let mut tx = h.store.begin().await.unwrap();
    tx.close_log(tenant).await.unwrap();
    assert_eq!(tx.log_readers().await.unwrap(), []);
    tx.open_log(tenant, place(8), START.plus(MINUTE)).await.unwrap();
    assert_eq!(tx.claim_log(tenant, first + 60_000, Some(NODE)).await.unwrap(), Some(first + 60_001), "none of the fences before");
    tx.commit().await.unwrap();
    assert!(!log(h, Vec::new(), Some(place(9)), first + 1).await, "the first reader is not taken for this one");
}

pub(crate) async fn deliveries_wait_for_earlier_ones_of_their_resource(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.store.begin().await.unwrap();
    let webhook = Webhook {
        sender: None,
        url: String::new(),
        events: Vec::new(),
        active: true,
        sealed: Redacted::new(Vec::new()),
        failing_since: None,
        disabled_reason: None,
        created_at: START,
        updated_at: START,
    };
    tx.put_webhook(tenant, &webhook).await.unwrap();
    assert!(tx.mark_webhook(tenant, None, START, Some(START), None).await.unwrap());
    assert!(!tx.mark_webhook(tenant, None, START.plus(MINUTE), None, Some("x")).await.unwrap(), "it was set up anew");
    tx.commit().await.unwrap();
    let failed = Delivery { status: DeliveryStatus::Failed, tries: 2, due_at: Some(START.plus(MINUTE)), ..delivery(1, 1, 1) };
    let other = Delivery { sender: Some(h.world.sender), ..delivery(4, 1, 1) };
    log(h, vec![failed.clone(), delivery(2, 1, 2), delivery(3, 2, 1), other], None, 0).await;
    let mut tx = h.read().await;
    let due = |at: Timestamp, ids: &'static [u128]| (at, ids);
    for (at, ids) in [due(START, &[3]), due(START.plus(MINUTE), &[3, 1])] {
        let found = tx.due_deliveries(tenant, None, at, 3, 10).await.unwrap();
        assert_eq!(found.iter().map(|d| d.id.uuid().as_u128()).collect::<Vec<_>>(), ids);
    }
    let found = tx.due_deliveries(tenant, None, START, 2, 10).await.unwrap();
    assert_eq!(found.iter().map(|d| d.id.uuid().as_u128()).collect::<Vec<_>>(), [2, 3], "patience is over");
    assert_eq!(tx.waiting_webhooks(tenant).await.unwrap(), [None]);
    let (before, later, own) = (START.minus(MINUTE), START.plus(MINUTE), Some(h.world.sender));
    for (sender, after, next) in [(None, before, Some(START)), (None, START, Some(later)), (None, later, None), (own, START, None)] {
        assert_eq!(tx.next_delivery_at(tenant, sender, after).await.unwrap(), next, "{sender:?} {after}");
    }
    assert_eq!(tx.next_delivery_at(h.other.tenant, None, before).await.unwrap(), None);
    let resources = [1, 2, 3].map(Uuid::from_u128);
    let mut waiting = tx.waiting_resources(tenant, None, &resources).await.unwrap();
    waiting.sort_unstable();
    assert_eq!(waiting, resources[..2]);
    let known = tx.known_deliveries(tenant, &[failed.id, delivery(9, 9, 9).id]).await.unwrap();
    assert_eq!(known, [failed.id]);
    drop(tx);
    let mut tx = h.store.begin().await.unwrap();
    assert_eq!(tx.drop_deliveries(tenant, None, &[], "gone", before, 2).await.unwrap(), 0, "they came later");
    let kept = [EventType::MessageSent, EventType::MessageRead];
    assert_eq!(tx.drop_deliveries(tenant, None, &kept, "gone", START, 2).await.unwrap(), 0, "all are of these types");
    assert_eq!(tx.drop_deliveries(tenant, None, &kept[1..], "gone", START, 2).await.unwrap(), 2);
    assert_eq!(tx.drop_deliveries(tenant, None, &[], "gone", START, 2).await.unwrap(), 1);
    assert_eq!(tx.waiting_webhooks(tenant).await.unwrap(), []);
    assert_eq!(tx.next_delivery_at(tenant, None, before).await.unwrap(), None);
    let page = PageRequest::newest(10);
    let dead = DeliveryFilter { status: vec![DeliveryStatus::Dead], ..DeliveryFilter::default() };
    let dead = tx.list_deliveries(tenant, &dead, page).await.unwrap().items;
    assert_eq!(dead.iter().map(|delivery| delivery.reason.as_deref()).collect::<Vec<_>>(), [Some("gone"); 3]);
}

/// PostgreSQL plans this before it has statistics of the table. The plan must not read all that wait for each of them.
pub(crate) async fn due_deliveries_are_found_among_many(h: &Harness) {
    log(h, (1..=3_000).map(|n| delivery(n, n, 1)).collect(), None, 0).await;
    let due = h.read().await.due_deliveries(h.world.tenant, None, START, 3, 50).await.unwrap();
    assert_eq!(due.len(), 50);
    let pages = h.pages_read(&["FROM deliveries d", "EXISTS"]).await;
    assert!(pages.is_none_or(|pages| pages < 50 * 25), "{pages:?} pages");
    let next = h.read().await.next_delivery_at(h.world.tenant, None, START.minus(MINUTE)).await.unwrap();
    assert_eq!(next, Some(START));
    let pages = h.pages_read(&["SELECT due_at", "FROM deliveries"]).await;
    assert!(pages.is_none_or(|pages| pages < 25), "{pages:?} pages");
}

pub(crate) async fn a_delivered_delivery_stays_delivered(h: &Harness) {
    let tenant = h.world.tenant;
    let tried = DeliveryTry { at: START, status: Some(200), ms: 3, error: None, body: Some("ok".to_owned()) };
    let delivered = Delivery { status: DeliveryStatus::Delivered, tries: 1, due_at: None, attempts: vec![tried], ..delivery(1, 1, 1) };
    log(h, vec![delivered.clone()], None, 0).await;
    log(h, vec![delivery(1, 1, 1), Delivery { event_type: EventType::MessageRead, ..delivery(2, 2, 1) }], None, 0).await;
    let mut tx = h.store.begin().await.unwrap();
    assert_eq!(tx.find_delivery(tenant, delivered.id).await.unwrap(), Some(delivered.clone()));
    assert_eq!(tx.find_delivery(h.other.tenant, delivered.id).await.unwrap(), None);
    let all = |filter: DeliveryFilter, limit| (filter, PageRequest::newest(limit));
    for ((filter, page), ids) in [
        (all(DeliveryFilter::default(), 10), &[2, 1][..]),
        (all(DeliveryFilter::default(), 1), &[2]),
        (all(DeliveryFilter { status: vec![DeliveryStatus::Delivered], ..DeliveryFilter::default() }, 10), &[1]),
        (
            all(DeliveryFilter { status: vec![DeliveryStatus::Pending, DeliveryStatus::Delivered], ..DeliveryFilter::default() }, 10),
            &[2, 1],
        ),
        (all(DeliveryFilter { event_type: vec![EventType::MessageRead], ..DeliveryFilter::default() }, 10), &[2]),
        (all(DeliveryFilter { resource: Some(Uuid::from_u128(1)), ..DeliveryFilter::default() }, 10), &[1]),
        (all(DeliveryFilter { sender: Some(Some(h.world.sender)), ..DeliveryFilter::default() }, 10), &[]),
        (all(DeliveryFilter { sender: Some(None), ..DeliveryFilter::default() }, 10), &[2, 1]),
    ] {
        let found = tx.list_deliveries(tenant, &filter, page).await.unwrap();
        assert_eq!(found.items.iter().map(|d| d.id.uuid().as_u128()).collect::<Vec<_>>(), ids, "{filter:?}");
    }
    assert!(tx.replay_delivery(tenant, delivered.id, START).await.unwrap());
    assert!(!tx.replay_delivery(h.other.tenant, delivered.id, START).await.unwrap());
    let again = tx.find_delivery(tenant, delivered.id).await.unwrap().unwrap();
    assert_eq!((again.status, again.tries, again.due_at, again.attempts.len()), (DeliveryStatus::Pending, 0, Some(START), 1));
}

pub(crate) async fn a_replay_is_not_undone_by_what_was_read_before(h: &Harness) {
    let (tenant, tried) = (h.world.tenant, |ms| DeliveryTry { at: START, status: Some(500), ms, error: None, body: None });
    let dead = Delivery { status: DeliveryStatus::Dead, tries: 9, due_at: None, reason: Some("gone".to_owned()), ..delivery(1, 1, 1) };
    let mut tx = h.store.begin().await.unwrap();
    tx.insert_delivery(tenant, &dead).await.unwrap();
    assert_eq!(tx.find_delivery(tenant, dead.id).await.unwrap().as_ref(), Some(&dead));
    let later = START.plus(MINUTE);
    assert!(tx.replay_delivery(tenant, dead.id, later).await.unwrap());
    tx.commit().await.unwrap();
    let replayed = Delivery { due_at: Some(later), replays: 1, updated_at: later, ..delivery(1, 1, 1) };
    let found = async || h.read().await.find_delivery(tenant, dead.id).await.unwrap().unwrap();
    assert_eq!(found().await, replayed);
    // Results of tries that began before.
    for (ms, status) in [(1, DeliveryStatus::Failed), (2, DeliveryStatus::Dead), (3, DeliveryStatus::Delivered)] {
        let url = format!("https://a.example/{ms}");
        let result = Delivery { status, tries: 3, due_at: None, attempts: vec![tried(ms)], url: url.clone(), ..dead.clone() };
        log(h, vec![result], None, 0).await;
        assert_eq!(found().await, Delivery { attempts: vec![tried(ms)], url, ..replayed.clone() });
    }
    let result = Delivery { status: DeliveryStatus::Delivered, tries: 0, due_at: None, attempts: vec![tried(4)], ..replayed };
    log(h, vec![result.clone()], None, 0).await;
    assert_eq!(found().await, result);
}
