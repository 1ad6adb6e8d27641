//! Reading messages: lists, pages, queues.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::future::join_all;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{ReceiptKind, Step};
use nuncio_domain::message::{Direction, HeldReason, Message, Status, Wait};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Channel, MessageId, Timestamp, limits};
use nuncio_store::{ContactFilter, DueMessage, MessageFilter, Skip, Transition};
use serde_json::{Map, Value, json};

use crate::contacts::inbound;
use crate::harness::{Backend, Harness, NODE, World, in_tx};
use crate::make::{phone, receipt, settle, start, taken, with_key};

async fn list_in(h: &Harness, world: &World, filter: &MessageFilter) -> Vec<MessageId> {
    let page = PageRequest::newest(100);
    let listed = h.read().await.list_messages(world.tenant, filter, page).await.unwrap();
    assert_eq!(listed.next, None);
    listed.items.iter().map(|m| m.id).collect()
}

async fn list(h: &Harness, filter: MessageFilter) -> Vec<MessageId> {
    list_in(h, &h.world, &filter).await
}

pub(crate) async fn every_filter_filters(h: &Harness) {
    let mut voice = with_key(h.item(&phone(2)), "the key", 1);
    voice.message.state.route.channel = Channel::Voice;
    voice.message.request_mut().text = Some("Your \"PARCEL\" is 100%_ \\ é".to_owned());
    let voice = h.accept(voice).await.id;
    let sending = h.sending(1).await.id;
    let sent = h.sent(2).await.id;
    let incoming = inbound(h, &phone(1), "in-1");
    let mut tx = h.begin().await;
    assert!(tx.insert_inbound(&incoming).await.unwrap());
    tx.commit().await.unwrap();
    let incoming = incoming.message.id;
    let last = h.accept(h.item(&phone(3))).await.id;
    h.accept(h.item_in(&h.other, &phone(1))).await;

    assert_eq!(list(h, MessageFilter::default()).await, [last, incoming, sent, sending, voice], "newest first");
    let status = |status: &[Status]| MessageFilter { status: status.to_vec(), ..MessageFilter::default() };
    assert_eq!(list(h, status(&[Status::Sent])).await, [sent]);
    assert_eq!(list(h, status(&[Status::Queued, Status::Received])).await, [last, incoming, voice]);
    assert!(list(h, status(&[Status::Read])).await.is_empty());
    let channel = |channel: &[Channel]| MessageFilter { channel: channel.to_vec(), ..MessageFilter::default() };
    assert_eq!(list(h, channel(&[Channel::Voice])).await, [voice]);
    assert_eq!(list(h, channel(&[Channel::Voice, Channel::Sms])).await.len(), 5);
    h.step(last, Step::Hold { reason: HeldReason::PastDue }).await;
    let held = |held: &[HeldReason]| MessageFilter { held: held.to_vec(), ..MessageFilter::default() };
    assert_eq!(list(h, held(HeldReason::ALL)).await, [last]);
    assert!(list(h, held(&[HeldReason::UnknownOutcome])).await.is_empty());
    assert_eq!(
        list(h, MessageFilter { to: Some(phone(3).identifier), status: vec![Status::Queued], ..held(HeldReason::ALL) }).await,
        [last]
    );
    assert!(list(h, MessageFilter { to: Some(phone(1).identifier), ..held(HeldReason::ALL) }).await.is_empty());
    assert!(list_in(h, &h.other, &held(HeldReason::ALL)).await.is_empty());
    let to = |number| MessageFilter { to: Some(phone(number).identifier), ..MessageFilter::default() };
    assert_eq!(list(h, to(2)).await, [sent, voice]);
    let direction = |direction| MessageFilter { direction: Some(direction), ..MessageFilter::default() };
    assert_eq!(list(h, direction(Direction::Inbound)).await, [incoming]);
    let born = MessageId::created_at;
    let span = async |since: Option<Timestamp>, until: Option<Timestamp>, before: Option<MessageId>| {
        let page = PageRequest::older(100, before.map(|id| id.uuid())).within(since, until);
        let listed = h.read().await.list_messages(h.world.tenant, &MessageFilter::default(), page).await.unwrap();
        listed.items.iter().map(|m| m.id).collect::<Vec<_>>()
    };
    assert_eq!(span(Some(born(sending)), Some(born(incoming)), None).await, [sent, sending], "from, but not to");
    assert_eq!(span(Some(born(sending)), Some(born(incoming)), Some(sent)).await, [sending], "goes on from a place");
    assert_eq!(span(Some(born(last)), None, None).await, [last]);
    assert_eq!(span(None, Some(born(sending)), None).await, [voice]);
    let text = |part: &str| MessageFilter { text: Some(part.to_owned()), ..MessageFilter::default() };
    for part in ["your \"parcel\"", "100%_", "\\ é", "É"] {
        assert_eq!(list(h, text(part)).await, [voice; 1][..usize::from(part != "É")], "{part}");
    }
    assert!(list(h, text("1%_")).await.is_empty(), "signs of LIKE stand for themselves");
    let from = |from: &str| MessageFilter { from: Some(from.to_owned()), ..MessageFilter::default() };
    assert_eq!(list(h, from("+34600000000")).await.len(), 5, "what the make module sends from");
    assert!(list(h, from("+34600000001")).await.is_empty());
    let sender = |sender| MessageFilter { sender: Some(sender), ..MessageFilter::default() };
    assert_eq!(list(h, sender(h.world.sender)).await.len(), 5);
    assert!(list(h, sender(h.other.sender)).await.is_empty());
    let of = async |number| h.read().await.find_address(h.world.tenant, &phone(number)).await.unwrap().unwrap().1;
    let contact = |contact| MessageFilter { contact: Some(contact), ..MessageFilter::default() };
    assert_eq!(list(h, contact(of(1).await)).await, [incoming, sending], "what was sent and what came");
    assert_eq!(list(h, MessageFilter { direction: Some(Direction::Inbound), ..contact(of(1).await) }).await, [incoming]);
    assert_eq!(list(h, MessageFilter { to: Some(phone(2).identifier), ..contact(of(2).await) }).await, [sent, voice]);
    assert!(list(h, MessageFilter { to: Some(phone(1).identifier), ..contact(of(2).await) }).await.is_empty());
    assert_eq!(list(h, MessageFilter { idempotency_key: Some("the key".to_owned()), ..contact(of(2).await) }).await, [voice]);
    assert!(list(h, MessageFilter { idempotency_key: Some("the key".to_owned()), ..contact(of(1).await) }).await.is_empty());
    assert!(list(h, contact(h.id())).await.is_empty());
    assert!(list_in(h, &h.other, &contact(of(1).await)).await.is_empty());
    let key = |key: &str| MessageFilter { idempotency_key: Some(key.to_owned()), ..MessageFilter::default() };
    assert_eq!(list(h, key("the key")).await, [voice]);
    assert!(list(h, key("the Key")).await.is_empty());

    let all = MessageFilter {
        status: vec![Status::Sent, Status::Queued],
        channel: vec![Channel::Sms],
        direction: Some(Direction::Outbound),
        sender: Some(h.world.sender),
        ..to(2)
    };
    assert_eq!(list(h, all.clone()).await, [sent]);
    assert!(list(h, MessageFilter { idempotency_key: Some("the key".to_owned()), ..all }).await.is_empty());
    assert!(list_in(h, &h.other, &key("the key")).await.is_empty());
}

