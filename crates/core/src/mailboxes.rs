//! Mail that comes in by the server's own listener: whose it is.

use nuncio_domain::config::Connection;
use nuncio_domain::{ConnectionId, MessageId, Result, TenantId};

use crate::{Core, StoreResultExt as _};

impl Core {
    /// To which connection mail for an address (in small letters) comes; `None` where it comes to none, or its sender takes none.
    pub async fn find_mailbox(&self, address: &str) -> Result<Option<(TenantId, ConnectionId)>> {
        let found = self.inner.store.read().await.or_fail()?.find_mailbox(address).await.or_fail()?;
        let Some((tenant, id)) = found else { return Ok(None) };
        let world = self.world(tenant).await?;
        let connection = world.connections.iter().find(|connection| connection.id == id);
        let sender = connection.and_then(|connection| world.sender(connection.sender));
        Ok(sender.filter(|sender| sender.email_receiving_enabled).map(|_| (tenant, id)))
    }

    /// The connection of an attempt (from 0) of a message; of its newest attempt when `None`.
    pub async fn connection_of_attempt(&self, tenant: TenantId, id: MessageId, attempt: Option<usize>) -> Result<Option<ConnectionId>> {
        let message = self.inner.store.read().await.or_fail()?.lookup_messages(tenant, &[id]).await.or_fail()?.pop();
        let Some(message) = message else { return Ok(None) };
        let attempts = &message.state.detail.attempts;
        Ok(attempt.map_or(attempts.last(), |attempt| attempts.get(attempt)).map(|attempt| attempt.connection))
    }

    /// Gives every connection its address that has none yet, since it was set up before there was anything to give. The operator's come
    /// first, then those that were there first.
    pub async fn claim_mailboxes(&self) -> Result<()> {
        let kinds: Vec<&str> = self.inner.registry.iter().map(|factory| factory.kind()).collect();
        let mut connections = self.inner.store.read().await.or_fail()?.connections_of_kinds(&kinds).await.or_fail()?;
        connections.sort_by_key(|(_, connection)| (!connection.trusted, connection.id));
        for (tenant, connection) in connections {
            // One that cannot be opened is told of where it is used.
            let Ok(Ok(adapter)) = self.open_adapter(tenant, &connection) else { continue };
            let Some(address) = adapter.mailbox() else { continue };
            let mut tx = self.inner.store.begin().await.or_fail()?;
            tx.claim_mailbox(tenant, connection.id, Some(&address), connection.trusted).await.or_fail()?;
            tx.commit().await.or_fail()?;
        }
        Ok(())
    }

    /// What a check says of an address that another connection has.
    pub(crate) async fn rival(&self, tenant: TenantId, connection: &Connection, address: Option<String>) -> Result<String> {
        let Some(address) = address else { return Ok(String::new()) };
        let found = self.inner.store.read().await.or_fail()?.find_mailbox(&address).await.or_fail()?;
        if found.is_none_or(|found| found == (tenant, connection.id)) {
            return Ok(String::new());
        }
        Ok(format!("; mail to {address} comes to another connection, which has had the address before"))
    }
}
