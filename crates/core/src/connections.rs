//! Provider connections: the accounts that carry a sender's channels.

use nuncio_channel::Account;
use nuncio_domain::config::Connection;
use nuncio_domain::{Channel, Environment, Error, FieldError, Redacted, Result, SenderId, TenantId};
use serde_json::{Map, Value};

use crate::{Core, Row, StoreResultExt as _};

/// A provider account as somebody sets it up.
#[derive(Debug)]
pub struct PutConnection {
    /// The adapter, such as `smtp`.
    pub kind: String,
    /// Settings that may be shown.
    pub settings: Map<String, Value>,
    /// Settings that may not. Those that are left out keep their value while the kind stays.
    pub secrets: Redacted<Map<String, Value>>,
}

impl Core {
    /// Sets the provider account of a sender's channel, in place of the one it has. All faults are told at once.
    pub async fn put_connection(&self, tenant: TenantId, sender: SenderId, channel: Channel, put: PutConnection) -> Result<Connection> {
        let world = self.world(tenant).await?;
        if world.sender(sender).is_none() {
            return Err(Error::not_found("sender"));
        }
        if world.environment == Environment::Test {
            return Err(Error::field("kind", "in the test world every channel is simulated; no provider can be connected"));
        }
        let before = world.connection(sender, channel);
        let mut secrets = match before.filter(|c| c.kind == put.kind) {
            Some(connection) => self.open_secrets(tenant, connection)?,
            None => Map::new(),
        };
        for (name, value) in put.secrets.expose() {
            secrets.insert(name.clone(), value.clone());
        }
        let id = before.map_or_else(|| self.ids().next(), |c| c.id);
        let sealed = self.inner.sealer.seal(Row::Connection(tenant, id), &secrets, &*self.ids().entropy).map_err(Error::internal)?;
        let connection = Connection {
            id,
            sender,
            channel,
            kind: put.kind,
            settings: put.settings,
            sealed: Redacted::new(sealed),
            updated_at: self.ids().clock.now(),
        };
        let account = Account::new(&connection, tenant, secrets);
        self.inner.registry.open(&connection.kind, &account, &self.inner.services).map_err(Error::invalid)?;
        let mut tx = self.inner.store.begin().await.or_fail()?;
        tx.put_connection(tenant, &connection).await.or_fail()?;
        tx.commit().await.or_fail()?;
        self.forget_world(tenant);
        Ok(connection)
    }

    /// Removes the provider account of a sender's channel.
    pub async fn delete_connection(&self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<()> {
        let mut tx = self.inner.store.begin().await.or_fail()?;
        let removed = tx.delete_connection(tenant, sender, channel).await.or_fail()?;
        tx.commit().await.or_fail()?;
        self.forget_world(tenant);
        if removed { Ok(()) } else { Err(Error::not_found("connection")) }
    }

    /// Reaches for the provider and logs in, without sending anything. The text says what was found, or what is wrong.
    pub async fn check_connection(&self, tenant: TenantId, connection: &Connection) -> Result<Result<String, String>> {
        let account = Account::new(connection, tenant, self.open_secrets(tenant, connection)?);
        match self.inner.registry.open(&connection.kind, &account, &self.inner.services) {
            Ok(adapter) => Ok(adapter.check().await),
            Err(faults) => {
                Ok(Err(faults.iter().map(|FieldError { path, message }| format!("{path}: {message}")).collect::<Vec<_>>().join("; ")))
            }
        }
    }

    fn open_secrets(&self, tenant: TenantId, connection: &Connection) -> Result<Map<String, Value>> {
        self.inner.sealer.open(Row::Connection(tenant, connection.id), connection.sealed.expose()).map_err(Error::internal)
    }
}
