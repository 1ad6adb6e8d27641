//! Erasure of personal data.

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Scope, Step};
use nuncio_domain::message::{FailureCode, Status};
use nuncio_domain::webhook::DeliveryStatus;
use nuncio_store::{Delivery, DeliveryLog, DeliveryTry, Erasure, NewEvent, Occurrence, RawReceipt, Transition};
use serde_json::{Map, json};

use crate::contacts::inbound;
use crate::harness::{Backend, Harness};
use crate::make::{failure, phone, settle};

const SECRET: &str = "a very private word";

/// Returns the tables with rows that contain the text.
async fn holders(h: &Harness, text: &str) -> Vec<&'static str> {
    let mut found = Vec::new();
    found.extend(log_rows(h).await.iter().filter(|row| row.contains(text)).map(|_| "log"));
    for table in ["messages", "states", "addresses", "contacts", "spool_chunks", "erasures", "suppressions", "contact_channels", "receipts"]
    {
        for row in h.sql(&format!("SELECT * FROM {table}")).await {
            if row.iter().flatten().any(|value| value.contains(text)) {
                found.push(table);
            }
        }
    }
    found
}

/// Returns the entries of each row of the log, as stored but for the compression.
async fn log_rows(h: &Harness) -> Vec<String> {
    let hex = if h.backend == Backend::Sqlite { "HEX(entries)" } else { "ENCODE(entries, 'hex')" };
    let rows = h.sql(&format!("SELECT {hex} FROM log")).await;
    let bytes = rows.into_iter().flatten().flatten().map(|row| hex::decode(row).unwrap());
    bytes.map(|row| String::from_utf8(lz4_flex::decompress_size_prepended(&row).unwrap()).unwrap()).collect()
}

pub(crate) async fn what_is_erased_leaves_no_trace_but_the_books(h: &Harness) {
    let tenant = h.world.tenant;
    let number = phone(1).identifier;
    let with_words = |mut item: nuncio_store::Accept| {
        item.message.request_mut().text = Some(SECRET.to_owned());
        item.message.request_mut().metadata = Some(Map::from_iter([("k".to_owned(), json!(SECRET))]));
        item
    };
    let failed = h.accept(with_words(h.claimed(&phone(1)))).await;
    let mut words = failure(FailureCode::Undeliverable);
    words.message = format!("550 {number} {SECRET}");
    h.step(failed.id, settle(0, failed.state.fence, Outcome::Rejected { failure: words })).await;
    let waiting = h.accept(with_words(h.item(&phone(1)))).await;
    let mut large = with_words(h.item(&phone(1)));
    large.message.request_mut().html_body = Some(SECRET.repeat(30_000));
    let large = h.accept(large).await;
    let other = h.accept(h.item(&phone(2))).await;
    let mut wrote = inbound(h, &phone(1), "p");
    wrote.message.to = "+34600000000".to_owned();
    wrote.message.from = number.clone();
    wrote.message.request_mut().text = Some(SECRET.to_owned());
    let mut tx = h.begin().await;
    assert!(tx.insert_inbound(&wrote).await.unwrap());
    let erasure = Erasure { tenant, address: failed.address, recipient: phone(1) };
    tx.insert_erasure(&erasure, h.tick()).await.unwrap();
    tx.insert_erasure(&erasure, h.tick()).await.unwrap();
    tx.erase_parts(tenant, &phone(1)).await.unwrap();
    let contact = h.id::<nuncio_domain::ContactId>();
    let data = Map::from_iter([("contact".to_owned(), json!({"id": contact, "displayName": SECRET}))]);
    let occurrences = vec![Occurrence { kind: EventType::ContactMerged, sender: None, data }];
    let event = NewEvent { kind: ResourceKind::Contact, resource: contact.uuid(), sequence: 1, occurrences };
    tx.insert_event(tenant, &event, h.tick()).await.unwrap();
    tx.commit().await.unwrap();
    assert!(holders(h, SECRET).await.len() >= 5 && holders(h, &number).await.len() >= 5);
    assert!(holders(h, SECRET).await.contains(&"log"));

    let mut tx = h.read().await;
    assert_eq!(tx.list_erasures(h.tick(), 10).await.unwrap(), std::slice::from_ref(&erasure));
    assert!(tx.list_erasures(crate::harness::START, 10).await.unwrap().is_empty());
    let unfinished = tx.messages_to_erase(&erasure, true, None, 10).await.unwrap();
    assert_eq!(unfinished, [waiting.id.max(large.id), waiting.id.min(large.id)]);
    let found = tx.messages_to_erase(&erasure, false, None, 10).await.unwrap();
    let mut all = [waiting.id, large.id, failed.id, wrote.message.id];
    all.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(found, all, "what was sent and what came, newest first");
    assert_eq!(tx.messages_to_erase(&erasure, false, None, 2).await.unwrap(), found[..2]);
    assert_eq!(tx.messages_to_erase(&erasure, false, Some(found[1]), 10).await.unwrap(), found[2..]);
    let elsewhere = Erasure { tenant: h.other.tenant, ..erasure.clone() };
    assert!(tx.messages_to_erase(&elsewhere, false, None, 10).await.unwrap().is_empty());
    drop(tx);
    let receipt = || {
        let raw =
            RawReceipt { id: h.id(), connection: h.world.connection, reference: "r".to_owned(), raw: format!("to {number}: {SECRET}") };
        let step = Step::Receipt { attempt: Some(0), part: 0, kind: ReceiptKind::Sent, at: h.tick() };
        h.store.transition(Transition { raw: Some(Box::new(raw)), ..h.transition(failed.id, step) })
    };
    receipt().await.unwrap();
    assert!(holders(h, SECRET).await.contains(&"receipts"));
    for id in &found {
        h.step(*id, Step::Erase).await;
    }
    // A later receipt is not kept.
    receipt().await.unwrap();
    let mut tx = h.begin().await;
    tx.erase_messages(tenant, &found).await.unwrap();
    tx.erase_messages(tenant, &[]).await.unwrap();
    tx.erase_events(tenant, ResourceKind::Contact, contact.uuid()).await.unwrap();
    tx.delete_erasure(&elsewhere).await.unwrap();
    assert_eq!(tx.list_erasures(h.tick(), 10).await.unwrap().len(), 1);
    tx.delete_erasure(&erasure).await.unwrap();
    assert!(tx.messages_to_erase(&erasure, false, None, 10).await.unwrap().is_empty());
    tx.commit().await.unwrap();

    assert_eq!(holders(h, SECRET).await, [""; 0]);
    assert_eq!(holders(h, &number).await, ["addresses"], "the address row is the contact's");
    let kept = h.lookup(failed.id).await;
    let attempt = &kept.state.detail.attempts[0];
    assert_eq!((kept.state.status, attempt.error.as_ref().map(|e| e.code)), (Status::Failed, Some(FailureCode::Undeliverable)));
    assert_eq!(kept.to, "");
    for id in [waiting.id, large.id] {
        let kept = h.lookup(id).await;
        assert_eq!((kept.state.status, &kept.request.text), (Status::Cancelled, &None));
        h.events(id).await;
    }
    let kept = h.lookup(wrote.message.id).await;
    assert_eq!((kept.from.as_str(), kept.to.as_str(), kept.state.status), ("", wrote.message.to.as_str(), Status::Received));
    assert_eq!(h.lookup(other.id).await.request, other.request, "others are left alone");
    let told = h.read().await.list_resource_events(tenant, ResourceKind::Contact, contact.uuid()).await.unwrap();
    assert_eq!(told[0].1[0].data, Map::from_iter([("contact".to_owned(), json!({"id": contact}))]));
}

