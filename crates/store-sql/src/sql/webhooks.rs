//! Webhooks.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Redacted, SenderId, TenantId, Timestamp};
use nuncio_store::{Result, WebhookRepo};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json};

from_row! {
    struct WebhookRow {
        sender_id: Uuid,
        url: String,
        events: String,
        active: i16,
        sealed: Vec<u8>,
        failing_since: Option<i64>,
        disabled_reason: Option<String>,
        updated_at: i64,
    }
}

impl WebhookRow {
    fn decode(self) -> Result<Webhook> {
        Ok(Webhook {
            sender: (!self.sender_id.is_nil()).then(|| SenderId::from_uuid(self.sender_id)),
            url: self.url,
            events: serde_json::from_str(&self.events).map_err(|e| corrupt("webhooks", e))?,
            active: self.active != 0,
            sealed: Redacted::new(self.sealed),
            failing_since: self.failing_since.map(Timestamp::from_millis),
            disabled_reason: self.disabled_reason,
            updated_at: Timestamp::from_millis(self.updated_at),
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
                SELECT sender_id, url, events, active, sealed, failing_since, disabled_reason, updated_at
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
        self.write(sql!(
            r"
                INSERT INTO webhooks (tenant_id, sender_id, url, events, active, sealed, failing_since,
                    disabled_reason, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT (tenant_id, sender_id) DO UPDATE SET
                    url = excluded.url,
                    events = excluded.events,
                    active = excluded.active,
                    sealed = excluded.sealed,
                    failing_since = excluded.failing_since,
                    disabled_reason = excluded.disabled_reason,
                    updated_at = excluded.updated_at",
            [
                tenant.0,
                key(webhook.sender),
                &webhook.url,
                json(&webhook.events)?,
                i16::from(webhook.active),
                webhook.sealed.expose(),
                webhook.failing_since.map(Timestamp::millis),
                &webhook.disabled_reason,
                webhook.updated_at.millis()
            ]
        ))
        .await
    }

    async fn find_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<Option<Webhook>> {
        let row: Option<WebhookRow> = self.optional(sql!(FIND, [tenant.0, key(sender)])).await?;
        row.map(WebhookRow::decode).transpose()
    }

    async fn webhooks_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Webhook>> {
        if senders.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(OF_SENDERS);
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "sender_id", senders.iter().map(|id| id.uuid()));
        let rows: Vec<WebhookRow> = self.all(query.build()).await?;
        rows.into_iter().map(WebhookRow::decode).collect()
    }

    async fn list_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Webhook>> {
        let rows: Vec<WebhookRow> = self.all(sql!(LIST, [tenant.0])).await?;
        rows.into_iter().map(WebhookRow::decode).collect()
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
            [tenant.0, key(sender), seen.millis(), failing_since.map(Timestamp::millis), disabled_reason]
        ))
        .await
    }

    async fn delete_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<bool> {
        self.changes(sql!("DELETE FROM webhooks WHERE tenant_id = $1 AND sender_id = $2", [tenant.0, key(sender)])).await
    }
}