pub(crate) async fn metadata_is_compared_as_text(h: &Harness) {
    let odd_keys = ["a.b", "with \"quotes\"", "back\\slash", "ключ \u{1F511}", "", "$", "[0]", "a'b", "#-1"];
    let mut metadata = Map::new();
    for (n, key) in odd_keys.iter().enumerate() {
        metadata.insert((*key).to_owned(), n.into());
    }
    for (key, value) in [
        ("text", json!("tea \u{1F375} \"\\\n")),
        ("digits", json!("7")),
        ("number", json!(7)),
        ("minus", json!(-0.5)),
        ("big", json!(i64::MAX)),
        ("yes", json!(true)),
        ("nothing", json!(null)),
        ("deep", json!({"text": "in"})),
    ] {
        metadata.insert(key.to_owned(), value);
    }
    let mut item = h.item(&phone(1));
    item.message.request_mut().metadata = Some(metadata);
    let id = h.accept(item).await.id;
    let mut plain = h.item(&phone(1));
    plain.message.request_mut().metadata = Some([("text".to_owned(), "other".into())].into_iter().collect());
    let plain = h.accept(plain).await.id;
    h.accept(h.item(&phone(1))).await;

    let with = async |entries: &[(&str, Value)]| {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let metadata: BTreeMap<_, _> = entries.iter().map(|(key, value)| ((*key).to_owned(), text(value))).collect();
        list(h, MessageFilter { metadata, ..MessageFilter::default() }).await
    };
    for (n, key) in odd_keys.iter().enumerate() {
        assert_eq!(with(&[(key, n.to_string().into())]).await, [id], "{key}");
        assert!(with(&[(key, "99".into())]).await.is_empty(), "{key}");
    }
    for (key, text) in [
        ("text", "tea \u{1F375} \"\\\n"),
        ("digits", "7"),
        ("number", "7"),
        ("minus", "-0.5"),
        ("big", "9223372036854775807"),
        ("yes", "true"),
    ] {
        assert_eq!(with(&[(key, text.into())]).await, [id], "{key}");
        assert!(with(&[(key, format!("{text} ").into())]).await.is_empty(), "{key}");
    }
    assert_eq!(with(&[("number", json!(7)), ("yes", json!(true)), ("digits", json!("7"))]).await, [id], "all of them");
    assert!(with(&[("number", json!(7)), ("yes", json!(false))]).await.is_empty());
    assert_eq!(with(&[("text", "other".into())]).await, [plain]);
    for (key, text) in [("deep", "in"), ("absent", "null"), ("absent", ""), ("yes", "\"true\"")] {
        assert!(with(&[(key, text.into())]).await.is_empty(), "{key} {text}");
    }
}

