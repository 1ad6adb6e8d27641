//! Webhook deliveries, and nodes that read the log for them.

use async_trait::async_trait;
use nuncio_domain::event::EventType;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::NodeId;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::webhook::DeliveryStatus;
use nuncio_domain::{DeliveryId, SenderId, TenantId, Timestamp};
use nuncio_store::{Delivery, DeliveryFilter, DeliveryRepo, LogReader, Position, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List, all, any_of, is, of_tenant};
use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::{corrupt, json};

const COLUMNS: &str = r"
    id, sender_id, event_id, event_type, kind, resource_id, sequence, url, status, tries, due_at,
    attempts, reason, replays, updated_at";

impl Record for Delivery {
    const TABLE: &'static str = "deliveries";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let event_type: String = row.get("event_type")?;
        Ok(Self {
            id: row.get("id")?,
            sender: of(row.get("sender_id")?),
            event: row.get("event_id")?,
            event_type: EventType::parse(&event_type).ok_or_else(|| corrupt(Self::TABLE, format!("event_type {event_type}")))?,
            kind: row.get("kind")?,
            resource: row.get("resource_id")?,
            sequence: row.get("sequence")?,
            url: row.get("url")?,
            status: row.get("status")?,
            tries: row.get("tries")?,
            due_at: row.get("due_at")?,
            attempts: row.json("attempts")?,
            reason: row.get("reason")?,
            replays: row.get("replays")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

fn deliveries() -> QueryBuilder<Db> {
    let mut query = QueryBuilder::<Db>::new("SELECT ");
    query.push(COLUMNS).push(" FROM deliveries d WHERE tenant_id = ");
    query
}

fn key(sender: Option<SenderId>) -> Uuid {
    sender.map_or(Uuid::nil(), |s| s.uuid())
}

fn of(key: Uuid) -> Option<SenderId> {
    (!key.is_nil()).then(|| SenderId::from_uuid(key))
}

fn push_types(query: &mut QueryBuilder<Db>, types: &[EventType]) {
    query.push("event_type IN (");
    let mut list = query.separated(", ");
    for event_type in types {
        list.push_bind(event_type.as_str());
    }
    query.push(")");
}

#[async_trait]
impl DeliveryRepo for SqlTx {
    async fn open_log(&mut self, tenant: TenantId, from: Position, now: Timestamp) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO webhook_cursors (tenant_id, position, entry, owner, fence)
                VALUES ($1, $2, $3, NULL, $4)
                ON CONFLICT (tenant_id) DO NOTHING",
            [tenant, from.commit, from.entry, now]
        ))
        .await
    }

    async fn close_log(&mut self, tenant: TenantId) -> Result<()> {
        self.write(sql!("DELETE FROM webhook_cursors WHERE tenant_id = $1", [tenant])).await
    }

    async fn log_readers(&mut self) -> Result<Vec<LogReader>> {
        let rows = self
            .all(sql!(
                r"
                SELECT c.tenant_id, c.position, c.entry, c.owner, c.fence, w.epoch, COALESCE(h.position, 0)
                FROM webhook_cursors c
                JOIN worlds w ON w.tenant_id = c.tenant_id
                LEFT JOIN log_heads h ON h.tenant_id = c.tenant_id
                ORDER BY c.tenant_id"
            ))
            .await?;
        let reader = |(tenant, commit, entry, owner, fence, epoch, head)| LogReader {
            tenant,
            read: Position { commit, entry },
            owner,
            fence,
            epoch,
            head,
        };
        Ok(rows.into_iter().map(reader).collect())
    }

    async fn claim_log(&mut self, tenant: TenantId, fence: i64, node: Option<NodeId>) -> Result<Option<i64>> {
        let claimed = self
            .changes(sql!(
                r"
                UPDATE webhook_cursors
                SET owner = $3, fence = fence + 1
                WHERE tenant_id = $1 AND fence = $2",
                [tenant, fence, node]
            ))
            .await?;
        Ok(claimed.then_some(fence + 1))
    }

    async fn waiting_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Option<SenderId>>> {
        // Each webhook is one look into the index, however many deliveries wait.
        let rows = self
            .column(sql!(
                r"
                SELECT sender_id
                FROM webhooks w
                WHERE tenant_id = $1
                  AND EXISTS (
                      SELECT 1
                      FROM deliveries d
                      WHERE d.tenant_id = w.tenant_id
                        AND d.sender_id = w.sender_id
                        AND d.due_at IS NOT NULL
                  )",
                [tenant]
            ))
            .await?;
        Ok(rows.into_iter().map(of).collect())
    }

