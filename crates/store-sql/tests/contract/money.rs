//! Prices, the ledger, and transfers of messages.

use std::collections::BTreeSet;

use futures::future::join;
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Balance, Entry, EntryFilter, Purpose, Transfer};
use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, Step};
use nuncio_domain::message::{Cost, FailureCode, Message, Money, Quote, QuoteState, Route};
use nuncio_domain::price::{Price, Unit};
use nuncio_domain::{AddressKind, Channel, Micros, SenderId, Timestamp};
use nuncio_store::{Accept, Accepted, CountryMetrics, MetricDelta, Shortage, Suppression, SuppressionReason, Transferred};
use sqlx::{Connection as _, PgConnection};
use uuid::Uuid;

use crate::harness::{Harness, NODE, START, in_tx};
use crate::make::{duplicate, failure, new, phone, receipt, settle, settle_by, start, taken, with_key};

fn quote(channel: Channel, total: i64) -> Quote {
    Quote { channel, cost: Cost { fee: Micros(1), provider: Micros(total - 1) }, state: QuoteState::Open }
}

/// Sets the price of a message by SMS.
fn priced(mut item: Accept, total: i64) -> Accept {
    item.message.state.detail.money = Some(Money { quotes: vec![quote(Channel::Sms, total)], ..Money::default() });
    item
}

fn transfer(purpose: Purpose, resource: u128, amount: i64) -> Transfer {
    Transfer { purpose, resource: Uuid::from_u128(resource), part: 0, amount: Micros(amount), sender: None }
}

fn short(accepted: nuncio_store::Result<Accepted>) -> Shortage {
    match accepted {
        Ok(Accepted::Short(shortage)) => shortage,
        other => panic!("not short: {other:?}"),
    }
}

impl Harness {
    /// Sets the available balance to `amount`.
    async fn fund(&self, amount: i64) {
        let mut tx = self.begin().await;
        tx.limit_balance(self.world.tenant, true).await.unwrap();
        if amount > 0 {
            let deposit = transfer(Purpose::Deposit, 1, amount);
            assert_eq!(tx.transfer(self.world.tenant, &deposit, START).await.unwrap(), Transferred::Done);
        }
        tx.commit().await.unwrap();
    }

    /// Returns available, reserved and spent, after checking that they equal the sum of the transfers.
    async fn accounts(&self) -> (i64, i64, i64) {
        let mut tx = self.read().await;
        let balance = tx.find_balance(self.world.tenant).await.unwrap();
        assert_eq!(tx.sum_transfers(self.world.tenant).await.unwrap(), (balance, balance));
        (balance.available.0, balance.reserved.0, balance.spent.0)
    }

    async fn transfers(&self, message: &Message) -> Vec<(Purpose, i64)> {
        let rows = self.read().await.list_transfers(self.world.tenant, message.id.uuid()).await.unwrap();
        rows.into_iter().map(|t| (t.purpose, t.amount.0)).collect()
    }
}

pub(crate) async fn money_moves_once_and_never_below_nothing(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    assert_eq!(tx.find_balance(tenant).await.unwrap(), Balance::default());
    // Without a limit, all charges succeed.
    assert_eq!(tx.transfer(tenant, &transfer(Purpose::Charge, 9, 5), START).await.unwrap(), Transferred::Done);
    assert_eq!(tx.find_balance(tenant).await.unwrap().available, Micros(-5));
    tx.limit_balance(tenant, true).await.unwrap();
    for (purpose, amount, expected) in [
        (Purpose::Deposit, 105, Transferred::Done),
        (Purpose::Deposit, 105, Transferred::Repeated),
        (Purpose::Reserve, 60, Transferred::Done),
        (Purpose::Reserve, 60, Transferred::Repeated),
        (Purpose::Settle, 20, Transferred::Done),
        (Purpose::Release, 40, Transferred::Done),
        (Purpose::Charge, 80, Transferred::Done),
    ] {
        assert_eq!(tx.transfer(tenant, &transfer(purpose, 1, amount), START).await.unwrap(), expected, "{purpose}");
    }
    let balance = Balance { available: Micros(0), reserved: Micros(0), spent: Micros(105), limited: true };
    for purpose in [Purpose::Reserve, Purpose::Charge, Purpose::Withdrawal] {
        let refused = tx.transfer(tenant, &transfer(purpose, 2, 1), START).await.unwrap();
        assert_eq!(refused, Transferred::Short(balance), "{purpose}");
    }
    tx.commit().await.unwrap();
    assert_eq!(h.accounts().await, (0, 0, 105));
    let mut tx = h.read().await;
    assert_eq!(tx.sum_transfers(tenant).await.unwrap(), (balance, balance));
    assert_eq!(tx.list_transfers(tenant, Uuid::from_u128(2)).await.unwrap(), [], "what was refused is not written");
    let all = tx.list_transfers(tenant, Uuid::from_u128(1)).await.unwrap();
    assert_eq!(all[0], transfer(Purpose::Deposit, 1, 105));
    assert_eq!(all.len(), 5);
    assert_eq!(tx.find_balance(h.other.tenant).await.unwrap(), Balance::default(), "the other world's money is its own");
    drop(tx);
    let mut tx = h.begin().await;
    tx.limit_balance(tenant, false).await.unwrap();
    assert_eq!(tx.transfer(tenant, &transfer(Purpose::Charge, 3, 7), START).await.unwrap(), Transferred::Done);
    tx.commit().await.unwrap();
    assert_eq!(h.accounts().await, (-7, 0, 112));
}

