//! Stores new senders.

use nuncio_domain::config::{Connection, Sender};
use nuncio_domain::{Channel, Environment, Error, Redacted, Result, SenderId, TenantId};
use nuncio_store::Tx;

use super::Senders;
use crate::base::SIM;

impl Senders<'_> {
    /// Stores a new sender; in the test environment, all its channels are simulated.
    pub(crate) async fn write(&self, tx: &mut dyn Tx, tenant: TenantId, environment: Environment, sender: &Sender) -> Result<()> {
        tx.insert_sender(tenant, sender, sender.updated_at).await?;
        if environment == Environment::Test {
            for connection in self.simulated(tenant, sender.id)? {
                tx.put_connection(tenant, &connection).await?;
            }
        }
        Ok(())
    }

    /// Makes a simulated connection for every channel.
    pub(crate) fn simulated(&self, tenant: TenantId, sender: SenderId) -> Result<Vec<Connection>> {
        let connection = |channel: &Channel| {
            let id = self.ids().next();
            let sealed = self
                .inner
                .sealer
                .seal(nuncio_secrets::Row::Connection(tenant, id), &serde_json::Map::new(), &*self.ids().entropy)
                .map_err(Error::internal)?;
            Ok(Connection {
                id,
                sender,
                channel: *channel,
                kind: SIM.to_owned(),
                settings: serde_json::Map::new(),
                sealed: Redacted::new(sealed),
                trusted: true,
                throttle: None,
                updated_at: self.ids().clock.now(),
            })
        };
        Channel::ALL.iter().map(connection).collect()
    }
}
