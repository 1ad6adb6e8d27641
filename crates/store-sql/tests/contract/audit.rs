//! The audit log.

use nuncio_domain::AuditEntryId;
use nuncio_domain::audit::{Actor, ActorKind, Entry, Filter};
use nuncio_domain::id::Id as _;
use nuncio_domain::page::PageRequest;
use serde_json::json;

use crate::harness::Harness;

const ALL: PageRequest = PageRequest::newest(100);

fn entry(h: &Harness, actor: &str, kind: &str, resource: &str) -> Entry {
    Entry {
        id: h.id_at(h.tick()),
        tenant: h.world.tenant,
        actor: Actor { kind: ActorKind::Person, name: actor.to_owned(), label: String::new() },
        from: "192.0.2.1".to_owned(),
        kind: kind.to_owned(),
        verb: "update".to_owned(),
        resource: resource.to_owned(),
        before: Some(json!({"name": "a", "list": [1, null]})),
        after: None,
    }
}

pub(crate) async fn what_was_changed_is_listed(h: &Harness) {
    let key = Actor { kind: ActorKind::ApiKey, name: "key_1".to_owned(), label: "shop".to_owned() };
    let entries = [
        entry(h, "ada@example.net", "sender", "snd_1"),
        Entry { actor: key, before: None, after: Some(json!({"x": 1})), ..entry(h, "", "sender", "snd_2") },
        entry(h, "ada@example.net", "template", "tpl_1"),
        entry(h, "bo@example.net", "sender", "snd_1"),
    ];
    let mut tx = h.begin().await;
    for one in &entries {
        tx.insert_audit_entry(one).await.unwrap();
    }
    tx.commit().await.unwrap();
    let mut dropped = h.begin().await;
    dropped.insert_audit_entry(&entry(h, "ada@example.net", "sender", "snd_9")).await.unwrap();
    drop(dropped); // rolled back with the change

    let mut tx = h.read().await;
    let mut listed = async |actor: Option<&str>, resource: Option<&str>, kind: Option<&str>, page| {
        let filter = Filter { actor: actor.map(str::to_owned), resource: resource.map(str::to_owned), kind: kind.map(str::to_owned) };
        let page = tx.list_audit_entries(h.world.tenant, &filter, page).await.unwrap();
        let place = |one: &Entry| entries.iter().position(|other| other == one).expect("as it was written");
        (page.items.iter().map(place).collect::<Vec<_>>(), page.next)
    };
    let (ada, one) = (Some("ada@example.net"), Some("snd_1"));
    assert_eq!(listed(None, None, None, ALL).await, (vec![3, 2, 1, 0], None));
    assert_eq!(listed(ada, None, None, ALL).await.0, [2, 0]);
    assert_eq!(listed(None, one, None, ALL).await.0, [3, 0]);
    assert_eq!(listed(ada, one, None, ALL).await.0, [0]);
    assert_eq!(listed(None, None, Some("sender"), ALL).await.0, [3, 1, 0]);
    assert_eq!(listed(Some("key_1"), None, Some("template"), ALL).await.0, Vec::<usize>::new());
    let (first, next) = listed(None, None, None, PageRequest::newest(3)).await;
    assert_eq!((first, next), (vec![3, 2, 1], Some(entries[1].id.uuid())));
    assert_eq!(listed(None, None, None, PageRequest::older(3, next)).await, (vec![0], None));
    let since = ALL.within(Some(entries[2].id.created_at()), None);
    assert_eq!(listed(None, None, None, since).await.0, [3, 2]);
    let nobody = tx.list_audit_entries(h.other.tenant, &Filter::default(), ALL).await.unwrap();
    assert!(nobody.items.is_empty());
    assert!(h.id::<AuditEntryId>().to_string().starts_with("aud_"));
}