pub(crate) async fn a_walk_over_pages_sees_every_row_once(h: &Harness) {
    let old = join_all((0..60).map(|n| h.accept(h.item(&phone(n % 3))))).await;
    let old: BTreeSet<_> = old.iter().map(|m| m.id).collect();
    let (mut before, mut seen) = (None, Vec::new());
    loop {
        let page = PageRequest::older(7, before);
        let write = join_all((0..5).map(|n| h.accept(h.item(&phone(n)))));
        let read = async { h.read().await.list_messages(h.world.tenant, &MessageFilter::default(), page).await.unwrap() };
        let (_, page) = futures::future::join(write, read).await;
        assert!(page.items.len() == 7 || page.next.is_none());
        assert_eq!(page.next, page.next.and(page.items.last().map(|m| m.id.uuid())), "continues after the last");
        seen.extend(page.items.iter().map(|m| m.id));
        before = page.next;
        if before.is_none() {
            break;
        }
    }
    assert!(seen.is_sorted_by(|a, b| a > b), "newest first, each once");
    assert!(old.iter().all(|id| seen.contains(id)));
    // A page that is exactly full is the last one.
    let page = PageRequest::newest(20);
    let until = old.iter().nth(20).map(|id| id.created_at());
    let full = h.read().await.list_messages(h.world.tenant, &MessageFilter::default(), page.within(None, until)).await.unwrap();
    assert_eq!((full.items.len(), full.next), (20, None));
}

/// Returns all pages of a list.
async fn walk(h: &Harness, filter: &MessageFilter, limit: u32) -> Vec<Vec<MessageId>> {
    let (mut pages, mut before) = (Vec::new(), None);
    loop {
        let page = PageRequest::older(limit, before);
        let found = h.read().await.list_messages(h.world.tenant, filter, page).await.unwrap();
        pages.push(found.items.iter().map(|m| m.id).collect());
        before = found.next;
        if before.is_none() {
            return pages;
        }
    }
}

pub(crate) async fn a_filter_without_an_index_looks_at_so_many_rows(h: &Harness) {
    h.leaves_broken_rows();
    let rows = limits::SCAN_ROWS;
    let mut item = h.item(&phone(1));
    item.message.request_mut().metadata = Some([("wanted".to_owned(), "yes".into())].into_iter().collect());
    item.message.state.route.channel = Channel::Voice;
    let wanted = h.accept(item).await.id;
    let other = h.sent(1).await.id;
    h.step(other, crate::make::receipt(nuncio_domain::lifecycle::ReceiptKind::Delivered, h.tick())).await;
    let now = h.tick();
    for table in ["messages", "states"] {
        h.copy_row(table, other, now, 2 * rows, &[]).await;
    }
    let metadata = BTreeMap::from([("wanted".to_owned(), "yes".to_owned())]);
    let contact = h.read().await.find_address(h.world.tenant, &phone(1)).await.unwrap().map(|(_, contact)| contact);
    for (filter, streams) in [
        (MessageFilter { metadata, ..MessageFilter::default() }, 1),
        (MessageFilter { channel: vec![Channel::Voice], ..MessageFilter::default() }, 1),
        (MessageFilter { status: vec![Status::Queued], to: Some(phone(1).identifier), ..MessageFilter::default() }, 2),
        (MessageFilter { status: vec![Status::Queued], contact, ..MessageFilter::default() }, 1),
    ] {
        let pages = walk(h, &filter, 5).await;
        let mut expected = vec![Vec::new(); 2 * streams];
        expected.push(vec![wanted]);
        assert_eq!(pages, expected, "{filter:?}: empty pages before the one that has it");
    }
    let page = PageRequest::newest(5).within(None, Some(wanted.created_at().plus(Duration::from_millis(1))));
    let filter = MessageFilter { channel: vec![Channel::Voice], ..MessageFilter::default() };
    let found = h.read().await.list_messages(h.world.tenant, &filter, page).await.unwrap();
    assert_eq!((found.items.len(), found.next), (1, None), "a span of time is not looked through from its end");
    let sent = MessageFilter { channel: vec![Channel::Sms], ..MessageFilter::default() };
    let found = h.read().await.list_messages(h.world.tenant, &sent, PageRequest::newest(7)).await.unwrap();
    assert_eq!(
        (found.items.len(), found.next),
        (7, found.items.last().map(|m| m.id.uuid())),
        "a page that is full goes on behind its last"
    );
}

