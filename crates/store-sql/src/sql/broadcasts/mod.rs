//! Broadcasts.

mod links;
mod recipient_row;
mod recipients;

use async_trait::async_trait;
use nuncio_domain::broadcast::{Broadcast, Counts, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, TenantId, Timestamp};
use nuncio_store::{BroadcastRepo, DueBroadcast, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List};
use super::{Columns, Db, Record, SqlTx};
use crate::row::json;

/// All columns with the sum of the counts, in one statement, so that they are of one moment.
fn columns(html: &str) -> String {
    let mut columns =
        "b.tenant_id, b.id, b.status, b.channel, b.message_type, b.sender_id, b.version, b.due_at, b.starved, b.total, ".to_owned();
    columns += html;
    columns += " AS html, b.body, b.updated_at";
    for column in ["queued", "sending", "sent", "delivered", "failed", "skipped", "awaited", "taken", "cost", "prepaid", "held"] {
        columns += &format!(
            r",
            CAST(COALESCE((
                SELECT SUM(k.{column})
                FROM broadcast_counts k
                WHERE k.tenant_id = b.tenant_id AND k.broadcast_id = b.id
            ), 0) AS BIGINT) AS {column}"
        );
    }
    columns
}

/// One stream for each of `statuses`, as an index has them, or one for all.
fn by_status(
    column: &'static str,
    statuses: Vec<i16>,
    of: impl Fn(&mut QueryBuilder<Db>) + Clone + Send + Sync + 'static,
) -> Vec<Condition> {
    if statuses.is_empty() {
        return vec![Box::new(of)];
    }
    let stream = |status: i16| {
        let of = of.clone();
        Box::new(move |query: &mut QueryBuilder<Db>| {
            of(query);
            query.push(" AND ").push(column).push(" = ").push_bind(status);
        }) as Condition
    };
    statuses.into_iter().map(stream).collect()
}

/// The numbers of statuses, each once.
fn numbers(statuses: impl Iterator<Item = i16>) -> Vec<i16> {
    statuses.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
}

impl Record for Broadcast {
    const TABLE: &'static str = "broadcasts";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            tenant: row.get("tenant_id")?,
            id: row.get("id")?,
            status: row.get("status")?,
            channel: row.get("channel")?,
            message_type: row.get("message_type")?,
            sender: row.get("sender_id")?,
            version: row.get("version")?,
            due_at: row.get("due_at")?,
            starved: row.get::<i16>("starved")? != 0,
            total: row.get("total")?,
            html: row.get("html")?,
            body: row.json("body")?,
            updated_at: row.get("updated_at")?,
            counts: Counts {
                queued: row.get("queued")?,
                sending: row.get("sending")?,
                sent: row.get("sent")?,
                delivered: row.get("delivered")?,
                failed: row.get("failed")?,
                skipped: row.get("skipped")?,
                awaited: row.get("awaited")?,
                taken: row.get("taken")?,
                cost: row.get("cost")?,
                prepaid: row.get("prepaid")?,
                held: row.get("held")?,
            },
        })
    }
}

#[async_trait]
impl BroadcastRepo for SqlTx {
    async fn insert_broadcast(&mut self, broadcast: &Broadcast) -> Result<()> {
        let body = json(&broadcast.body)?;
        self.write(sql!(
            r"
            INSERT INTO broadcasts (tenant_id, id, status, channel, message_type, sender_id, version, fence,
                due_at, starved, total, html, body, updated_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, 0, 0, $9, $10, $11)",
            [
                broadcast.tenant, broadcast.id, broadcast.status, broadcast.channel, broadcast.message_type, broadcast.sender,
                broadcast.version, broadcast.due_at, &broadcast.html, body, broadcast.updated_at
            ]
        ))
        .await
    }

    async fn find_broadcast(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Option<Broadcast>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query
            .push(columns("b.html"))
            .push(" FROM broadcasts b WHERE b.tenant_id = ")
            .push_bind(tenant.0)
            .push(" AND b.id = ")
            .push_bind(id.uuid());
        self.optional(query.build()).await
    }

    async fn list_broadcasts(&mut self, tenant: TenantId, status: &[Status], page: PageRequest) -> Result<Page<Broadcast>> {
        let streams = by_status("b.status", numbers(status.iter().map(|s| s.number())), move |query| {
            query.push("b.tenant_id = ").push_bind(tenant.0);
        });
        let columns = columns("CAST(NULL AS TEXT)");
        let list = List { joined: None, columns: &columns, table: "broadcasts b", id: "b.id", streams, filter: None };
        self.page(list, page).await
    }

