//! Phone numbers.

use nuncio_domain::number::{Capabilities, Capability, InventoryNumber, NumberPricing, NumberStatus, PhoneNumber, Wanted};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Micros, SenderId, Timestamp};

use crate::harness::{Harness, START, in_tx};
use crate::make::DAY;

const ALL: PageRequest = PageRequest::newest(100);

fn entry(phone_number: &str, capabilities: &[Capability]) -> InventoryNumber {
    let pricing =
        NumberPricing { monthly_price: Micros(1_150_000), upfront_cost: Micros(1), monthly_cost: Micros(900_000), is_free: false };
    InventoryNumber {
        phone_number: phone_number.to_owned(),
        country: if phone_number.starts_with("+1") { "US" } else { "ES" }.to_owned(),
        capabilities: capabilities.iter().copied().collect(),
        pricing,
    }
}

fn held(h: &Harness, entry: &InventoryNumber, renews_at: Timestamp) -> PhoneNumber {
    PhoneNumber {
        id: h.id(),
        phone_number: entry.phone_number.clone(),
        capabilities: entry.capabilities,
        pricing: entry.pricing,
        status: NumberStatus::Active,
        name: Some("desk \u{260E}".to_owned()),
        sender: None,
        renews_at,
        updated_at: h.tick(),
    }
}