pub(crate) async fn every_list_with_such_a_filter_goes_on(h: &Harness) {
    let rows = limits::SCAN_ROWS + 5;
    let tenant = h.world.tenant;
    let contact = h.accept(h.item(&phone(1))).await;
    let contact = h.read().await.contacts_of_messages(&[contact]).await.unwrap()[0].unwrap();
    let mut tx = h.begin().await;
    let mut person = tx.find_contact(tenant, contact).await.unwrap().unwrap();
    person.detail.display_name = Some("Ada 100% Lovelace".to_owned());
    person.detail.metadata = json!({"vip": true, "n": 7}).as_object().cloned().unwrap();
    tx.update_contact(tenant, &person).await.unwrap();
    tx.commit().await.unwrap();
    let other = [("name_key", "'somebody else'"), ("detail", "'{\"m\":{\"vip\":false}}'")];
    h.copy_row("contacts", contact, h.tick(), rows, &other).await;
    let name = |name: &str| ContactFilter { name: Some(name.to_owned()), ..ContactFilter::default() };
    let metadata = BTreeMap::from([("vip".to_owned(), "true".to_owned()), ("n".to_owned(), "7".to_owned())]);
    for filter in [name("100% love"), ContactFilter { metadata, ..ContactFilter::default() }] {
        let mut tx = h.read().await;
        let first = tx.list_contacts(tenant, &filter, PageRequest::newest(5)).await.unwrap();
        assert!(first.items.is_empty() && first.next.is_some(), "{filter:?}");
        let second = tx.list_contacts(tenant, &filter, PageRequest::older(5, first.next)).await.unwrap();
        assert_eq!((second.items.len(), second.items[0].id, second.next), (1, contact, None), "{filter:?}");
    }
    let mut tx = h.read().await;
    let mut count = async |filter: ContactFilter| tx.list_contacts(tenant, &filter, PageRequest::newest(5)).await.unwrap().items.len();
    assert_eq!(count(name("100_")).await, 0, "no wildcards");
    assert_eq!(count(ContactFilter { id: Some(contact), ..name("ada") }).await, 1, "one contact is looked up");
    assert_eq!(count(ContactFilter { id: Some(contact), ..name("bob") }).await, 0);
    assert_eq!(count(ContactFilter { id: Some(h.id()), ..ContactFilter::default() }).await, 0);
}

pub(crate) async fn a_conversation_is_walked_whole(h: &Harness) {
    let tenant = h.world.tenant;
    let mut expected = Vec::new();
    for n in 0..20 {
        match n % 5 {
            0 => expected.push(h.sent(1).await.id),
            1 => expected.push(h.accept(h.item(&phone(2))).await.id),
            2 => drop(h.accept(h.item(&phone(3))).await),
            _ => {
                let incoming = inbound(h, &phone(1 + n % 2), &format!("in-{n}"));
                let mut tx = h.begin().await;
                assert!(tx.insert_inbound(&incoming).await.unwrap());
                tx.commit().await.unwrap();
                expected.push(incoming.message.id);
            }
        }
    }
    expected.reverse();
    let mut tx = h.begin().await;
    let mut of = async |number| tx.find_address(tenant, &phone(number)).await.unwrap().unwrap().1;
    let (target, source) = (of(1).await, of(2).await);
    tx.merge_contact(tenant, source, target, h.tick()).await.unwrap();
    tx.commit().await.unwrap();
    let filter = MessageFilter { contact: Some(target), ..MessageFilter::default() };
    for limit in [1, 3, 100] {
        let pages = walk(h, &filter, limit).await;
        assert!(pages.iter().rev().skip(1).all(|page| page.len() == limit as usize), "all but the last are full");
        assert_eq!(pages.concat(), expected);
    }
    let gone = MessageFilter { contact: Some(source), ..MessageFilter::default() };
    assert!(walk(h, &gone, 5).await.concat().is_empty());
}

