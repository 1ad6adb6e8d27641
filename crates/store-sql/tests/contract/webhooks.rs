//! Webhooks.

use nuncio_domain::Redacted;
use nuncio_domain::event::EventType;
use nuncio_domain::webhook::Webhook;

use crate::harness::{Harness, START};

pub(crate) async fn a_webhook_comes_back_as_it_was(h: &Harness) {
    let tenant = h.world.tenant;
    let of = |sender, url: &str| Webhook {
        sender,
        url: url.to_owned(),
        events: vec![EventType::MessageSent, EventType::ContactMerged],
        active: true,
        sealed: Redacted::new(vec![1, 2]),
        previous_until: None,
        failing_since: None,
        disabled_reason: None,
        updated_at: START,
    };
    let sender = Some(h.world.sender);
    let (own, world) = (of(sender, "https://a.example/x"), of(None, "https://b.example/y"));
    let mut tx = h.store.begin().await.unwrap();
    tx.put_webhook(tenant, &own).await.unwrap();
    tx.put_webhook(tenant, &world).await.unwrap();
    assert_eq!(tx.list_webhooks(tenant).await.unwrap(), [world.clone(), own.clone()]);
    let changed = Webhook {
        events: Vec::new(),
        active: false,
        previous_until: Some(START),
        failing_since: Some(START),
        disabled_reason: Some("gone".to_owned()),
        ..own
    };
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