async fn stock(h: &Harness, entries: &[InventoryNumber]) {
    let mut tx = h.begin().await;
    for entry in entries {
        tx.put_inventory_number(h.world.tenant, entry, START).await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn acquire(h: &Harness, number: &PhoneNumber) -> bool {
    in_tx!(h, |tx| tx.acquire_number(h.world.tenant, number).await.unwrap())
}

pub(crate) async fn the_inventory_is_searched(h: &Harness) {
    use Capability::{Mms, Sms, Voice};
    let entries = [entry("+12025550101", &[Sms]), entry("+12025550199", &[Sms, Voice, Mms]), entry("+34600111222", &[Voice])];
    stock(h, &entries).await;
    let mut tx = h.begin().await;
    let wanted = |country: &str, contains: &str, capabilities: &[Capability]| Wanted {
        country: country.to_owned(),
        contains: contains.to_owned(),
        capabilities: capabilities.iter().copied().collect(),
    };
    let tenant = h.world.tenant;
    for (asked, limit, expected) in [
        (wanted("US", "", &[]), 9, &entries[..2]),
        (wanted("US", "", &[]), 1, &entries[..1]),
        (wanted("US", "5550199", &[]), 9, &entries[1..2]),
        (wanted("US", "", &[Sms, Voice]), 9, &entries[1..2]),
        (wanted("ES", "11", &[Voice]), 9, &entries[2..]),
        (wanted("ES", "", &[Sms]), 9, &[]),
        (wanted("FR", "", &[]), 9, &[]),
    ] {
        assert_eq!(tx.available_numbers(tenant, &asked, limit).await.unwrap(), expected, "{asked:?}");
    }
    assert_eq!(tx.available_numbers(h.other.tenant, &wanted("US", "", &[]), 9).await.unwrap(), []);
    let all: Vec<_> = tx.list_inventory(tenant).await.unwrap();
    assert_eq!(all, entries.clone().map(|entry| (entry, None)));
    assert_eq!(tx.find_inventory_number(tenant, "+34600111222").await.unwrap(), Some((entries[2].clone(), None)));
    assert_eq!(tx.find_inventory_number(h.other.tenant, "+34600111222").await.unwrap(), None);
}

pub(crate) async fn a_number_is_held_until_it_is_released(h: &Harness) {
    let tenant = h.world.tenant;
    let entry = entry("+12025550101", &[Capability::Sms]);
    stock(h, std::slice::from_ref(&entry)).await;
    let number = held(h, &entry, START.plus(DAY));
    assert!(acquire(h, &number).await);
    assert!(!acquire(h, &held(h, &entry, START)).await, "it is held");
    assert!(!acquire(h, &PhoneNumber { phone_number: "+12025550102".to_owned(), ..held(h, &entry, START) }).await, "not in the inventory");
    let mut tx = h.begin().await;
    assert_eq!(tx.find_number(tenant, number.id).await.unwrap(), Some(number.clone()));
    assert_eq!(tx.find_number(h.other.tenant, number.id).await.unwrap(), None);
    assert_eq!(tx.available_numbers(tenant, &Wanted { country: "US".to_owned(), ..Wanted::default() }, 9).await.unwrap(), []);
    // A repeated entry changes features and price, but not the holder.
    let dearer = InventoryNumber {
        capabilities: Capabilities::from_bits(7),
        pricing: NumberPricing { monthly_price: Micros(2), is_free: true, ..entry.pricing },
        ..entry.clone()
    };
    tx.put_inventory_number(tenant, &dearer, number.updated_at).await.unwrap();
    let number = PhoneNumber { capabilities: dearer.capabilities, pricing: dearer.pricing, ..number };
    assert_eq!(tx.lock_number(tenant, number.id).await.unwrap(), Some(number.clone()));
    assert_eq!(tx.list_inventory(tenant).await.unwrap(), [(dearer.clone(), Some(number.id))]);
    let changed = PhoneNumber {
        status: NumberStatus::Suspended,
        name: None,
        sender: Some(h.world.sender),
        renews_at: START.plus(DAY * 2),
        updated_at: h.tick(),
        ..number
    };
    tx.update_number(tenant, &changed).await.unwrap();
    assert_eq!(tx.find_number(tenant, changed.id).await.unwrap(), Some(changed.clone()));
    assert!(!tx.release_number(h.other.tenant, changed.id, START).await.unwrap());
    assert!(tx.release_number(tenant, changed.id, START).await.unwrap());
    assert!(!tx.release_number(tenant, changed.id, START).await.unwrap());
    assert_eq!(tx.find_number(tenant, changed.id).await.unwrap(), None);
    assert_eq!(tx.due_numbers(START.plus(DAY * 9), 9).await.unwrap(), []);
    tx.commit().await.unwrap();
    assert!(acquire(h, &PhoneNumber { sender: None, ..held(h, &dearer, START) }).await, "somebody else may have it now");
}

pub(crate) async fn of_many_who_want_a_number_one_gets_it(h: &Harness) {
    let entry = entry("+12025550101", &[Capability::Sms]);
    stock(h, std::slice::from_ref(&entry)).await;
    let tries = (0..10).map(|_| {
        let (store, number, tenant) = (h.store.clone(), held(h, &entry, START), h.world.tenant);
        tokio::spawn(async move {
            let mut tx = store.begin().await.unwrap();
            let acquired = tx.acquire_number(tenant, &number).await.unwrap();
            tx.commit().await.unwrap();
            acquired
        })
    });
    let mut winners = 0;
    for outcome in tries.collect::<Vec<_>>() {
        winners += i32::from(outcome.await.unwrap());
    }
    assert_eq!(winners, 1);
}

pub(crate) async fn held_numbers_are_listed(h: &Harness) {
    let entries: Vec<_> = (0..5).map(|n| entry(&format!("+1202555010{n}"), &[Capability::Sms])).collect();
    stock(h, &entries).await;
    let mut numbers = Vec::new();
    for (n, entry) in entries.iter().enumerate().take(4) {
        let status = if n == 1 { NumberStatus::Suspended } else { NumberStatus::Active };
        numbers.push(PhoneNumber { status, ..held(h, entry, START.plus(DAY * n as u32)) });
        assert!(acquire(h, &numbers[n]).await);
    }
    let newest_first: Vec<_> = numbers.iter().rev().cloned().collect();
    let mut tx = h.begin().await;
    let tenant = h.world.tenant;
    assert_eq!(tx.list_numbers(tenant, &[], ALL).await.unwrap().items, newest_first);
    let both = [NumberStatus::Suspended, NumberStatus::Pending];
    assert_eq!(tx.list_numbers(tenant, &both, ALL).await.unwrap().items, numbers[1..2]);
    let first = tx.list_numbers(tenant, &[], PageRequest::newest(3)).await.unwrap();
    assert_eq!(first.items, newest_first[..3]);
    let rest = tx.list_numbers(tenant, &[], PageRequest::older(3, first.next)).await.unwrap();
    assert_eq!((rest.items.as_slice(), rest.next), (&newest_first[3..], None));
    assert_eq!(tx.list_numbers(h.other.tenant, &[], ALL).await.unwrap().items, []);

    let due = |numbers: &[PhoneNumber]| numbers.iter().map(|n| (tenant, n.id)).collect::<Vec<_>>();
    assert_eq!(tx.due_numbers(START.plus(DAY), 9).await.unwrap(), due(&numbers[..2]));
    assert_eq!(tx.due_numbers(START.plus(DAY), 1).await.unwrap(), due(&numbers[..1]));

    for number in &numbers[..2] {
        tx.update_number(tenant, &PhoneNumber { sender: Some(h.world.sender), ..number.clone() }).await.unwrap();
    }
    assert_eq!(tx.unassign_numbers(tenant, h.id(), START).await.unwrap(), 0);
    assert_eq!(tx.unassign_numbers(h.other.tenant, h.world.sender, START).await.unwrap(), 0);
    assert_eq!(tx.unassign_numbers(tenant, h.world.sender, START).await.unwrap(), 2);
    assert!(tx.list_numbers(tenant, &[], ALL).await.unwrap().items.iter().all(|n| n.sender.is_none()));
}

pub(crate) async fn a_sender_changes_its_number_only_from_the_one_it_had(h: &Harness) {
    let (tenant, sender): (_, SenderId) = (h.world.tenant, h.world.sender);
    let mut tx = h.begin().await;
    let had = tx.load_tenant(tenant).await.unwrap().unwrap();
    let phone = had.sender(sender).unwrap().phone_number.clone();
    let at = START.plus(DAY);
    assert!(!tx.swap_sender_phone(tenant, sender, "", "+12025550101", at).await.unwrap());
    assert!(!tx.swap_sender_phone(h.other.tenant, sender, &phone, "", at).await.unwrap());
    assert_eq!(tx.load_tenant(tenant).await.unwrap().unwrap(), had);
    assert!(tx.swap_sender_phone(tenant, sender, &phone, "", at).await.unwrap());
    let has = tx.load_tenant(tenant).await.unwrap().unwrap();
    assert!(has.epoch > had.epoch);
    let now = has.sender(sender).unwrap();
    assert_eq!((now.phone_number.as_str(), now.updated_at), ("", at));
}
