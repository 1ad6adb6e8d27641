//! Contacts as callers see and change them, in the database.

use std::collections::{BTreeSet, HashMap};

use futures::future::join_all;
use nuncio_domain::contact::{ChannelEntry, Contact, ContactDetail};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressId, AddressKind, Channel, ContactChannelId, ContactId, Recipient};
use nuncio_store::{Address, ContactFilter, MetricDelta, Tx};
use serde_json::json;

use crate::harness::Harness;
use crate::make::{new, phone};

fn person(h: &Harness, name: Option<&str>) -> Contact {
    let now = h.tick();
    let detail = ContactDetail { display_name: name.map(str::to_owned), ..ContactDetail::default() };
    Contact { id: h.id_at(now), country: "ES".to_owned(), version: 0, created_at: now, updated_at: now, detail }
}

async fn written(h: &Harness, name: Option<&str>, recipients: &[Recipient]) -> (Contact, Vec<AddressId>) {
    let contact = person(h, name);
    let mut tx = h.begin().await;
    tx.insert_contact(h.world.tenant, &contact).await.unwrap();
    let mut ids = Vec::new();
    for recipient in recipients {
        let address = Address::new(h.id(), contact.id, recipient.clone(), contact.created_at);
        assert!(tx.insert_address(h.world.tenant, &address).await.unwrap());
        ids.push(address.id);
    }
    tx.commit().await.unwrap();
    (contact, ids)
}

fn email(text: &str) -> Recipient {
    Recipient { kind: AddressKind::Email, identifier: text.to_owned() }
}

async fn addresses(tx: &mut dyn Tx, h: &Harness, id: ContactId) -> Vec<Address> {
    tx.addresses_of_contacts(h.world.tenant, &[id]).await.unwrap()
}

pub(crate) async fn a_contact_comes_back_as_it_was(h: &Harness) {
    let tenant = h.world.tenant;
    let mut contact = person(h, Some("Ada \u{1F469}"));
    contact.detail.metadata = json!({"k": [1, {"n": null}]}).as_object().unwrap().clone();
    contact.detail.profile_name = Some("ada".to_owned());
    contact.detail.default_channel = Some(Channel::Telegram);
    contact.detail.dismissed = vec![h.id()];
    let address = Address::new(h.id(), contact.id, phone(1), contact.created_at);
    contact.detail.primaries.insert(Channel::Sms, ContactChannelId::of(address.id, Channel::Sms));
    let entry = ChannelEntry {
        verified: Some(false),
        label: Some("work".to_owned()),
        country: Some("PT".to_owned()),
        metadata: Some(json!({"a": 1}).as_object().unwrap().clone()),
        ..ChannelEntry::new(Channel::Whatsapp, h.tick())
    };
    let mut tx = h.begin().await;
    tx.insert_contact(tenant, &contact).await.unwrap();
    assert!(tx.insert_address(tenant, &address).await.unwrap());
    let again = Address::new(h.id(), contact.id, phone(1), contact.created_at);
    assert!(!tx.insert_address(tenant, &again).await.unwrap(), "an identifier has one address");
    tx.put_channel_entry(tenant, address.id, &ChannelEntry::new(Channel::Whatsapp, h.tick())).await.unwrap();
    tx.put_channel_entry(tenant, address.id, &entry).await.unwrap();
    tx.commit().await.unwrap();

    let mut tx = h.read().await;
    assert_eq!(tx.find_contact(tenant, contact.id).await.unwrap(), Some(contact.clone()));
    assert_eq!(tx.find_contact(h.other.tenant, contact.id).await.unwrap(), None);
    let found = addresses(&mut *tx, h, contact.id).await;
    assert_eq!(found, [Address { entries: vec![entry], ..address.clone() }]);
    assert!(tx.addresses_of_contacts(h.other.tenant, &[contact.id]).await.unwrap().is_empty());
    assert!(tx.addresses_of_contacts(tenant, &[]).await.unwrap().is_empty());
    drop(tx);

    contact.detail = ContactDetail::default();
    (contact.version, contact.updated_at, contact.country) = (7, h.tick(), String::new());
    let mut tx = h.begin().await;
    assert!(tx.update_contact(tenant, &contact).await.unwrap());
    assert!(!tx.update_contact(h.other.tenant, &contact).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.find_contact(tenant, contact.id).await.unwrap(), Some(contact.clone()));

    let mut tx = h.begin().await;
    assert!(!tx.delete_contact(h.other.tenant, contact.id).await.unwrap());
    assert!(tx.delete_contact(tenant, contact.id).await.unwrap());
    assert!(!tx.delete_contact(tenant, contact.id).await.unwrap());
    tx.commit().await.unwrap();
    for table in ["contacts", "addresses", "contact_channels"] {
        assert_eq!(h.rows_of(table).await, 0, "{table}");
    }
}

