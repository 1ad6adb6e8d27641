//! Lists of messages.

use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::message::{Message, Status};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, TenantId};
use nuncio_store::{IdempotentOperation, MessageFilter, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::super::query::{Condition, Joined, List, all, any_of, is};
use super::super::{Db, SqlTx, dialect};
use super::{COLUMNS, STATES, outline};
use crate::message_batch::{FAILED, HELD};
use crate::row::{MessageRow, of_contact};

/// Most streams of one list: SQLite refuses a statement of more than 500 parts.
const STREAMS: usize = 100;
/// Failed or held messages.
const FLAGGED: &str = "flagged f JOIN messages m ON m.tenant_id = f.tenant_id AND m.id = f.id";

pub(super) async fn list_messages(tx: &mut SqlTx, tenant: TenantId, filter: &MessageFilter, page: PageRequest) -> Result<Page<Message>> {
    let flagged = flag(filter).is_some();
    let list = List {
        columns: COLUMNS,
        table: if flagged { FLAGGED } else { "messages m" },
        id: if flagged { "f.id" } else { "m.id" },
        joined: Some(Joined { join: STATES, id: "s.id" }),
        streams: message_streams(tx, tenant, filter).await?,
        filter: all(conditions(filter)),
    };
    let page = tx.page::<MessageRow>(list, page).await?;
    Ok(Page { items: page.items.into_iter().map(outline).collect::<Result<_>>()?, next: page.next })
}

/// Conditions that no index serves, except those that [`message_streams`] begins with.
fn conditions(filter: &MessageFilter) -> Vec<Condition> {
    let mut all: Vec<Condition> = Vec::new();
    all.extend(any_of("s.status", filter.status.iter().filter(|_| flag(filter) != Some(FAILED)).map(|s| s.number())));
    all.extend(any_of("s.held", filter.held.iter().map(|reason| reason.number())));
    all.extend(any_of("s.channel", filter.channel.iter().map(|c| c.number())));
    all.extend(filter.direction.map(|direction| is("m.direction", direction.number())));
    all.extend(filter.to.clone().filter(|_| by_key(filter)).map(|to| is("m.recipient", to)));
    all.extend(filter.from.clone().map(|from| is("m.sent_from", from)));
    all.extend(filter.sender.map(|sender| is("m.sender_id", sender.uuid())));
    all.extend(filter.broadcast.map(|broadcast| part_of(broadcast)));
    all.extend(filter.metadata.iter().map(|(key, value)| dialect::json_entry("m.request", "metadata", key, value)));
    all.extend(filter.text.as_deref().map(|part| dialect::json_contains("m.request", "text", part)));
    all
}

/// Whether the list begins with what a narrower index has than that of addresses.
const fn by_key(filter: &MessageFilter) -> bool {
    filter.idempotency_key.is_some() || filter.contact.is_some()
}

/// Returns the part of `flagged` that the list begins with: held messages, or failed ones unless a narrower index serves the page.
fn flag(filter: &MessageFilter) -> Option<i16> {
    let failed = filter.status == [Status::Failed] && !by_key(filter) && filter.to.is_none();
    if filter.held.is_empty() { failed.then_some(FAILED) } else { Some(HELD) }
}

/// Matches the encoded detail of a message. No text in it can match, since it is JSON.
fn part_of(broadcast: BroadcastId) -> Condition {
    let pattern = format!("%\"b\":{{\"i\":\"{broadcast}\"%");
    Box::new(move |query| {
        query.push("s.detail LIKE ").push_bind(pattern.clone());
    })
}

/// The messages of a list, as far as indexes can select them.
async fn message_streams(tx: &mut SqlTx, tenant: TenantId, filter: &MessageFilter) -> Result<Vec<Condition>> {
    let key = filter.idempotency_key.clone();
    let flag = flag(filter);
    let not_before = filter.broadcast.map(|broadcast| uuid_floor(broadcast.created_at()));
    let all = move |query: &mut QueryBuilder<Db>| {
        let first = if flag.is_some() { "f" } else { "m" };
        query.push(first).push(".tenant_id = ").push_bind(tenant.0);
        if let Some(kind) = flag {
            query.push(" AND f.kind = ").push(kind);
        }
        if let Some(not_before) = not_before {
            query.push(" AND ").push(first).push(".id >= ").push_bind(not_before);
        }
    };
    let streams = match (filter.contact, &filter.to) {
        (Some(contact), _) => {
            let addresses = tx
                .column(sql!(
                    concat!(
                        "SELECT id FROM addresses WHERE tenant_id = $1 AND ",
                        of_contact!(),
                        " UNION ALL SELECT id FROM removed_addresses WHERE tenant_id = $1 AND contact_id = $2 ORDER BY id"
                    ),
                    [tenant, contact]
                ))
                .await?;
            grouped(&addresses).map(|group| with_addresses(all, group, None)).collect()
        }
        (None, Some(to)) if !by_key(filter) => streams_to(tx, tenant, to, all).await?,
        _ => vec![Box::new(all) as Condition],
    };
    Ok(streams.into_iter().map(|stream| with_key(tenant, key.clone(), stream)).collect())
}

/// Messages sent to an address, and messages received at it.
async fn streams_to(
    tx: &mut SqlTx,
    tenant: TenantId,
    to: &str,
    all: impl Fn(&mut QueryBuilder<Db>) + Clone + Send + Sync + 'static,
) -> Result<Vec<Condition>> {
    let addresses = tx
        .column(sql!(
            r"
            SELECT id
            FROM addresses
            WHERE tenant_id = $1 AND kind IN (1, 2, 3, 4) AND identifier = $2
            UNION ALL
            SELECT id
            FROM removed_addresses
            WHERE tenant_id = $1 AND identifier = $2
            ORDER BY id",
            [tenant, to]
        ))
        .await?;
    let sent = grouped(&addresses).map(|group| with_addresses(all.clone(), group, Some(to.to_owned())));
    let (of, to) = (all.clone(), to.to_owned());
    let received: Condition = Box::new(move |query| {
        of(query);
        query.push(" AND m.direction = 2 AND m.recipient = ").push_bind(to.clone());
    });
    Ok(sent.chain([received]).collect())
}

/// Divides addresses among at most [`STREAMS`] streams; usually each has its own.
fn grouped(addresses: &[Uuid]) -> impl Iterator<Item = Vec<Uuid>> {
    addresses.chunks(addresses.len().div_ceil(STREAMS).max(1)).map(<[Uuid]>::to_vec)
}

/// Of these messages those of some addresses; with `to`, only those sent to it.
fn with_addresses(all: impl Fn(&mut QueryBuilder<Db>) + Send + Sync + 'static, addresses: Vec<Uuid>, to: Option<String>) -> Condition {
    Box::new(move |query| {
        all(query);
        match addresses.as_slice() {
            [address] => {
                query.push(" AND m.address_id = ").push_bind(*address);
            }
            several => dialect::push_in(query, "m.address_id", several.iter().copied()),
        }
        if let Some(to) = &to {
            query.push(" AND m.direction = 1 AND m.recipient = ").push_bind(to.clone());
        }
    })
}

/// Of these messages only the one that was sent with `key`, if a key is given.
fn with_key(tenant: TenantId, key: Option<String>, stream: Condition) -> Condition {
    let Some(key) = key else { return stream };
    Box::new(move |query| {
        stream(query);
        query.push(" AND m.id IN (SELECT resource_id FROM idempotency_keys WHERE tenant_id = ").push_bind(tenant.0);
        query
            .push(" AND operation = ")
            .push_bind(IdempotentOperation::SendMessage.number())
            .push(" AND key = ")
            .push_bind(key.clone())
            .push(")");
    })
}