pub(crate) async fn an_attempt_under_way_ends_without_words_and_without_another(h: &Harness) {
    let message = h.sending(1).await;
    let fence = message.state.fence;
    h.step(message.id, Step::Erase).await;
    let mut words = failure(FailureCode::RateLimited);
    words.message = SECRET.to_owned();
    let (_, state) =
        h.step(message.id, settle(0, fence, Outcome::Deferred { retry_after: None, failure: words, scope: Scope::Message })).await;
    assert_eq!(state.status, Status::Cancelled);
    assert!(state.is_final());
    assert_eq!(holders(h, SECRET).await, [""; 0]);
    h.events(message.id).await;
}

pub(crate) async fn what_endpoints_answered_is_forgotten(h: &Harness) {
    let (tenant, contact) = (h.world.tenant, h.id::<nuncio_domain::ContactId>());
    let (message, other) = (h.accept(h.item(&phone(1))).await, h.accept(h.item(&phone(2))).await);
    let about = |kind, resource| {
        let answered = DeliveryTry { at: crate::harness::START, status: Some(500), ms: 7, error: None, body: Some(SECRET.to_owned()) };
        Delivery {
            id: h.id(),
            sender: None,
            event: h.id(),
            event_type: EventType::MessageSent,
            kind,
            resource,
            sequence: 1,
            url: "https://a.example/x".to_owned(),
            status: DeliveryStatus::Dead,
            tries: 2,
            due_at: None,
            attempts: vec![DeliveryTry { body: None, ..answered.clone() }, answered],
            reason: None,
            replays: 0,
            updated_at: crate::harness::START,
        }
    };
    let deliveries =
        [(ResourceKind::Message, message.id.uuid()), (ResourceKind::Contact, contact.uuid()), (ResourceKind::Message, other.id.uuid())]
            .map(|(kind, resource)| about(kind, resource));
    let log = DeliveryLog { tenant, deliveries: deliveries.clone().into(), read: None, fence: 0 };
    h.store.log_deliveries(log).await.unwrap();
    let mut tx = h.begin().await;
    tx.erase_messages(tenant, &[message.id]).await.unwrap();
    tx.erase_events(tenant, ResourceKind::Contact, contact.uuid()).await.unwrap();
    tx.erase_events(h.other.tenant, ResourceKind::Message, other.id.uuid()).await.unwrap();
    for (n, delivery) in deliveries.into_iter().enumerate() {
        let mut expected = delivery.clone();
        if n < 2 {
            expected.attempts[1].body = None;
        }
        assert_eq!(tx.find_delivery(tenant, delivery.id).await.unwrap(), Some(expected), "{n}");
    }
}