pub(crate) async fn a_recipient_is_a_contact_with_the_channel_that_was_used(h: &Harness) {
    let tenant = h.world.tenant;
    let (message, contact) = new(h.store.accept(h.item(&phone(1))).await);
    let mut tx = h.read().await;
    let found = addresses(&mut *tx, h, contact).await;
    assert_eq!((found.len(), found[0].newest, found[0].id), (1, Some(Channel::Sms), message.address));
    let made = tx.find_contact(tenant, contact).await.unwrap().unwrap();
    assert_eq!((made.version, made.detail, made.country.as_str()), (0, ContactDetail::default(), "ES"));
    drop(tx);
    let delta = MetricDelta { successes: 1, ..MetricDelta::default() };
    h.store.add_metrics(vec![(tenant, message.address, Channel::Voice, delta)]).await.unwrap();
    let found = addresses(&mut *h.read().await, h, contact).await;
    assert_eq!((found[0].newest, found[0].metrics[0].channel, found[0].metrics[0].sums), (None, Channel::Voice, delta));
}

pub(crate) async fn contacts_are_walked_newest_first(h: &Harness) {
    let mut expected = Vec::new();
    for _ in 0..7 {
        expected.insert(0, written(h, None, &[]).await.0.id);
    }
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = h.read().await.list_contacts(h.world.tenant, &ContactFilter::default(), PageRequest::older(3, before)).await.unwrap();
        seen.extend(page.items.iter().map(|c| c.id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert_eq!(seen, expected);
    let all = PageRequest::newest(10);
    assert!(h.read().await.list_contacts(h.other.tenant, &ContactFilter::default(), all).await.unwrap().items.is_empty());
}

pub(crate) async fn contacts_of_one_name_are_found(h: &Harness) {
    let tenant = h.world.tenant;
    let first = written(h, Some("Ada  Lovelace"), &[]).await.0;
    let second = written(h, Some(" ada lovelace"), &[]).await.0;
    let third = written(h, Some("Ada"), &[]).await.0;
    written(h, None, &[]).await;
    let mut tx = h.read().await;
    let keys: BTreeSet<String> = ["ada lovelace", "ada", "nemo"].map(str::to_owned).into();
    let both = ("ada lovelace".to_owned(), vec![first.id, second.id]);
    let third = ("ada".to_owned(), vec![third.id]);
    assert_eq!(tx.contacts_named(tenant, &keys, 10).await.unwrap(), HashMap::from([both, third.clone()]));
    let oldest = ("ada lovelace".to_owned(), vec![first.id]);
    assert_eq!(tx.contacts_named(tenant, &keys, 1).await.unwrap(), HashMap::from([oldest, third]));
    assert!(tx.contacts_named(h.other.tenant, &keys, 10).await.unwrap().is_empty());
    assert!(tx.contacts_named(tenant, &BTreeSet::new(), 10).await.unwrap().is_empty());
}

pub(crate) async fn contacts_of_identifiers_are_found(h: &Harness) {
    let tenant = h.world.tenant;
    let ada = written(h, None, &[email("ada@a.test"), email("ada@b.test"), phone(1)]).await.0;
    let eve = written(h, None, &[email("eve@a.test")]).await.0;
    let asked: BTreeSet<String> = ["ada@a.test", "ada@b.test", "eve@a.test", "nemo@a.test", &phone(1).identifier].map(str::to_owned).into();
    let mut tx = h.read().await;
    let found = tx.contacts_by_identifier(tenant, AddressKind::Email, &asked).await.unwrap();
    let expected = [("ada@a.test", ada.id), ("ada@b.test", ada.id), ("eve@a.test", eve.id)];
    assert_eq!(found, HashMap::from(expected.map(|(identifier, id)| (identifier.to_owned(), id))));
    let found = tx.contacts_by_identifier(tenant, AddressKind::Phone, &asked).await.unwrap();
    assert_eq!(found, HashMap::from([(phone(1).identifier, ada.id)]));
    assert!(tx.contacts_by_identifier(h.other.tenant, AddressKind::Email, &asked).await.unwrap().is_empty());
    assert!(tx.contacts_by_identifier(tenant, AddressKind::Email, &BTreeSet::new()).await.unwrap().is_empty());
}

pub(crate) async fn an_address_goes_with_its_entries(h: &Harness) {
    let tenant = h.world.tenant;
    let (contact, ids) = written(h, None, &[phone(1), email("a@example.org")]).await;
    let delta = MetricDelta { failures: 1, ..MetricDelta::default() };
    h.store.add_metrics(ids.iter().map(|id| (tenant, *id, Channel::Sms, delta)).collect()).await.unwrap();
    h.accept(h.item(&phone(1))).await;
    let mut tx = h.begin().await;
    for id in &ids {
        tx.put_channel_entry(tenant, *id, &ChannelEntry::new(Channel::Sms, h.tick())).await.unwrap();
    }
    assert!(!tx.remove_address(h.other.tenant, ids[0]).await.unwrap());
    assert!(tx.remove_address(tenant, ids[0]).await.unwrap());
    assert!(!tx.remove_address(tenant, ids[0]).await.unwrap());
    tx.delete_metrics(h.other.tenant, ids[1]).await.unwrap();
    tx.delete_metrics(tenant, ids[0]).await.unwrap();
    tx.commit().await.unwrap();
    let left = addresses(&mut *h.read().await, h, contact.id).await;
    assert_eq!(left.iter().map(|a| (a.id, a.entries.len(), a.metrics.len())).collect::<Vec<_>>(), [(ids[1], 1, 1)]);
    assert_eq!((h.rows_of("contact_channels").await, h.rows_of("channel_metrics").await), (1, 1));
    // It stays known of whom it was, also after a merge.
    let (other, _) = written(h, None, &[phone(2)]).await;
    assert!(merge(h, contact.id, other.id).await);
    let mut tx = h.begin().await;
    assert_eq!(tx.removed_addresses(tenant, other.id).await.unwrap(), [(ids[0], phone(1))]);
    assert!(tx.removed_addresses(tenant, contact.id).await.unwrap().is_empty());
    assert!(tx.delete_contact(tenant, other.id).await.unwrap());
    assert!(tx.removed_addresses(tenant, other.id).await.unwrap().is_empty());
}

async fn merge(h: &Harness, source: ContactId, target: ContactId) -> bool {
    let mut tx = h.begin().await;
    let locked = tx.lock_contacts(h.world.tenant, &[target, source]).await.unwrap();
    let both = locked.len() == 2;
    if both {
        tx.merge_contact(h.world.tenant, source, target, h.tick()).await.unwrap();
    }
    tx.commit().await.unwrap();
    both
}

pub(crate) async fn a_merge_moves_everything(h: &Harness) {
    let tenant = h.world.tenant;
    let (a, of_a) = written(h, None, &[phone(1)]).await;
    let (b, of_b) = written(h, None, &[phone(2), email("b@example.org")]).await;
    let (c, of_c) = written(h, None, &[phone(3)]).await;
    let mut tx = h.begin().await;
    let locked = tx.lock_contacts(tenant, &[b.id, a.id, h.id()]).await.unwrap();
    assert_eq!(locked.iter().map(|l| l.id).collect::<Vec<_>>(), [a.id, b.id], "those that are there, in order");
    assert_eq!(tx.lookup_contacts(tenant, &[b.id, a.id, h.id()]).await.unwrap(), locked);
    assert!(tx.lookup_contacts(h.other.tenant, &[b.id]).await.unwrap().is_empty());
    tx.merge_contact(tenant, a.id, b.id, h.tick()).await.unwrap();
    assert!(tx.lock_contacts(h.other.tenant, &[b.id]).await.unwrap().is_empty());
    assert!(tx.lock_contacts(tenant, &[]).await.unwrap().is_empty());
    tx.commit().await.unwrap();
    assert!(merge(h, b.id, c.id).await);
    let mut tx = h.read().await;
    let moved: Vec<_> = addresses(&mut *tx, h, c.id).await.iter().map(|a| a.id).collect();
    assert_eq!(moved, [of_a, of_b, of_c].concat());
    assert_eq!(tx.merged_into(tenant, a.id).await.unwrap(), Some(c.id), "what was merged into the source goes along");
    assert_eq!(tx.merged_into(tenant, b.id).await.unwrap(), Some(c.id));
    assert_eq!(tx.merged_into(tenant, c.id).await.unwrap(), None);
    assert_eq!(tx.merged_from(tenant, c.id).await.unwrap(), [a.id, b.id]);
    assert_eq!(tx.merged_from(tenant, b.id).await.unwrap(), []);
    assert_eq!(tx.merged_from(h.other.tenant, c.id).await.unwrap(), []);
    assert_eq!(tx.merged_into(h.other.tenant, a.id).await.unwrap(), None);
    let all = tx.list_contacts(tenant, &ContactFilter::default(), PageRequest::newest(10)).await.unwrap();
    assert_eq!(all.items.iter().map(|c| c.id).collect::<Vec<_>>(), [c.id]);
    drop(tx);
    let mut tx = h.begin().await;
    assert!(tx.delete_contact(tenant, c.id).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!((h.rows_of("merged_contacts").await, h.rows_of("addresses").await), (0, 0));
}

/// Merges every contact into every other concurrently: one remains with all addresses, without a deadlock.
pub(crate) async fn merges_in_all_directions_end_in_one_contact(h: &Harness) {
    let mut ids = Vec::new();
    for n in 0..6 {
        ids.push(written(h, None, &[phone(n)]).await.0.id);
    }
    let pairs: Vec<_> = ids.iter().flat_map(|a| ids.iter().filter(move |b| *b != a).map(move |b| (*a, *b))).collect();
    let sends = (0..12).map(|n| h.store.accept(h.item(&phone(n))));
    let (merged, sent) = futures::future::join(join_all(pairs.iter().map(|(a, b)| merge(h, *a, *b))), join_all(sends)).await;
    assert_eq!(merged.into_iter().filter(|done| *done).count(), 5);
    sent.into_iter().for_each(|answer| drop(new(answer)));
    let count = async |sql: &str| h.number(sql).await;
    assert_eq!(count("SELECT COUNT(DISTINCT contact_id) FROM addresses WHERE identifier < '+34600000006'").await, 1);
    assert_eq!(h.rows_of("addresses").await, 12);
    assert_eq!(count("SELECT COUNT(*) FROM addresses a WHERE NOT EXISTS (SELECT 1 FROM contacts c WHERE c.id = a.contact_id)").await, 0);
}
