use async_trait::async_trait;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{SenderId, TenantId, Timestamp};

use crate::error::Result;

#[async_trait]
pub trait WebhookRepo {
    /// Stores a webhook, replacing the one of the sender or the environment.
    async fn put_webhook(&mut self, tenant: TenantId, webhook: &Webhook) -> Result<()>;

    /// Returns the webhook of a sender, or of the environment.
    async fn find_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<Option<Webhook>>;

    /// Returns the webhooks of these senders.
    async fn webhooks_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Webhook>>;

    /// Returns all webhooks of an environment.
    async fn list_webhooks(&mut self, tenant: TenantId) -> Result<Vec<Webhook>>;

    /// Records since when a webhook has only failed, and disables it if there is a reason; `false` if it does not exist or was set up again
    /// since `seen`.
    async fn mark_webhook(
        &mut self,
        tenant: TenantId,
        sender: Option<SenderId>,
        seen: Timestamp,
        failing_since: Option<Timestamp>,
        disabled_reason: Option<&str>,
    ) -> Result<bool>;

    /// Deletes a webhook; `false` if there is none.
    async fn delete_webhook(&mut self, tenant: TenantId, sender: Option<SenderId>) -> Result<bool>;
}
