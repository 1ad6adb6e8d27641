//! Webhooks.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{SenderId, TenantId, Timestamp};
use nuncio_store::{Result, WebhookRepo};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::json;

impl Record for Webhook {
    const TABLE: &'static str = "webhooks";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let sender: SenderId = row.get("sender_id")?;
        Ok(Self {
            sender: Some(sender).filter(|sender| !sender.uuid().is_nil()),
            url: row.get("url")?,
            events: row.json("events")?,
            active: row.get("active")?,
            sealed: row.get("sealed")?,
            failing_since: row.get("failing_since")?,
            disabled_reason: row.get("disabled_reason")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

fn key(sender: Option<SenderId>) -> Uuid {
    sender.map_or(Uuid::nil(), |s| s.uuid())
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            r"
                SELECT sender_id, url, events, active, sealed, failing_since, disabled_reason, created_at,
                    updated_at
                FROM webhooks
                WHERE tenant_id = ",
            $rest
        )
    };
}

const OF_SENDERS: &str = select!("");
const FIND: &str = select!("$1 AND sender_id = $2");
const LIST: &str = select!("$1 ORDER BY sender_id");

#[async_trait]
impl WebhookRepo for SqlTx {
    async fn put_webhook(&mut self, tenant: TenantId, webhook: &Webhook) -> Result<()> {
        let (sender, events) = (key(webhook.sender), json(&webhook.events)?);
        self.write(sql!(
            r"
                INSERT INTO webhooks (tenant_id, sender_id, url, events, active, sealed, failing_since,
                    disabled_reason, created_at, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                ON CONFLICT (tenant_id, sender_id) DO UPDATE SET
                    url = excluded.url,
                    events = excluded.events,
                    active = excluded.active,
                    sealed = excluded.sealed,
                    failing_since = excluded.failing_since,
                    disabled_reason = excluded.disabled_reason,
                    updated_at = excluded.updated_at",
            [
                tenant, sender, &webhook.url, events, webhook.active, &webhook.sealed, webhook.failing_since, &webhook.disabled_reason,
                webhook.created_at, webhook.updated_at
            ]
        ))
        .await
    }

    async fn find_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<Option<Webhook>> {
        self.optional(sql!(FIND, [tenant, key(sender)])).await
    }

    async fn webhooks_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Webhook>> {
        if senders.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(OF_SENDERS);
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "sender_id", senders.iter().map(|id| id.uuid()));
        self.all(query.build()).await
    }

    async fn list_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Webhook>> {
        self.all(sql!(LIST, [tenant])).await
    }

    async fn mark_webhook(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        seen: Timestamp,
        failing_since: Option<Timestamp>,
        disabled_reason: Option<&str>,
    ) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE webhooks
                SET failing_since = $4,
                    disabled_reason = $5,
                    active = CASE WHEN $5 IS NULL THEN active ELSE 0 END
                WHERE tenant_id = $1 AND sender_id = $2 AND updated_at = $3",
            [tenant, key(sender), seen, failing_since, disabled_reason]
        ))
        .await
    }

    async fn delete_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<bool> {
        self.changes(sql!("DELETE FROM webhooks WHERE tenant_id = $1 AND sender_id = $2", [tenant, key(sender)])).await
    }
}
