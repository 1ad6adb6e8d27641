//! Mail that comes in by the server's own listener: whose it is.

use nuncio_domain::{ConnectionId, MessageId, Result, TenantId};

use nuncio_store::Mailbox;

use super::Senders;

impl Senders<'_> {
    /// To which connection mail for an address (in small letters) comes; `None` where it comes to none, or its sender takes none.
    pub async fn find_mailbox(&self, address: &str) -> Result<Option<(TenantId, ConnectionId)>> {
        let found = self.inner.store.read().await?.find_mailbox(address).await?;
        let Some(Mailbox { tenant, connection: id, .. }) = found else { return Ok(None) };
        let world = self.world(tenant).await?;
        let connection = world.connections.iter().find(|connection| connection.id == id);
        let sender = connection.and_then(|connection| world.sender(connection.sender));
        Ok(sender.filter(|sender| sender.email_receiving_enabled).map(|_| (tenant, id)))
    }

    /// The connection of an attempt (from 0) of a message; of its newest attempt when `None`.
    pub async fn connection_of_attempt(&self, tenant: TenantId, id: MessageId, attempt: Option<usize>) -> Result<Option<ConnectionId>> {
        let message = self.inner.store.read().await?.lookup_messages(tenant, &[id]).await?.pop();
        let Some(message) = message else { return Ok(None) };
        let attempts = &message.state.detail.attempts;
        Ok(attempt.map_or(attempts.last(), |attempt| attempts.get(attempt)).map(|attempt| attempt.connection))
    }
}