    async fn update_broadcast(&mut self, broadcast: &Broadcast, seen: i64) -> Result<bool> {
        let body = json(&broadcast.body)?;
        self.changes(sql!(
            r"
            UPDATE broadcasts
            SET status = $3, version = $4, fence = fence + 1, due_at = $5, html = $6, body = $7,
                updated_at = $8
            WHERE tenant_id = $1 AND id = $2 AND version = $9",
            [
                broadcast.tenant, broadcast.id, broadcast.status, broadcast.version, broadcast.due_at, &broadcast.html, body,
                broadcast.updated_at, seen
            ]
        ))
        .await
    }

    async fn delete_broadcast_contacts(&mut self, tenant: TenantId, id: BroadcastId, limit: u32) -> Result<Option<bool>> {
        if !self.grow_draft(tenant, id, 0).await? {
            return Ok(None);
        }
        // A span of the key: without statistics, PostgreSQL would compare each recipient with each of a list.
        let last: Option<Uuid> = self
            .value(sql!(
                r"
                SELECT id
                FROM broadcast_contacts
                WHERE tenant_id = $1 AND broadcast_id = $2
                ORDER BY id
                LIMIT 1
                OFFSET $3",
                [tenant, id, i64::from(limit) - 1]
            ))
            .await?;
        let mut query = QueryBuilder::<Db>::new("DELETE FROM broadcast_contacts WHERE tenant_id = ");
        query.push_bind(tenant.0).push(" AND broadcast_id = ").push_bind(id.uuid());
        if let Some(last) = last {
            query.push(" AND id <= ").push_bind(last);
        }
        let deleted = self.run(query.build()).await?;
        self.grow_draft(tenant, id, -(deleted as i64)).await?;
        if last.is_none() {
            self.run(sql!("DELETE FROM broadcast_imports WHERE tenant_id = $1 AND broadcast_id = $2", [tenant, id])).await?;
        }
        Ok(Some(last.is_none()))
    }

    async fn delete_draft_broadcast(&mut self, tenant: TenantId, id: BroadcastId, limit: u32) -> Result<Option<bool>> {
        let emptied = self.delete_broadcast_contacts(tenant, id, limit).await?;
        if emptied != Some(true) {
            return Ok(emptied);
        }
        self.run(sql!("DELETE FROM broadcasts WHERE tenant_id = $1 AND id = $2", [tenant, id])).await?;
        Ok(Some(true))
    }

    async fn due_broadcasts(&mut self, now: Timestamp, limit: u32, of_one: u32) -> Result<Vec<DueBroadcast>> {
        let rows = self
            .all(sql!(
                r"
                SELECT tenant_id, id, fence, due_at, cursor_id, starved
                FROM (
                    SELECT tenant_id, id, fence, due_at, cursor_id, starved,
                        ROW_NUMBER() OVER (PARTITION BY tenant_id ORDER BY due_at) AS place
                    FROM broadcasts
                    WHERE due_at IS NOT NULL AND due_at <= $1
                ) AS due
                WHERE place <= $3
                ORDER BY due_at
                LIMIT $2",
                [now, limit, of_one]
            ))
            .await?;
        let due = |(tenant, id, fence, due_at, cursor, starved): (_, _, _, _, _, i16)| {
            let starved = starved != 0;
            DueBroadcast { tenant, id, fence, due_at, cursor, starved }
        };
        Ok(rows.into_iter().map(due).collect())
    }

    async fn claim_broadcast(&mut self, due: &DueBroadcast, due_at: Option<Timestamp>) -> Result<bool> {
        self.changes(sql!(
            r"
            UPDATE broadcasts
            SET fence = fence + 1, due_at = $4, cursor_id = $5, starved = $6
            WHERE tenant_id = $1 AND id = $2 AND fence = $3",
            [due.tenant, due.id, due.fence, due_at, due.cursor, i16::from(due.starved)]
        ))
        .await
    }
}

impl SqlTx {
    /// Changes the number of recipients of a draft; `false` when it is none.
    async fn grow_draft(&mut self, tenant: TenantId, id: BroadcastId, by: i64) -> Result<bool> {
        self.changes(sql!(
            "UPDATE broadcasts SET total = total + $3 WHERE tenant_id = $1 AND id = $2 AND status = $4",
            [tenant, id, by, Status::Draft]
        ))
        .await
    }
}