pub(crate) async fn the_ledger_is_listed_newest_first(h: &Harness) {
    let tenant = h.world.tenant;
    let at = |ms: i64| Timestamp::from_millis(START.millis() + ms);
    let all = [
        (transfer(Purpose::Charge, 3, 5), at(20)),
        (transfer(Purpose::Reserve, 2, 7), at(10)),
        // Of one time: by resource, then purpose.
        (transfer(Purpose::Settle, 1, 6), at(0)),
        (transfer(Purpose::Reserve, 1, 6), at(0)),
        (transfer(Purpose::Deposit, 9, 50), at(-10)),
    ];
    let mut tx = h.begin().await;
    for (transfer, now) in all.iter().rev() {
        assert_eq!(tx.transfer(tenant, transfer, *now).await.unwrap(), Transferred::Done);
    }
    let entries = all.map(|(transfer, recorded_at)| Entry { transfer, recorded_at });
    let every = EntryFilter::default();
    assert_eq!(tx.list_entries(tenant, &every, 0, 9).await.unwrap(), entries);
    assert_eq!(tx.list_entries(tenant, &every, 1, 2).await.unwrap(), entries[1..3]);
    assert_eq!(tx.list_entries(tenant, &every, 3, 2).await.unwrap(), entries[3..]);
    assert_eq!(tx.list_entries(tenant, &every, 5, 2).await.unwrap(), []);
    let span = EntryFilter { since: Some(at(0)), until: Some(at(20)), purpose: None };
    assert_eq!(tx.list_entries(tenant, &span, 0, 9).await.unwrap(), entries[1..4]);
    let reserved = EntryFilter { purpose: Some(Purpose::Reserve), ..every };
    assert_eq!(tx.list_entries(tenant, &reserved, 0, 9).await.unwrap(), [entries[1], entries[3]]);
    assert_eq!(tx.list_entries(h.other.tenant, &every, 0, 9).await.unwrap(), [], "the other world's ledger is its own");
    tx.commit().await.unwrap();
}

pub(crate) async fn a_sender_s_day_adds_up(h: &Harness) {
    let (tenant, sender, other): (_, SenderId, SenderId) = (h.world.tenant, h.world.sender, h.id());
    let by = |sender, n, purpose, amount| Transfer { sender: Some(sender), ..transfer(purpose, n, amount) };
    let mut tx = h.begin().await;
    for (at, transfer) in [
        (START.minus(std::time::Duration::from_millis(1)), by(sender, 1, Purpose::Reserve, 1_000)),
        (START, by(sender, 2, Purpose::Reserve, 30)),
        (START, by(sender, 3, Purpose::Reserve, 50)),
        (START, by(sender, 2, Purpose::Settle, 30)),
        (START, by(sender, 3, Purpose::Release, 50)),
        (START, by(sender, 4, Purpose::Charge, 4)),
        (START, by(other, 5, Purpose::Charge, 500)),
        (START, transfer(Purpose::Charge, 6, 600)),
    ] {
        assert_eq!(tx.transfer(tenant, &transfer, at).await.unwrap(), Transferred::Done);
    }
    assert_eq!(tx.spent_by_sender(tenant, sender, START).await.unwrap(), Micros(34));
    tx.commit().await.unwrap();
    // A message states whether it counts.
    let mut item = priced(h.claimed(&phone(1)), 8);
    item.message.state.detail.money.as_mut().unwrap().limited_sender = Some(sender);
    let message = h.accept(item).await;
    assert_eq!(h.read().await.spent_by_sender(tenant, sender, START).await.unwrap(), Micros(42));
    h.step(message.id, settle(0, 1, Outcome::Rejected { failure: failure(FailureCode::Undeliverable) })).await;
    assert_eq!(h.read().await.spent_by_sender(tenant, sender, START).await.unwrap(), Micros(34), "given back");
}

