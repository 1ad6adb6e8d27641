//! Writes new messages and transitions in batches.
//!
//! New messages alone take one round trip ([`direct`]), if they cost nothing, belong to no broadcast, and no recipient has a suppression.
//! Any other transaction takes two: one updates the states of cached messages and reads what is known of new recipients, one writes
//! everything else and commits. Idempotency keys, ledger, quotas and uncached messages take one more each.
//!
//! Rows that several nodes may write are locked in one order everywhere: states, idempotency keys, recipients of broadcasts, addresses,
//! messages, ledger, balances, log heads.

mod accept;
mod agenda;
mod broadcasts;
mod commit;
mod direct;
mod keys;
mod ledger;
mod load;
mod log;
mod messages;
mod recipients;
mod references;
mod starts;
mod states;
mod tenants;
mod transaction;
mod transition;

use std::collections::BTreeMap;

use futures::future::join_all;
use nuncio_store::Result;
use tokio_postgres::Row;

use super::session::{self, failed, statements};

pub(super) use accept::find_accepted;
pub(super) use direct::DirectWrites;
pub(super) use load::load_message;
pub(super) use transaction::write;

statements! {
    insert_keys = keys::INSERT;
    insert_free_keys = keys::INSERT_FREE;
    find_keys = keys::FIND;
    delete_keys = keys::DELETE;
    find_references = references::FIND;
    insert_references = references::INSERT;
    insert_receipts = references::INSERT_RECEIPTS;
    balances = ledger::BALANCES;
    insert_transfers = ledger::INSERT;
    add_stored_bytes = tenants::ADD_STORED;
    move_balances = ledger::MOVE;
    find_tenants = tenants::FIND;
    find_recipients = recipients::FIND;
    insert_addresses = recipients::INSERT_ADDRESSES;
    insert_contacts = recipients::INSERT_CONTACTS;
    restore_suppressions = recipients::RESTORE_SUPPRESSIONS;
    check_usual = direct::CHECK;
    insert_unknown_addresses = recipients::INSERT_UNKNOWN_ADDRESSES;
    insert_unknown_contacts = recipients::INSERT_UNKNOWN_CONTACTS;
    insert_messages = messages::INSERT;
    insert_found_messages = messages::INSERT_FOUND;
    insert_states = states::INSERT;
    update_states = states::UPDATE;
    load_states = load::LOAD;
    suppressed = starts::SUPPRESSED;
    insert_flags = agenda::INSERT_FLAGS;
    delete_flags = agenda::DELETE_FLAGS;
    insert_agenda = agenda::INSERT;
    delete_agenda = agenda::DELETE;
    raise_heads = log::RAISE_HEADS;
    insert_log = log::INSERT;
    claim_contacts = broadcasts::CLAIM;
    with_status = broadcasts::WITH_STATUS;
    update_contacts = broadcasts::UPDATE;
    add_counts = broadcasts::ADD_COUNTS;
    chunks = load::CHUNKS;
    load_message = load::LOAD_MESSAGE;
}

/// A connection with the statements of message batches.
pub(super) type Session = session::Session<Statements>;
type PgResult<T> = std::result::Result<T, tokio_postgres::Error>;

/// Opens a connection.
pub(super) async fn open(url: &str) -> Result<Session> {
    let (client, task) = session::connect(url).await?;
    let statements = Statements::prepare(&client).await.map_err(failed)?;
    Ok(Session::new((client, task), statements))
}

/// One column of a batch, as an array parameter.
pub(super) fn column<'a, T, U>(items: &'a [T], value: impl Fn(&'a T) -> U) -> Vec<U> {
    items.iter().map(value).collect()
}

/// Runs a query for each tenant, all at once and in the order of tenants.
async fn for_each<A, Q: Future<Output = PgResult<Vec<Row>>>>(asked: BTreeMap<i64, A>, query: impl Fn(i64, A) -> Q) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for answer in join_all(asked.into_iter().map(|(tenant, values)| query(tenant, values))).await {
        rows.extend(answer.map_err(failed)?);
    }
    Ok(rows)
}
