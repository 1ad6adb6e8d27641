//! Unfinished messages, found through the agenda.

use std::collections::{BTreeMap, BTreeSet};

use async_trait::async_trait;
use nuncio_domain::id::{Id as _, uuid_floor};
use nuncio_domain::message::NodeId;
use nuncio_domain::{ConnectionId, MessageId, SenderId, TenantId, Timestamp};
use nuncio_store::{AgendaKey, AgendaPlace, AgendaRepo, AwaitingReceipt, AwaitingReceipts, Due, DueMessage, Result, Skip};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::super::{Columns, Db, Record, SqlTx, dialect};
use crate::agenda::members;
use crate::row::{DueRow, select_due};

/// Agenda rows that are read at once.
const AGENDA_ROWS: usize = 16;
/// Due agenda rows that are read at once: more, since PostgreSQL sorts all of them for each page.
const DUE_ROWS: usize = 128;
/// How many messages one look expands, roughly: some tenths of a second.
const AGENDA_LOOK: usize = 65_536;
/// What reading a row costs, in messages.
const ROW_COST: usize = 16;
/// Agenda rows that one statement deletes at most.
const AGENDA_DELETES: usize = 256;

/// Every shard.
const SHARDS: [i16; 64] = {
    let mut all = [0; 64];
    let mut shard = 0;
    while shard < 64 {
        all[shard] = shard as i16;
        shard += 1;
    }
    all
};

/// A row of the agenda, as it is read.
struct AgendaRow {
    tenant_id: i64,
    id: i64,
    due_at: Option<i64>,
    decide_at: i64,
    ids: Vec<u8>,
}

impl Record for AgendaRow {
    const TABLE: &'static str = "agenda";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            tenant_id: row.get("tenant_id")?,
            id: row.get("id")?,
            due_at: row.get("due_at")?,
            decide_at: row.get("decide_at")?,
            ids: row.get("ids")?,
        })
    }
}

/// A query for [`AgendaRow`]s.
macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT tenant_id, id, due_at, decide_at, ids FROM agenda", $rest)
    };
}

#[async_trait]
impl AgendaRepo for SqlTx {
    async fn due_messages(&mut self, shards: &[i16], skip: &Skip, now: Timestamp, limit: u32) -> Result<Due> {
        let mut due = look(self, shards, &Connections::Except(skip), now, limit).await?;
        if !skip.all.is_empty() || !skip.bulk.is_empty() {
            // Apart, since rows that also guard messages of a longer validity come again and again.
            let decided = look(self, shards, &Connections::DecidedOf(skip), now, limit).await?;
            due.messages.extend(decided.messages);
            due.stale.extend(decided.stale);
        }
        Ok(due)
    }

    async fn delete_agenda_rows(&mut self, rows: &[AgendaKey]) -> Result<()> {
        let mut tenants: BTreeMap<TenantId, Vec<i64>> = BTreeMap::new();
        for (tenant, id) in rows {
            tenants.entry(*tenant).or_default().push(*id);
        }
        for (tenant, ids) in tenants {
            for part in ids.chunks(AGENDA_DELETES) {
                let mut query = QueryBuilder::<Db>::new("DELETE FROM agenda WHERE tenant_id = ");
                query.push_bind(tenant.0).push(" AND id IN (");
                let mut list = query.separated(", ");
                for id in part {
                    list.push_bind(*id);
                }
                self.run(query.push(")").build()).await?;
            }
        }
        Ok(())
    }