pub(crate) async fn a_message_sets_aside_pays_and_gives_back(h: &Harness) {
    h.fund(1_000).await;
    let item = priced(h.claimed(&phone(1)), 100);
    let fallback = Route { channel: Channel::SmsOneway, ..item.message.state.route.clone() };
    let both = |mut item: Accept| {
        item.message.state.detail.fallback = Some(fallback.clone());
        item.message.state.detail.money.as_mut().unwrap().quotes.push(quote(Channel::SmsOneway, 10));
        item
    };
    // Delivered: one route is paid, the other released.
    let first = h.accept(both(item)).await;
    assert_eq!(h.accounts().await, (890, 110, 0));
    let (_, state) = h.step(first.id, settle(0, 1, taken("p"))).await;
    assert_eq!((state.detail.cost, h.accounts().await), (None, (890, 110, 0)), "not known before it arrives");
    let (_, state) = h.step(first.id, receipt(ReceiptKind::Delivered, h.tick())).await;
    assert_eq!(state.detail.cost.map(Cost::total), Some(Micros(100)));
    assert_eq!(h.accounts().await, (900, 0, 100));
    assert_eq!(h.transfers(&first).await, [(Purpose::Reserve, 110), (Purpose::Settle, 100), (Purpose::Release, 10)]);
    assert_eq!(h.events(first.id).await.last().unwrap().changes[0].cost.map(Cost::total), Some(Micros(100)), "the event says so");
    h.step(first.id, receipt(ReceiptKind::Delivered, h.tick())).await;
    h.step(first.id, receipt(ReceiptKind::Read, h.tick())).await;
    assert_eq!(h.accounts().await, (900, 0, 100), "told again, nothing moves");
    assert_eq!(h.lookup(first.id).await.state.detail.money.unwrap().quotes[1].state, QuoteState::Released);

    // Failed on both: nothing is paid.
    let second = h.accept(both(priced(h.claimed(&phone(1)), 100))).await;
    let refused = || Outcome::Rejected { failure: failure(FailureCode::ContentRejected) };
    let (_, state) = h.step(second.id, settle(0, 1, refused())).await;
    assert_eq!(h.accounts().await, (790, 110, 100), "the fallback is still to come");
    h.step(second.id, start(NODE, state.fence)).await;
    let fence = h.lookup(second.id).await.state.fence;
    let (_, state) = h.step(second.id, settle(1, fence, refused())).await;
    assert_eq!((state.is_final(), state.detail.cost, h.accounts().await), (true, None, (900, 0, 100)));
    // A late receipt does not charge it.
    let (_, state) = h.step(second.id, Step::Receipt { attempt: Some(0), part: 0, kind: ReceiptKind::Delivered, at: h.tick() }).await;
    assert_eq!((state.detail.cost, h.accounts().await), (None, (900, 0, 100)));

    // Prepaid: paid from another reservation.
    in_tx!(h, |tx| tx.transfer(h.world.tenant, &transfer(Purpose::Reserve, 7, 100), h.tick()).await.unwrap());
    let mut item = priced(h.claimed(&phone(1)), 100);
    item.message.state.detail.money.as_mut().unwrap().prepaid = true;
    let third = h.accept(item).await;
    assert_eq!(h.accounts().await, (800, 100, 100));
    h.step(third.id, settle_by(Receipts::Never, 0, 1, taken("p"))).await;
    assert_eq!(h.accounts().await, (800, 0, 200), "without receipts it is paid when it is taken");
    assert_eq!(h.transfers(&third).await, [(Purpose::Settle, 100)]);
}