pub(crate) async fn the_other_world_is_not_seen(h: &Harness) {
    let foreign = h.accept(with_key(h.item_in(&h.other, &phone(1)), "key", 1)).await;
    let mut tx = h.read().await;
    let here = h.world.tenant;
    assert_eq!(tx.lookup_message(here, foreign.id).await.unwrap(), None);
    assert!(tx.list_message_events(here, foreign.id).await.unwrap().is_empty());
    assert_eq!(tx.list_message_events(h.other.tenant, foreign.id).await.unwrap().len(), 1);
    assert_eq!(tx.find_address(here, &phone(1)).await.unwrap(), None);
    assert!(list(h, MessageFilter::default()).await.is_empty());
    let stolen = Message { tenant: here, ..foreign.clone() };
    assert_eq!(tx.contacts_of_messages(&[stolen]).await.unwrap(), [None]);
    assert_eq!(tx.lookup_messages(here, &[foreign.id]).await.unwrap(), []);
    assert_eq!(tx.lookup_messages(h.other.tenant, &[foreign.id, h.id()]).await.unwrap(), std::slice::from_ref(&foreign));
    assert_eq!(tx.lookup_message(h.other.tenant, foreign.id).await.unwrap(), Some(foreign));
}

pub(crate) async fn contacts_come_in_the_order_of_messages(h: &Harness) {
    let mut messages = Vec::new();
    for number in [1, 2, 1, 3] {
        messages.push(h.accept(h.item(&phone(number))).await);
    }
    messages[3].address = h.id();
    let mut tx = h.read().await;
    let one = tx.find_address(h.world.tenant, &phone(1)).await.unwrap().map(|(_, contact)| contact);
    let two = tx.find_address(h.world.tenant, &phone(2)).await.unwrap().map(|(_, contact)| contact);
    assert!(one.is_some() && one != two);
    assert_eq!(tx.contacts_of_messages(&messages).await.unwrap(), [one, two, one, None]);
    assert!(tx.contacts_of_messages(&[]).await.unwrap().is_empty());
}

fn ids(due: &[DueMessage]) -> Vec<MessageId> {
    due.iter().map(|m| m.id).collect()
}

pub(crate) async fn what_is_due_comes_longest_due_first(h: &Harness) {
    let mut messages = Vec::new();
    for (n, after) in [30, 10, 20, 99].into_iter().enumerate() {
        let mut item = if n == 2 { h.item_in(&h.other, &phone(1)) } else { h.item(&phone(1)) };
        let due_at = crate::harness::START.plus(std::time::Duration::from_secs(after));
        item.message.state.wait = Wait::Attempt { due_at };
        messages.push((h.accept(item).await, due_at));
    }
    let started = h.accept(h.item(&phone(1))).await;
    h.step(started.id, start(NODE, 0)).await;
    let (third, first, second) = (&messages[0], &messages[1], &messages[2]);
    let all: Vec<i16> = (0..64).collect();
    let mut tx = h.read().await;
    let due = tx.due_messages(&all, &Skip::default(), third.1, 9).await.unwrap().messages;
    assert_eq!(ids(&due), [first.0.id, second.0.id, third.0.id]);
    assert_eq!((due[1].tenant, due[1].fence, due[1].connection), (h.other.tenant, 0, h.other.connection));
    assert_eq!(due[0].wait, Some(Wait::Attempt { due_at: first.1 }));
    assert_eq!(ids(&tx.due_messages(&all, &Skip::default(), third.1, 2).await.unwrap().messages), [first.0.id, second.0.id]);
    let skipped = Skip { all: vec![h.world.connection, h.id()], bulk: Vec::new() };
    assert_eq!(ids(&tx.due_messages(&all, &skipped, third.1, 9).await.unwrap().messages), [second.0.id]);
    assert_eq!((due[0].expires_at, due[0].bulk), (first.0.state.expires_at, false));
    let expired = ids(&tx.due_messages(&all, &skipped, first.0.state.expires_at, 9).await.unwrap().messages);
    assert_eq!(expired[..2], [second.0.id, first.0.id], "what is over is over, whatever it waits for");
    assert_eq!(ids(&tx.overdue_messages(h.world.tenant, third.1, 9).await.unwrap()), [first.0.id], "of one tenant, and due for longer");
    let later = third.1.plus(std::time::Duration::from_secs(1));
    assert_eq!(ids(&tx.overdue_messages(h.world.tenant, later, 9).await.unwrap()), [first.0.id, third.0.id]);
    assert_eq!(ids(&tx.overdue_messages(h.world.tenant, later, 1).await.unwrap()), [first.0.id]);
    assert_eq!(ids(&tx.overdue_messages(h.other.tenant, later, 9).await.unwrap()), [second.0.id]);
    let mut of_shards = Vec::new();
    for shard in &all {
        of_shards.extend(ids(&tx.due_messages(&[*shard], &Skip::default(), third.1, 9).await.unwrap().messages));
    }
    if h.backend == Backend::Postgres {
        assert_eq!(of_shards.len(), 3, "each message is in one shard");
    }
    assert_eq!(BTreeSet::from_iter(of_shards), BTreeSet::from([first.0.id, second.0.id, third.0.id]));
}

