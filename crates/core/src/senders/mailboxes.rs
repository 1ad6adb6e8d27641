//! Maps inbound email addresses to connections.

use nuncio_domain::{ConnectionId, MessageId, Result, TenantId};

use nuncio_store::Mailbox;

use super::Senders;

impl Senders<'_> {
    /// Returns the connection that receives email for an address (in lower case); `None` if there is none, or its sender accepts none.
    pub async fn find_mailbox(&self, address: &str) -> Result<Option<(TenantId, ConnectionId)>> {
        let found = self.inner.store.read().await?.find_mailbox(address).await?;
        let Some(Mailbox { tenant, connection: id, .. }) = found else { return Ok(None) };
        let config = self.tenant_config(tenant).await?;
        let connection = config.connections.iter().find(|connection| connection.id == id);
        let sender = connection.and_then(|connection| config.sender(connection.sender));
        Ok(sender.filter(|sender| sender.email_receiving_enabled).map(|_| (tenant, id)))
    }

    /// Returns the connection of a message's attempt (from 0); of its newest attempt if `None`.
    pub async fn connection_of_attempt(&self, tenant: TenantId, id: MessageId, attempt: Option<usize>) -> Result<Option<ConnectionId>> {
        let message = self.inner.store.read().await?.lookup_messages(tenant, &[id]).await?.pop();
        let Some(message) = message else { return Ok(None) };
        let attempts = &message.state.detail.attempts;
        Ok(attempt.map_or(attempts.last(), |attempt| attempts.get(attempt)).map(|attempt| attempt.connection))
    }
}