pub(crate) async fn a_message_that_cannot_be_paid_writes_nothing(h: &Harness) {
    h.fund(250).await;
    let items = (0..3).map(|n| priced(with_key(h.item(&phone(1)), &n.to_string(), 1), 100)).collect();
    let mut answers = h.accept_at_once(items).await;
    let shortage = short(answers.remove(2));
    let balance = Balance { available: Micros(50), reserved: Micros(200), spent: Micros(0), limited: true };
    assert_eq!(shortage, Shortage { balance, required: Micros(100) });
    let first = new(answers.remove(0)).0;
    assert_eq!(h.accounts().await, (50, 200, 0));
    assert_eq!((h.rows_of("messages").await, h.rows_of("states").await, h.rows_of("idempotency_keys").await), (2, 2, 2));
    // Nor a new recipient. A repeat is reported as such, not as a lack of money.
    short(h.store.accept(priced(h.item(&phone(2)), 51)).await);
    assert_eq!(h.rows_of("contacts").await, 1);
    assert_eq!(duplicate(h.store.accept(priced(with_key(h.item(&phone(1)), "0", 1), 100)).await), (first.id, true));
    // Of two with the same key in a batch, neither is a repeat of the rejected one.
    let twins = (0..2).map(|_| priced(with_key(h.item(&phone(1)), "twin", 1), 51)).collect();
    for answer in h.accept_at_once(twins).await {
        short(answer);
    }
    // Cheaper and free messages in the same batch succeed, and the key is still free.
    let items = vec![priced(with_key(h.item(&phone(1)), "2", 1), 51), priced(h.item(&phone(3)), 49), h.item(&phone(4))];
    let mut answers = h.accept_at_once(items).await;
    new(answers.remove(2));
    short(answers.remove(0));
    new(answers.remove(0));
    new(h.store.accept(priced(with_key(h.item(&phone(1)), "2", 1), 1)).await);
    assert_eq!(h.accounts().await, (0, 250, 0));
    // A message to a suppressed recipient is free.
    let entry = Suppression { id: h.id(), recipient: phone(9), sender: None, reason: SuppressionReason::Manual, source: String::new() };
    in_tx!(h, |tx| tx.insert_suppression(h.world.tenant, &entry, START).await.unwrap());
    let suppressed = h.accept(priced(h.claimed(&phone(9)), 100)).await;
    assert_eq!((suppressed.state.detail.money, suppressed.state.detail.cost), (None, None));
    // A cancelled message releases its reservation.
    h.step(first.id, Step::Cancel).await;
    assert_eq!(h.accounts().await, (100, 150, 0));
}

pub(crate) async fn many_spend_no_more_than_there_is(h: &Harness) {
    h.fund(1_000).await;
    let answers = h.accept_from_tasks((0..80).map(|n| priced(h.claimed(&phone(n % 5)), 25))).await;
    let made: Vec<_> =
        answers.into_iter().filter_map(|a| if let Ok(Accepted::New { message, .. }) = a { Some(message) } else { None }).collect();
    assert_eq!((made.len(), h.accounts().await), (40, (0, 1_000, 0)));
    let steps = made.iter().enumerate().flat_map(|(n, message)| {
        let end = if n % 2 == 0 { ReceiptKind::Delivered } else { ReceiptKind::Failed(failure(FailureCode::Undeliverable)) };
        [settle(0, 1, taken("p")), receipt(end, h.tick())].map(|step| h.transition(message.id, step))
    });
    for answer in h.steps_at_once(steps.collect()).await {
        answer.unwrap();
    }
    assert_eq!(h.accounts().await, (500, 0, 500));
}

/// Two nodes: one spends a balance that both have read before the other writes.
pub(crate) async fn two_nodes_spend_no_more_than_there_is(h: &Harness) {
    let rival = h.another().await;
    h.fund(1_000).await;
    h.accept(priced(h.claimed(&phone(1)), 100)).await;
    rival.accept(priced(h.claimed(&phone(1)), 100)).await.unwrap();
    let nuncio_store_sql::Target::Postgres(url) = &h.target else { unreachable!() };
    let mut gate = PgConnection::connect(url.expose()).await.unwrap();
    sqlx::raw_sql("SET pg_stat_statements.track = none; BEGIN; SELECT * FROM balances FOR UPDATE").execute(&mut gate).await.unwrap();
    // Each one fits, but not both.
    let both = join(h.store.accept(priced(h.claimed(&phone(1)), 500)), rival.accept(priced(h.claimed(&phone(1)), 500)));
    let open = async {
        let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while h.number(waiting).await < 2 {}
        sqlx::raw_sql("COMMIT").execute(&mut gate).await.unwrap();
    };
    let ((one, other), ()) = join(both, open).await;
    let (won, lost) = if matches!(one, Ok(Accepted::New { .. })) { (one, other) } else { (other, one) };
    new(won);
    let balance = Balance { available: Micros(300), reserved: Micros(700), spent: Micros(0), limited: true };
    assert_eq!(short(lost), Shortage { balance, required: Micros(500) });
    assert_eq!((h.accounts().await, h.rows_of("messages").await), ((300, 700, 0), 3));
    rival.close().await;
}