    async fn due_deliveries(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        now: Timestamp,
        patience: i16,
        limit: u32,
    ) -> Result<Vec<Delivery>> {
        let mut query = deliveries();
        query.push_bind(tenant.0).push(" AND sender_id = ").push_bind(key(sender)).push(" AND due_at <= ").push_bind(now.millis());
        // `+ 0` keeps PostgreSQL out of `deliveries_due_idx`, which it takes before it has statistics: each delivery was then compared with
        // all that wait, and 4,000 took 2.6 s. `deliveries_resource_idx` leads to the few of its resource.
        query.push(
            r"
                AND NOT EXISTS (
                    SELECT 1
                    FROM deliveries e
                    WHERE e.tenant_id = d.tenant_id
                      AND e.resource_id = d.resource_id
                      AND e.sender_id = d.sender_id
                      AND e.due_at + 0 IS NOT NULL
                      AND e.sequence < d.sequence
                      AND e.tries < ",
        );
        query.push_bind(patience).push(") ORDER BY due_at, id LIMIT ").push_bind(i64::from(limit));
        self.all(query.build()).await
    }

    async fn next_delivery_at(&mut self, tenant: TenantId, sender: Option<SenderId>, after: Timestamp) -> Result<Option<Timestamp>> {
        self.value(sql!(
            r"
                SELECT due_at
                FROM deliveries
                WHERE tenant_id = $1 AND sender_id = $2 AND due_at > $3
                ORDER BY due_at
                LIMIT 1",
            [tenant, key(sender), after]
        ))
        .await
    }

    async fn waiting_resources(&mut self, tenant: TenantId, sender: Option<SenderId>, resources: &[Uuid]) -> Result<Vec<Uuid>> {
        if resources.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT DISTINCT resource_id FROM deliveries WHERE tenant_id = ");
        query.push_bind(tenant.0).push(" AND sender_id = ").push_bind(key(sender)).push(" AND due_at + 0 IS NOT NULL");
        dialect::push_in(&mut query, "resource_id", resources.iter().copied());
        self.column(query.build()).await
    }

    async fn known_deliveries(&mut self, tenant: TenantId, deliveries: &[DeliveryId]) -> Result<Vec<DeliveryId>> {
        if deliveries.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT id FROM deliveries WHERE tenant_id = ");
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "id", deliveries.iter().map(|id| id.uuid()));
        self.column(query.build()).await
    }

    async fn insert_delivery(&mut self, tenant: TenantId, delivery: &Delivery) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO deliveries (tenant_id, id, sender_id, event_id, event_type, kind, resource_id, sequence,
                    url, status, tries, due_at, attempts, reason, replays, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)",
            [
                tenant,
                delivery.id,
                key(delivery.sender),
                delivery.event,
                delivery.event_type.as_str(),
                delivery.kind,
                delivery.resource,
                delivery.sequence,
                &delivery.url,
                delivery.status,
                delivery.tries,
                delivery.due_at,
                json(&delivery.attempts)?,
                delivery.reason.as_deref(),
                delivery.replays,
                delivery.updated_at,
            ]
        ))
        .await
    }

    async fn find_delivery(&mut self, tenant: TenantId, id: DeliveryId) -> Result<Option<Delivery>> {
        let mut query = deliveries();
        query.push_bind(tenant.0).push(" AND id = ").push_bind(id.uuid());
        self.optional(query.build()).await
    }

    async fn list_deliveries(&mut self, tenant: TenantId, filter: &DeliveryFilter, page: PageRequest) -> Result<Page<Delivery>> {
        let resource = filter.resource.map(|resource| is("resource_id", resource));
        // The condition of the index of unfinished ones must appear in the query exactly as in the index.
        let unfinished = resource.is_none() && !filter.status.is_empty() && !filter.status.contains(&DeliveryStatus::Delivered);
        let streams = vec![of_tenant(tenant.0, move |query| {
            if let Some(resource) = &resource {
                query.push(" AND ");
                resource(query);
            }
            query.push(if unfinished { " AND status <> 2" } else { "" });
        })];
        let mut conditions: Vec<Condition> = any_of("status", filter.status.iter().map(|s| s.number())).into_iter().collect();
        if let Some(sender) = filter.sender {
            conditions.push(is("sender_id", key(sender)));
        }
        if !filter.event_type.is_empty() {
            let types = filter.event_type.clone();
            conditions.push(Box::new(move |query| push_types(query, &types)));
        }
        let list = List { joined: None, columns: COLUMNS, table: "deliveries", id: "id", streams, filter: all(conditions) };
        self.page(list, page).await
    }

    async fn replay_delivery(&mut self, tenant: TenantId, id: DeliveryId, now: Timestamp) -> Result<bool> {
        // `replays` starts again before it is too large: only whether it has changed matters.
        self.changes(sql!(
            r"
                UPDATE deliveries
                SET status = 1, tries = 0, due_at = $3, reason = NULL, replays = (replays + 1) % 32768, updated_at = $3
                WHERE tenant_id = $1 AND id = $2",
            [tenant, id, now]
        ))
        .await
    }

    async fn drop_deliveries(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        kept: &[EventType],
        reason: &str,
        now: Timestamp,
        limit: u32,
    ) -> Result<u64> {
        let mut query = QueryBuilder::<Db>::new("UPDATE deliveries SET status = 4, due_at = NULL, reason = ");
        query.push_bind(reason.to_owned()).push(", updated_at = ").push_bind(now.millis());
        query.push(" WHERE tenant_id = ").push_bind(tenant.0);
        query.push(" AND id IN (SELECT id FROM deliveries WHERE tenant_id = ").push_bind(tenant.0);
        query.push(" AND sender_id = ").push_bind(key(sender));
        query.push(" AND due_at IS NOT NULL AND updated_at <= ").push_bind(now.millis());
        if !kept.is_empty() {
            query.push(" AND NOT ");
            push_types(&mut query, kept);
        }
        query.push(" ORDER BY due_at LIMIT ").push_bind(i64::from(limit)).push(")");
        self.run(query.build()).await
    }
}
