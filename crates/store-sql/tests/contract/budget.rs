//! Rows and index entries written per message: they determine its performance.

use std::collections::BTreeMap;

use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Scope};
use nuncio_domain::message::{self, FailureCode, Money, Quote, QuoteState};
use nuncio_domain::{Channel, Micros};
use nuncio_store::Accept;
use nuncio_store_sql::Target;

use crate::harness::{Backend, Harness, NODE};
use crate::make::{failure, phone, receipt, settle, start, taken, with_key};
use crate::schema::Schema;

/// Rows written, by table and kind of write, and index entries added. An index gets no entry if the row does not change its columns or meet
/// its condition. PostgreSQL can add more if a new row version does not fit its page.
#[derive(PartialEq, Eq, Debug)]
struct Cost {
    rows: BTreeMap<String, i64>,
    entries: i64,
}

fn cost(rows: &[(&str, i64)], entries: i64) -> Cost {
    Cost { rows: rows.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect(), entries }
}

/// Counts all rows written from now on.
async fn watch(h: &Harness, schema: &Schema) {
    h.sql("CREATE TABLE written (what TEXT)").await;
    if h.backend == Backend::Postgres {
        h.sql(
            "CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN INSERT INTO written VALUES (LOWER(TG_OP) || ' ' || TG_TABLE_NAME); RETURN NULL; END $$",
        )
        .await;
    }
    for table in schema.tables() {
        for kind in ["insert", "update", "delete"] {
            let body = match h.backend {
                Backend::Sqlite => format!("BEGIN INSERT INTO written VALUES ('{kind} {table}'); END"),
                Backend::Postgres => "FOR EACH ROW EXECUTE FUNCTION note()".to_owned(),
            };
            h.sql(&format!("CREATE TRIGGER {kind}_{table} AFTER {kind} ON {table} {body}")).await;
        }
    }
}

/// Returns the number of entries of all indexes.
async fn entries(h: &Harness, schema: &Schema) -> BTreeMap<String, i64> {
    let mut found = BTreeMap::new();
    for index in &schema.indexes {
        let condition = if index.predicate.is_empty() { "1 = 1" } else { &index.predicate };
        let columns = index.columns.join(", ");
        for row in h.sql(&format!("SELECT {columns} FROM {} WHERE {condition}", index.table)).await {
            *found.entry(format!("{index:?} {row:?}")).or_default() += 1;
        }
    }
    found
}

async fn measure(h: &Harness, schema: &Schema, work: impl Future<Output = ()>) -> Cost {
    let before = entries(h, schema).await;
    h.sql("DELETE FROM written").await;
    work.await;
    let rows = h.sql("SELECT what, COUNT(*) FROM written GROUP BY what").await;
    let rows = rows.into_iter().map(|row| (row[0].clone().unwrap(), row[1].as_ref().unwrap().parse().unwrap())).collect();
    let after = entries(h, schema).await;
    let entries = after.iter().map(|(entry, count)| (count - before.get(entry).unwrap_or(&0)).max(0)).sum();
    Cost { rows, entries }
}

/// Rows that a batch of one message adds to the message's own: event log, next position, and agenda.
const BATCH: [(&str, i64); 3] = [("insert log", 1), ("update log_heads", 1), ("insert agenda", 1)];
const BORN: [(&str, i64); 2] = [("insert messages", 1), ("insert states", 1)];
const CHANGED: [(&str, i64); 1] = [("update states", 1)];
/// The agenda row of a batch whose last message was processed.
const LEFT: (&str, i64) = ("delete agenda", 1);