pub(crate) async fn what_waits_is_walked_by_when_it_is_due(h: &Harness) {
    let mut expected = Vec::new();
    for n in 0..5 {
        expected.push(h.accept(h.item(&phone(n))).await.id);
        expected.push(h.accept(h.item_in(&h.other, &phone(n))).await.id);
    }
    h.sending(1).await;
    h.sent(1).await;
    let held = h.accept(h.item(&phone(1))).await.id;
    h.step(held, Step::Hold { reason: HeldReason::StaleDatabase }).await;
    let cancelled = h.accept(h.item(&phone(1))).await.id;
    h.step(cancelled, Step::Cancel).await;
    let mut walked = Vec::new();
    for shard in 0..64 {
        let mut tx = h.read().await;
        let all = tx.waiting_messages(shard, 99).await.unwrap();
        let due = |message: &DueMessage| match message.wait {
            Some(Wait::Attempt { due_at }) => due_at,
            other => panic!("{other:?}"),
        };
        assert!(all.is_sorted_by_key(due));
        let few = tx.waiting_messages(shard, 2).await.unwrap();
        assert_eq!(few.len(), all.len().min(2));
        walked.extend(all.iter().map(|m| (due(m), m.id)));
    }
    // On PostgreSQL, each shard separately.
    walked.sort();
    assert_eq!(walked.into_iter().map(|(_, id)| id).collect::<Vec<_>>(), expected);
    let waiting = h.read().await.held_messages(None, 1).await.unwrap();
    assert!(matches!(waiting[0].wait, Some(Wait::Held { reason: HeldReason::StaleDatabase, .. })));
    assert_eq!(ids(&waiting), [held]);
}

pub(crate) async fn what_awaits_a_receipt_is_walked_newest_first(h: &Harness) {
    let mut expected = Vec::new();
    for n in 0..7 {
        let message = h.sent(n).await;
        expected.push((message.state.due_at().unwrap(), message.id));
    }
    h.accept(h.item(&phone(1))).await;
    h.sending(1).await;
    let delivered = h.sent(1).await;
    h.step(delivered.id, crate::make::receipt(nuncio_domain::lifecycle::ReceiptKind::Delivered, h.tick())).await;
    let mut walked = Vec::new();
    for shard in 0..64 {
        let mut before = None;
        while let Some(page) = h.read().await.messages_awaiting_receipts(shard, before).await.unwrap() {
            before = Some(page.next);
            assert!(page.messages.iter().all(|m| matches!(m.message.wait, Some(Wait::Receipt { .. })) && m.provider == "sim"));
            let of_page: Vec<_> = page.messages.iter().map(|waiting| waiting.message.id).collect();
            assert!(of_page.iter().all(|id| !walked.contains(id)), "once each");
            walked.extend(of_page);
        }
    }
    if h.backend == Backend::Sqlite {
        let newest_first: Vec<_> = expected.iter().rev().map(|(_, id)| *id).collect();
        assert_eq!(walked, newest_first);
    }
    assert_eq!(BTreeSet::from_iter(walked), expected.into_iter().map(|(_, id)| id).collect());
}