    async fn overdue_messages(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<Vec<DueMessage>> {
        let mut query = QueryBuilder::<Db>::new(select!(
            r"
            WHERE due_at IS NOT NULL AND due_at < "
        ));
        query.push_bind(before.millis());
        dialect::push_shards(&mut query, &SHARDS);
        query.push(" AND connection_id IS NOT NULL AND tenant_id = ").push_bind(tenant.0);
        query.push(" ORDER BY due_at, id LIMIT ").push_bind(i64::from(limit));
        let rows: Vec<AgendaRow> = self.all(query.build()).await?;
        let mut found = Vec::new();
        for part in rows.chunks(AGENDA_ROWS) {
            let live = guarded_by(self, part).await?;
            found.extend(live.into_iter().filter(|row| row.wait == 1 && row.due_at.is_some_and(|due| due < before.millis())));
            if found.len() >= limit as usize {
                break;
            }
        }
        found.sort_by_key(|row| row.due_at);
        found.truncate(limit as usize);
        Ok(found.into_iter().map(DueRow::decode).collect())
    }

    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Due> {
        let (mut found, mut stale, mut after) = (Vec::new(), Vec::new(), (i64::MIN, i64::MIN));
        while found.len() < limit as usize {
            let rows: Vec<AgendaRow> = self
                .all(sql!(
                    select!(
                        r"
                WHERE owner = $1 AND (tenant_id, id) > ($2, $3)
                ORDER BY tenant_id, id
                LIMIT $4"
                    ),
                    [node, after.0, after.1, AGENDA_ROWS as i64]
                ))
                .await?;
            let Some(last) = rows.last() else { break };
            after = (last.tenant_id, last.id);
            let live = guarded_by(self, &rows).await?;
            stale.extend(stale_among(&rows, &live));
            found.extend(live);
        }
        found.truncate(limit as usize);
        Ok(Due { messages: found.into_iter().map(DueRow::decode).collect(), stale })
    }

    async fn waiting_messages(&mut self, shard: i16, limit: u32) -> Result<Vec<DueMessage>> {
        let (mut found, mut after) = (Vec::new(), (i64::MIN, i64::MIN, i64::MIN));
        while found.len() < limit as usize {
            let rows: Vec<AgendaRow> = self
                .all(sql!(
                    select!(
                        r"
                WHERE shard = $1
                  AND due_at IS NOT NULL
                  AND connection_id IS NOT NULL
                  AND (due_at, tenant_id, id) > ($2, $3, $4)
                ORDER BY due_at, tenant_id, id
                LIMIT $5"
                    ),
                    [shard, after.0, after.1, after.2, AGENDA_ROWS as i64]
                ))
                .await?;
            let Some(last) = rows.last() else { break };
            after = (last.due_at.unwrap_or_default(), last.tenant_id, last.id);
            found.extend(guarded_by(self, &rows).await?.into_iter().filter(|row| row.wait == 1));
        }
        found.sort_by_key(|row| row.due_at);
        found.truncate(limit as usize);
        Ok(found.into_iter().map(DueRow::decode).collect())
    }

    async fn messages_awaiting_receipts(&mut self, shard: i16, before: Option<AgendaPlace>) -> Result<Option<AwaitingReceipts>> {
        let before = before.unwrap_or(AgendaPlace { due_at: Timestamp::from_millis(i64::MAX), tenant: TenantId(i64::MAX), row: i64::MAX });
        let rows: Vec<AgendaRow> = self
            .all(sql!(
                select!(
                    r"
            WHERE shard = $1
              AND due_at IS NOT NULL
              AND connection_id IS NULL
              AND due_at <= $2
              AND (due_at, tenant_id, id) < ($2, $3, $4)
            ORDER BY due_at DESC, tenant_id DESC, id DESC
            LIMIT $5"
                ),
                [shard, before.due_at, before.tenant, before.row, AGENDA_ROWS as i64]
            ))
            .await?;
        let Some(last) = rows.last() else { return Ok(None) };
        let next =
            AgendaPlace { due_at: Timestamp::from_millis(last.due_at.unwrap_or_default()), tenant: TenantId(last.tenant_id), row: last.id };
        let mut waiting: Vec<DueRow> = guarded_by(self, &rows).await?.into_iter().filter(|row| row.wait == 3).collect();
        waiting.sort_unstable_by_key(|row| std::cmp::Reverse((row.due_at, row.id)));
        let messages = waiting.into_iter().map(|mut row| {
            let (provider, has_fallback) = (std::mem::take(&mut row.provider), row.has_fallback);
            AwaitingReceipt { message: row.decode(), provider, has_fallback }
        });
        Ok(Some(AwaitingReceipts { messages: messages.collect(), next }))
    }

    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool> {
        if let Some(since) = since {
            // A span of the key.
            let (found,): (i64,) = self
                .one(sql!(
                    r"
                    SELECT CAST(COUNT(*) AS BIGINT)
                    FROM (
                        SELECT 1
                        FROM messages m
                        JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id
                        WHERE m.tenant_id = $1
                          AND m.id >= $3
                          AND m.sender_id = $2
                          AND s.wait IN (1, 2, 4)
                        LIMIT 1
                    ) q",
                    [tenant, sender, uuid_floor(since)]
                ))
                .await?;
            return Ok(found > 0);
        }
        let mut after = i64::MIN;
        loop {
            let rows: Vec<AgendaRow> = self
                .all(sql!(
                    select!(
                        r"
                WHERE tenant_id = $1 AND id > $2
                ORDER BY id
                LIMIT $3"
                    ),
                    [tenant, after, AGENDA_ROWS as i64]
                ))
                .await?;
            let Some(last) = rows.last() else { return Ok(false) };
            after = last.id;
            let live = guarded_by(self, &rows).await?;
            let waiting: Vec<Uuid> = live.iter().filter(|row| matches!(row.wait, 1 | 2 | 4)).map(|row| row.id).collect();
            if waiting.is_empty() {
                continue;
            }
            let mut query = QueryBuilder::<Db>::new("SELECT CAST(COUNT(*) AS BIGINT) FROM messages WHERE tenant_id = ");
            query.push_bind(tenant.0).push(" AND sender_id = ").push_bind(sender.uuid());
            dialect::push_in(&mut query, "id", waiting);
            let (found,): (i64,) = self.one(query.build()).await?;
            if found > 0 {
                return Ok(true);
            }
        }
    }

    async fn owners(&mut self) -> Result<Vec<NodeId>> {
        self.column(sql!("SELECT DISTINCT owner FROM agenda WHERE owner IS NOT NULL")).await
    }

    async fn held_messages(&mut self, after: Option<(TenantId, MessageId)>, limit: u32) -> Result<Vec<DueMessage>> {
        let (tenant, id) = after.map_or((0, Uuid::nil()), |(tenant, id)| (tenant.0, id.uuid()));
        let rows: Vec<DueRow> = self
            .all(sql!(
                concat!(
                    select_due!(),
                    r"
                JOIN flagged f ON f.tenant_id = s.tenant_id AND f.id = s.id AND f.kind = 2
                WHERE (f.tenant_id, f.id) > ($1, $2)
                ORDER BY f.tenant_id, f.id
                LIMIT $3"
                ),
                [tenant, id, limit]
            ))
            .await?;
        Ok(rows.into_iter().map(DueRow::decode).collect())
    }
}

/// Which rows of the agenda to look at.
enum Connections<'a> {
    /// Deadlines, and attempts except these.
    Except(&'a Skip),
    /// Of these attempts, rows with a message that is decided about even if none can start.
    DecidedOf(&'a Skip),
}

impl Connections<'_> {
    fn push(&self, query: &mut QueryBuilder<Db>, now: Timestamp) {
        let skip = match self {
            Self::Except(skip) => {
                query.push(" AND (connection_id IS NULL OR NOT (");
                skip
            }
            Self::DecidedOf(skip) => {
                query.push(" AND (decide_at <= ").push_bind(now.millis()).push(" AND (");
                skip
            }
        };
        push_connections(query, &skip.all);
        query.push(" OR bulk <> 0 AND ");
        push_connections(query, &skip.bulk);
        query.push("))");
    }

    fn has(&self, row: &DueRow, fallback_is_due: bool, now: Timestamp) -> bool {
        match self {
            Self::Except(skip) => row.wait != 1 || !skips(skip, row),
            Self::DecidedOf(_) => fallback_is_due || row.expires_at <= now.millis(),
        }
    }
}

fn push_connections(query: &mut QueryBuilder<Db>, connections: &[ConnectionId]) {
    if connections.is_empty() {
        query.push("FALSE");
        return;
    }
    query.push("connection_id IN (");
    let mut list = query.separated(", ");
    for connection in connections {
        list.push_bind(connection.uuid());
    }
    query.push(")");
}

fn skips(skip: &Skip, row: &DueRow) -> bool {
    let connection = ConnectionId::from_uuid(row.connection_id);
    skip.all.contains(&connection) || row.bulk && skip.bulk.contains(&connection)
}

/// Returns due messages, and the stale ones of the rows that were read.
async fn look(tx: &mut SqlTx, shards: &[i16], of: &Connections<'_>, now: Timestamp, limit: u32) -> Result<Due> {
    let (mut found, mut stale, mut seen, mut after) = (Vec::new(), Vec::new(), 0, None::<(i64, i64, i64)>);
    while found.len() < limit as usize && seen < AGENDA_LOOK {
        let mut query = QueryBuilder::<Db>::new(select!(
            r"
            WHERE due_at IS NOT NULL AND due_at <= "
        ));
        query.push_bind(now.millis());
        dialect::push_shards(&mut query, shards);
        of.push(&mut query, now);
        if let Some((due, tenant, id)) = after {
            query.push(" AND (due_at, tenant_id, id) > (");
            let mut place = query.separated(", ");
            place.push_bind(due).push_bind(tenant).push_bind(id);
            query.push(")");
        }
        query.push(" ORDER BY due_at, tenant_id, id LIMIT ").push_bind(DUE_ROWS as i64);
        let rows: Vec<AgendaRow> = tx.all(query.build()).await?;
        let Some(last) = rows.last() else { break };
        after = Some((last.due_at.unwrap_or_default(), last.tenant_id, last.id));
        seen += rows.iter().map(|row| ROW_COST + row.ids.len() / 16).sum::<usize>();
        let live = guarded_by(tx, &rows).await?;
        stale.extend(stale_among(&rows, &live));
        let decided: BTreeSet<_> =
            rows.iter().filter(|row| row.decide_at <= now.millis()).map(|row| (row.tenant_id, Some(row.id))).collect();
        for row in live.into_iter().filter(|row| row.due_at.is_some_and(|due| due <= now.millis())) {
            let fallback_is_due = row.has_fallback && decided.contains(&(row.tenant_id, row.agenda));
            if of.has(&row, fallback_is_due, now) {
                found.push((row.due_at, DueMessage { fallback_is_due, ..row.decode() }));
            }
        }
        if rows.len() < DUE_ROWS {
            break;
        }
    }
    found.sort_by_key(|(due_at, _)| *due_at);
    found.truncate(limit as usize);
    Ok(Due { messages: found.into_iter().map(|(_, message)| message).collect(), stale })
}

/// The messages that these agenda rows still guard.
async fn guarded_by(tx: &mut SqlTx, rows: &[AgendaRow]) -> Result<Vec<DueRow>> {
    let mut tenants: BTreeMap<i64, (Vec<i64>, Vec<Uuid>)> = BTreeMap::new();
    for row in rows {
        let (agenda, ids) = tenants.entry(row.tenant_id).or_default();
        agenda.push(row.id);
        ids.extend(members(&row.ids)?);
    }
    let mut found = Vec::new();
    for (tenant, (agenda, ids)) in tenants {
        for part in ids.chunks(1_024) {
            let mut query = QueryBuilder::<Db>::new(concat!(select_due!(), " WHERE s.tenant_id = "));
            query.push_bind(tenant);
            dialect::push_in(&mut query, "s.id", part.iter().copied());
            query.push(" AND s.agenda IN (");
            let mut list = query.separated(", ");
            for row in &agenda {
                list.push_bind(*row);
            }
            query.push(")");
            found.extend(tx.all::<DueRow>(query.build()).await?);
        }
    }
    Ok(found)
}

/// The rows among these that guard none of the `live` messages.
fn stale_among(rows: &[AgendaRow], live: &[DueRow]) -> Vec<AgendaKey> {
    let guards: BTreeSet<(i64, Option<i64>)> = live.iter().map(|row| (row.tenant_id, row.agenda)).collect();
    let stale = rows.iter().filter(|row| !guards.contains(&(row.tenant_id, Some(row.id))));
    stale.map(|row| (TenantId(row.tenant_id), row.id)).collect()
}

impl SqlTx {
    /// Deletes the stale agenda rows of an owner.
    pub(in super::super) async fn prune_agenda_of(&mut self, node: NodeId) -> Result<()> {
        let rows: Vec<AgendaRow> = self
            .all(sql!(
                select!(
                    r"
            WHERE owner = $1
            ORDER BY tenant_id, id"
                ),
                [node]
            ))
            .await?;
        for part in rows.chunks(AGENDA_ROWS) {
            let live = guarded_by(self, part).await?;
            self.delete_agenda_rows(&stale_among(part, &live)).await?;
        }
        Ok(())
    }
}