pub(crate) async fn the_price_list_is_kept_by_place_and_date(h: &Harness) {
    let project = h.read().await.list_projects().await.unwrap().remove(0).id;
    let price = |channel, country: &str, day: i64, fee| Price {
        channel,
        country: country.to_owned(),
        effective_from: Timestamp::from_millis(day * 86_400_000),
        unit: Unit::Segment,
        cost: Cost { fee: Micros(fee), provider: Micros(i64::from(i32::MAX) * 2) },
    };
    let lines = [
        price(Channel::Sms, "*", 0, 1),
        price(Channel::Sms, "ES", 0, 2),
        price(Channel::Sms, "ES", 9, 3),
        price(Channel::Voice, "*", 0, 4),
    ];
    let mut tx = h.begin().await;
    let before = tx.load_tenant(h.world.tenant).await.unwrap().unwrap().epoch;
    tx.put_prices(None, &[lines[3].clone(), lines[2].clone(), lines[0].clone(), price(Channel::Sms, "ES", 0, 77)], false).await.unwrap();
    tx.put_prices(None, &lines[1..2], false).await.unwrap();
    tx.put_prices(Some(project), &[price(Channel::Sms, "*", 0, 5)], false).await.unwrap();
    assert!(tx.load_tenant(h.world.tenant).await.unwrap().unwrap().epoch > before);
    assert_eq!(tx.list_prices(None).await.unwrap(), lines);
    assert_eq!(tx.list_prices(Some(project)).await.unwrap(), [price(Channel::Sms, "*", 0, 5)]);
    tx.put_prices(None, &[price(Channel::Email, "*", 0, 6)], true).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    assert_eq!(tx.list_prices(None).await.unwrap(), [price(Channel::Email, "*", 0, 6)]);
    assert_eq!(tx.list_prices(Some(project)).await.unwrap().len(), 1, "the project's own are left alone");
    assert!(matches!(h.store.accept(h.item(&phone(1))).await, Ok(Accepted::Stale)), "planned by old prices");
}

pub(crate) async fn what_is_known_of_a_recipient_and_its_country(h: &Harness) {
    let tenant = h.world.tenant;
    let message = h.sending(1).await;
    let sums = MetricDelta { successes: 3, failures: 1, delivery_ms: 30, timed: 3, last_success_at: Some(START) };
    h.store
        .add_metrics(vec![(tenant, message.address, Channel::Sms, sums), (tenant, message.address, Channel::Whatsapp, sums)])
        .await
        .unwrap();
    let mut tx = h.begin().await;
    let numbers = [phone(1).identifier, phone(2).identifier];
    let numbers = numbers.each_ref().map(String::as_str);
    let (whose, known): (Vec<_>, Vec<_>) = tx.recipient_metrics(tenant, AddressKind::Phone, &numbers).await.unwrap().into_iter().unzip();
    assert_eq!(known, tx.channel_metrics(tenant, message.address).await.unwrap());
    assert_eq!(whose, [numbers[0]; 2]);
    assert_eq!(tx.recipient_metrics(tenant, AddressKind::Email, &numbers).await.unwrap(), []);
    assert_eq!(tx.recipient_metrics(tenant, AddressKind::Phone, &numbers[1..]).await.unwrap(), []);
    assert_eq!(tx.recipient_metrics(h.other.tenant, AddressKind::Phone, &numbers).await.unwrap(), []);

    let row = |channel, country: &str, successes, failures| CountryMetrics { channel, country: country.to_owned(), successes, failures };
    tx.add_country_metrics(tenant, &row(Channel::Sms, "ES", 8_000, 2_001)).await.unwrap();
    tx.add_country_metrics(tenant, &row(Channel::Sms, "", 1, 0)).await.unwrap();
    assert_eq!(tx.country_metrics(tenant).await.unwrap(), [row(Channel::Sms, "", 1, 0), row(Channel::Sms, "ES", 8_000, 2_001)]);
    tx.add_country_metrics(tenant, &row(Channel::Sms, "ES", 1, 5)).await.unwrap();
    tx.add_country_metrics(tenant, &row(Channel::Sms, "", 1, 1)).await.unwrap();
    let expected = [row(Channel::Sms, "", 2, 1), row(Channel::Sms, "ES", 4_001, 1_005)];
    assert_eq!(tx.country_metrics(tenant).await.unwrap(), expected, "what was long ago counts less");
    assert_eq!(tx.country_metrics(h.other.tenant).await.unwrap(), []);
    tx.commit().await.unwrap();
    let distinct: BTreeSet<_> = h.sql("SELECT country FROM country_metrics").await.into_iter().collect();
    assert_eq!(distinct.len(), 2);
    h.step(message.id, settle(0, 1, taken("p"))).await;
}