pub(crate) async fn queued_messages_of_a_sender_are_found(h: &Harness) {
    let busy = async |since| h.read().await.has_queued_messages(h.world.tenant, h.world.sender, since).await.unwrap();
    let own = async |sender| h.read().await.has_queued_messages(h.world.tenant, sender, None).await.unwrap();
    h.accept(h.item_in(&h.other, &phone(1))).await;
    h.sent(1).await;
    let cancelled = h.accept(h.item(&phone(1))).await.id;
    h.step(cancelled, Step::Cancel).await;
    assert!(!busy(None).await, "what is over, taken by a provider or of another world does not count");
    let sending = h.sending(1).await;
    assert!(busy(None).await && busy(Some(sending.id.created_at())).await);
    h.step(sending.id, settle(0, sending.state.fence, taken("p"))).await;
    assert!(!busy(None).await);
    let queued = h.accept(h.item(&phone(1))).await.id;
    let later = h.tick();
    assert!(busy(None).await && busy(Some(queued.created_at())).await);
    assert!(!busy(Some(later)).await, "it was made before");
    assert!(!own(h.id()).await, "another sender's");
    h.step(queued, Step::Hold { reason: HeldReason::StaleDatabase }).await;
    assert!(busy(None).await && busy(Some(queued.created_at())).await, "held");
}

pub(crate) async fn a_row_that_nobody_guards_is_found(h: &Harness) {
    let unguarded = async || h.read().await.count_unguarded_messages().await.unwrap();
    let healthy = [
        h.accept(h.item(&phone(1))).await.id,
        h.sending(1).await.id,
        h.sent(1).await.id,
        h.accept(h.item(&phone(1))).await.id,
        h.accept(h.item(&phone(1))).await.id,
    ];
    h.step(healthy[3], Step::Cancel).await;
    h.step(healthy[4], Step::Hold { reason: HeldReason::UnknownOutcome }).await;
    assert_eq!(unguarded().await, 0);
    let faults = [
        (0, "due_at = NULL"),
        (0, "owner = 1"),
        (0, "agenda = NULL"),
        (0, "agenda = agenda + 1"),
        (0, "wait = 0, due_at = NULL"),
        (0, "wait = 9"),
        (1, "owner = NULL"),
        (1, "owner = 77"),
        (1, "due_at = 5"),
        (2, "due_at = NULL"),
        (2, "owner = 1"),
        (3, "due_at = 5"),
        (3, "owner = 1"),
        (3, "status = 3"),
        (4, "held = 0"),
        (4, "due_at = NULL"),
    ];
    for (at, fault) in faults {
        let id = h.literal(healthy[at]);
        let columns = "status, wait, held, due_at, owner, agenda";
        let row = h.sql(&format!("SELECT {columns} FROM states WHERE id = {id}")).await.remove(0);
        h.sql(&format!("UPDATE states SET {fault} WHERE id = {id}")).await;
        assert_eq!(unguarded().await, 1, "{fault}");
        let values: Vec<_> = row.into_iter().map(|v| v.unwrap_or("NULL".to_owned())).collect();
        let restored: Vec<_> = columns.split(", ").zip(values).map(|(c, v)| format!("{c} = {v}")).collect();
        h.sql(&format!("UPDATE states SET {} WHERE id = {id}", restored.join(", "))).await;
        assert_eq!(unguarded().await, 0, "restored after {fault}");
    }
    let mut tx = h.begin().await;
    assert!(tx.mark_dead(NODE, 1).await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(unguarded().await, 1, "its owner is dead");
    h.step(healthy[1], Step::Recover { node: NODE, retry_in: crate::make::MINUTE }).await;
    assert_eq!(unguarded().await, 0);
}

pub(crate) async fn a_resting_connection_keeps_messages_until_their_fallback(h: &Harness) {
    let (resting, none) = (Skip { all: vec![h.world.connection], bulk: Vec::new() }, Skip::default());
    let item = |fallback: bool| {
        let mut item = h.item(&phone(1));
        let state = &mut item.message.state;
        state.detail.fallback = fallback.then(|| state.route.clone());
        state.detail.fallback_after_seconds = Some(60);
        item
    };
    let (with, without) = (h.accept(item(true)).await, h.accept(item(false)).await);
    let (due_at, shards) = (with.state.due_at().unwrap(), (0..64).collect::<Vec<i16>>());
    let due = async |skip, now| h.read().await.due_messages(&shards, skip, now, 9).await.unwrap().messages;
    let at = with.state.decide_at();
    assert_eq!(at, due_at.plus(std::time::Duration::from_secs(60)));
    assert!(due(&resting, at.minus(std::time::Duration::from_millis(1))).await.is_empty());
    let found = due(&resting, at).await;
    assert_eq!((ids(&found), found[0].fallback_is_due), (vec![with.id], true));
    let found = due(&none, at).await;
    let flags: Vec<_> = found.iter().map(|message| (message.id, message.fallback_is_due)).collect();
    assert_eq!(flags, [(with.id, true), (without.id, false)]);
    let step = Transition { now: at, ..h.transition(with.id, Step::Deadline { fence: with.state.fence }) };
    h.store.transition(step).await.unwrap();
    assert!(due(&resting, at).await.is_empty(), "the fallback is by the same connection here, and nothing follows it");
}

/// More rows of a resting connection than one look reads, each with a message whose validity has ended.
pub(crate) async fn rows_of_a_resting_connection_hide_no_other_message(h: &Harness) {
    let healthy = h.accept(h.item_in(&h.other, &phone(1))).await;
    let gone = h.accept(h.item(&phone(1))).await;
    let (tenant, id, connection) = (h.world.tenant.0, h.literal(gone.id), h.literal(h.world.connection));
    let (ids, connection) = match h.backend {
        Backend::Sqlite => (id, connection),
        Backend::Postgres => (format!("uuid_send({id}::uuid)"), format!("{connection}::uuid")),
    };
    h.sql(&format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)
         INSERT INTO agenda (tenant_id, id, shard, due_at, connection_id, bulk, decide_at, ids)
         SELECT {tenant}, i, 0, 5, {connection}, 0, 5, {ids} FROM n"
    ))
    .await;
    let all: Vec<i16> = (0..64).collect();
    let due = healthy.state.due_at().unwrap();
    let skip = Skip { all: vec![h.world.connection], bulk: Vec::new() };
    let found = h.read().await.due_messages(&all, &skip, due, 9).await.unwrap();
    assert_eq!(self::ids(&found.messages), [healthy.id]);
}