fn rows(parts: &[&[(&'static str, i64)]]) -> Vec<(&'static str, i64)> {
    parts.concat()
}

pub(crate) async fn a_message_costs_few_rows(h: &Harness) {
    let schema = Schema::of(h).await;
    h.accept(h.item(&phone(1))).await;
    watch(h, &schema).await;
    let (born, changed) = (rows(&[&BORN, &BATCH]), rows(&[&CHANGED, &BATCH, &[LEFT]]));

    let mut item = h.item(&phone(1));
    let id = item.message.id;
    let accept = async |item| drop(h.accept(item).await);
    let what = "accept: message, address, state; the log by position and by batch; the agenda, and when it is due";
    assert_eq!(measure(h, &schema, accept(item)).await, cost(&born, 7), "{what}");
    assert_eq!(measure(h, &schema, accept(h.claimed(&phone(1)))).await, cost(&born, 7), "accept and start in one");
    let step = async |step| drop(h.step(id, step).await);
    assert_eq!(measure(h, &schema, step(start(NODE, 0))).await, cost(&changed, 4), "start: no index entry of the state moves");
    let deferred = Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message };
    let quiet = cost(&[("update states", 1), ("insert agenda", 1), LEFT], 2);
    assert_eq!(measure(h, &schema, step(settle(0, 1, deferred))).await, quiet, "put off: nothing is logged");
    step(start(NODE, 2)).await;
    assert_eq!(measure(h, &schema, step(settle(1, 3, taken("p")))).await, cost(&changed, 4), "settle");
    let delivered = receipt(ReceiptKind::Delivered, h.tick());
    let ended = cost(&[("update states", 1), ("insert log", 1), ("update log_heads", 1), LEFT], 2);
    assert_eq!(measure(h, &schema, step(delivered)).await, ended, "receipt: it leaves the agenda");
    let again = receipt(ReceiptKind::Delivered, h.tick());
    assert_eq!(measure(h, &schema, step(again)).await, cost(&[], 0), "what is known is not written");

    item = with_key(h.claimed(&phone(1)), "key", 1);
    let keyed = item.message.id;
    let with = rows(&[&born, &[("insert idempotency_keys", 1)]]);
    assert_eq!(measure(h, &schema, accept(item)).await, cost(&with, 9), "a key costs one row: itself, and when it is looked at");
    let with = rows(&[&CHANGED, &[("insert log", 1), ("update log_heads", 1), ("insert flagged", 1), LEFT]]);
    let refused = Outcome::Rejected { failure: failure(FailureCode::ContentRejected) };
    let end = async { drop(h.step(keyed, settle(0, 1, refused)).await) };
    assert_eq!(measure(h, &schema, end).await, cost(&with, 3), "a failure is listed");
    let repeated = async { drop(h.store.accept(with_key(h.item(&phone(1)), "key", 1)).await.unwrap()) };
    assert_eq!(measure(h, &schema, repeated).await, cost(&[], 0), "a repeated request writes nothing");

    let new = rows(&[&born, &[("insert addresses", 1), ("insert contacts", 1)]]);
    assert_eq!(measure(h, &schema, accept(h.item(&phone(2)))).await, cost(&new, 10), "a new recipient");
    let batch: Vec<_> = (0..10).map(|_| h.item(&phone(1))).collect();
    let crowd = async { drop(h.accept_at_once(batch).await) };
    let ten = rows(&[&[("insert messages", 10), ("insert states", 10)], &BATCH]);
    assert_eq!(measure(h, &schema, crowd).await, cost(&ten, 34), "ten in a transaction share a row of the log and one of the agenda");
}

/// A message adds some 240 bytes of JSON to the row of its batch.
pub(crate) async fn the_entries_of_a_batch_are_compressed(h: &Harness) {
    h.accept_at_once((0..60).map(|n| h.claimed(&phone(n))).collect()).await;
    let longest = h.sql("SELECT CAST(MAX(LENGTH(entries)) AS TEXT) FROM log").await;
    let bytes: usize = longest[0][0].as_ref().unwrap().parse().unwrap();
    assert!((60 * 16..60 * 60).contains(&bytes), "{bytes} bytes for 60 messages");
}

/// Values that PostgreSQL moves out of a row cost a row each for every 2 KB, and an index entry.
pub(crate) async fn rows_of_a_large_batch_stay_whole(h: &Harness) {
    h.accept_at_once((0..200).map(|n| h.claimed(&phone(n))).collect()).await;
    for (table, column) in [("log", "entries"), ("agenda", "ids")] {
        assert!(h.number(&format!("SELECT CAST(MAX(LENGTH({column})) AS BIGINT) FROM {table}")).await > 2_048, "{table}: a large value");
        let moved = format!("SELECT CAST(pg_relation_size(reltoastrelid) AS BIGINT) FROM pg_class WHERE oid = '{table}'::regclass");
        assert_eq!(h.number(&moved).await, 0, "{table}");
    }
}

/// Bytes that a message to a known recipient adds to the write-ahead log. Batches of 60 always share a transaction, which carries at least
/// 64 items. PostgreSQL has one log per server, which would include other tests; the benchmark measures it.
pub(crate) async fn a_message_writes_few_bytes(h: &Harness) {
    let Target::Sqlite(path) = &h.target else { return };
    let log = path.with_file_name(format!("{}-wal", path.file_name().unwrap().to_string_lossy()));
    let size = || std::fs::metadata(&log).unwrap().len();
    let recipients = || (0..60).map(phone);
    let known = recipients().map(|to| h.claimed(&to)).collect();
    h.accept_at_once(known).await;
    let items: Vec<_> = recipients().map(|to| h.claimed(&to)).collect();
    let ids: Vec<_> = items.iter().map(|item| item.message.id).collect();
    let mut costs = Vec::new();
    let mut before = size();
    let mut note = |what| {
        costs.push((what, (size() - before) / 60));
        before = size();
    };
    h.accept_at_once(items).await;
    note("accept");
    h.steps_at_once(ids.iter().map(|id| h.transition(*id, settle(0, 1, taken("p")))).collect()).await;
    note("settle");
    h.steps_at_once(ids.iter().map(|id| h.transition(*id, receipt(ReceiptKind::Delivered, h.tick()))).collect()).await;
    note("receipt");
    let limits = [1_800, 1_250, 1_150];
    assert!(costs.iter().zip(limits).all(|((_, cost), limit)| *cost <= limit), "{costs:?}, at most {limits:?}");
}

pub(crate) async fn a_message_with_a_price_costs_a_few_more(h: &Harness) {
    let schema = Schema::of(h).await;
    h.accept(h.item(&phone(1))).await;
    let priced = |mut item: Accept| {
        let quote = Quote { channel: Channel::Sms, cost: message::Cost { fee: Micros(1), provider: Micros(2) }, state: QuoteState::Open };
        item.message.state.detail.money = Some(Money { quotes: vec![quote], ..Money::default() });
        item
    };
    let first = h.accept(priced(h.claimed(&phone(1)))).await; // the tenant has a balance from now on
    watch(h, &schema).await;
    // One transfer per message, and one update of the balance for all.
    let batch: Vec<_> = (0..10).map(|_| priced(h.item(&phone(1)))).collect();
    let crowd = async { drop(h.accept_at_once(batch).await) };
    let moved = ("update balances", 1);
    let ten = rows(&[&[("insert messages", 10), ("insert states", 10), ("insert ledger", 10), moved], &BATCH]);
    assert_eq!(measure(h, &schema, crowd).await, cost(&ten, 54));
    let settled = async { drop(h.step(first.id, settle(0, 1, taken("p"))).await) };
    let changed = cost(&rows(&[&CHANGED, &BATCH, &[LEFT]]), 4);
    assert_eq!(measure(h, &schema, settled).await, changed, "nothing is known before it arrives");
    let delivered = async { drop(h.step(first.id, receipt(ReceiptKind::Delivered, h.tick())).await) };
    let paid = cost(&rows(&[&CHANGED, &[("insert log", 1), ("update log_heads", 1), ("insert ledger", 1), moved, LEFT]]), 4);
    assert_eq!(measure(h, &schema, delivered).await, paid);
}
