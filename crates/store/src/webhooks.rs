//! Webhooks: where events are posted to.

use async_trait::async_trait;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{SenderId, TenantId, Timestamp};

use crate::error::Result;

/// Webhooks.
#[async_trait]
pub trait WebhookRepo {
    /// Writes a webhook, in place of the one that the sender, or the world, has.
    async fn put_webhook(&mut self, tenant: TenantId, webhook: &Webhook) -> Result<()>;

    /// The webhook of a sender, or of the world.
    async fn find_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<Option<Webhook>>;

    /// The webhooks of these senders.
    async fn webhooks_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Webhook>>;

    /// All webhooks of a world.
    async fn list_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Webhook>>;

    /// Notes since when a webhook saw nothing but failure, and switches it off if there is a reason to; `false` when there is none, or it
    /// was set up anew since `seen`.
    async fn mark_webhook(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        seen: Timestamp,
        failing_since: Option<Timestamp>,
        disabled_reason: Option<&str>,
    ) -> Result<bool>;

    /// Removes a webhook; `false` when there is none.
    async fn delete_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<bool>;
}