pub(crate) async fn an_agenda_row_goes_with_its_last_message(h: &Harness) {
    let rows = async || h.rows_of("agenda").await;
    let items: Vec<_> = (0..3).map(|n| h.claimed(&phone(n))).collect();
    let ids: Vec<_> = items.iter().map(|item| item.message.id).collect();
    h.accept_at_once(items).await;
    assert_eq!(rows().await, 1, "one row for the batch");
    h.step(ids[0], settle(0, 1, taken("p"))).await;
    assert_eq!(rows().await, 2, "one waits for its receipt");
    for id in &ids {
        h.step(*id, receipt(ReceiptKind::Delivered, h.tick())).await;
        h.step(*id, settle(0, 1, taken("p"))).await;
    }
    assert_eq!(rows().await, 0, "all are final");

    // A row that is no longer tracked, as after a restart, is deleted once it is due.
    let message = h.accept(h.item(&phone(1))).await;
    let (tenant, id) = (h.world.tenant.0, h.literal(message.id));
    let ids = match h.backend {
        Backend::Sqlite => id.clone(),
        Backend::Postgres => format!("uuid_send({id}::uuid)"),
    };
    h.sql(&format!("INSERT INTO agenda (tenant_id, id, shard, due_at, bulk, decide_at, ids) VALUES ({tenant}, 7, 0, 5, 0, 9, {ids})"))
        .await;
    let shards: Vec<i16> = (0..64).collect();
    let stale = async |at: i64| h.read().await.due_messages(&shards, &Skip::default(), Timestamp::from_millis(at), 9).await.unwrap().stale;
    assert_eq!((stale(4).await, stale(5).await), (vec![], vec![(h.world.tenant, 7)]));
    in_tx!(h, |tx| tx.delete_agenda_rows(&[(h.world.tenant, 7), (h.other.tenant, 7)]).await.unwrap());
    let due = message.state.due_at().unwrap().millis();
    assert_eq!((stale(due).await, rows().await), (vec![], 1), "what guards a message stays");

    // So is one with an owner: a step by another node can leave it.
    let owned = h.accept(h.claimed(&phone(2))).await;
    let owner = NODE.0;
    h.sql(&format!("INSERT INTO agenda (tenant_id, id, shard, owner, bulk, decide_at, ids) VALUES ({tenant}, 8, 0, {owner}, 0, 9, {ids})"))
        .await;
    let found = h.read().await.messages_owned_by(NODE, 9).await.unwrap();
    assert_eq!((self::ids(&found.messages), found.stale), (vec![owned.id], vec![(h.world.tenant, 8)]));
}
