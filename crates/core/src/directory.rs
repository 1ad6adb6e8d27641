//! Projects and worlds.

use std::sync::Arc;

use nuncio_domain::config::{Connection, Project, Sender, World};
use nuncio_domain::{Channel, Environment, Error, Redacted, Result, SenderId, TenantId, limits, line};
use nuncio_store::Tx;

use crate::{Core, StoreResultExt as _, numbers};

/// The adapter that carries every channel of the test world.
pub(crate) const SIM: &str = "sim";

impl Core {
    /// Everything about a world, at most a second old.
    pub async fn world(&self, tenant: TenantId) -> Result<Arc<World>> {
        self.stored_world(tenant).await.or_fail()?.ok_or_else(|| Error::not_found("project"))
    }

    pub(crate) async fn stored_world(&self, tenant: TenantId) -> nuncio_store::Result<Option<Arc<World>>> {
        let read = async { Ok(self.inner.store.read().await?.load_world(tenant).await?.map(Arc::new)) };
        self.inner.worlds.get_or_read(tenant, &*self.ids().clock, read).await
    }

    /// Forgets what is known of a world, after a change or when a plan turned out to be stale.
    pub fn forget_world(&self, tenant: TenantId) {
        self.inner.worlds.forget(&tenant);
    }

    /// Fails unless this node has the encryption keys that the worlds of this database were made with: with others it would neither
    /// open their secrets nor know again who was erased.
    pub async fn check_keys(&self) -> Result<()> {
        let check = self.inner.sealer.derive(b"which key this is");
        let mut tx = self.inner.store.begin().await.or_fail()?;
        let same = tx.check_key(check.expose()).await.or_fail()?;
        tx.commit().await.or_fail()?;
        if same { Ok(()) } else { Err(Error::unavailable("the encryption keys are not those that this database was set up with")) }
    }

    /// All projects, oldest first.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        self.inner.store.read().await.or_fail()?.list_projects().await.or_fail()
    }

    /// Makes a project with a default sender in each of its worlds; in the test world the sender's every channel is simulated.
    pub async fn create_project(&self, name: &str) -> Result<Project> {
        if let Some(fault) = line::check("name", name, 1, limits::PROJECT_NAME) {
            return Err(Error::invalid(vec![fault]));
        }
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await.or_fail()?;
        let project = Project {
            id: self.ids().next(),
            name: name.to_owned(),
            team: self.ids().next(),
            team_name: name.to_owned(),
            live: TenantId(0),
            test: TenantId(0),
        };
        let project = tx.insert_project(project, now).await.or_fail()?;
        let mut simulated = None;
        for environment in [Environment::Live, Environment::Test] {
            let sender = Sender { is_default: true, ..Sender::new(self.ids().at(now), "Default", now) };
            let tenant = project.tenant(environment);
            self.write_sender(&mut *tx, tenant, environment, &sender).await?;
            if environment == Environment::Test {
                simulated = Some(sender.id);
                numbers::stock_sandbox(&mut *tx, tenant, now).await?;
            }
        }
        tx.commit().await.or_fail()?;
        self.check_keys().await?;
        if let Some(sender) = simulated {
            self.meet_provider(project.test, sender).await;
        }
        Ok(project)
    }

    /// A transaction that changes what a world has set up. Those of one world take turns, so that what one reads stays so until its commit.
    pub(crate) async fn change_world(&self, tenant: TenantId) -> Result<Box<dyn Tx>> {
        let mut tx = self.inner.store.begin().await.or_fail()?;
        tx.raise_epoch(tenant).await.or_fail()?;
        Ok(tx)
    }

    /// Commits a change that [`Self::change_world`] began.
    pub(crate) async fn commit_change(&self, tenant: TenantId, tx: Box<dyn Tx>) -> Result<()> {
        tx.commit().await.or_fail()?;
        self.forget_world(tenant);
        Ok(())
    }

    /// Writes a new sender; in the test world its every channel is simulated.
    pub(crate) async fn write_sender(&self, tx: &mut dyn Tx, tenant: TenantId, environment: Environment, sender: &Sender) -> Result<()> {
        tx.insert_sender(tenant, sender, sender.updated_at).await.or_fail()?;
        if environment == Environment::Test {
            for connection in self.simulated(tenant, sender.id)? {
                tx.put_connection(tenant, &connection).await.or_fail()?;
            }
        }
        Ok(())
    }

    /// A simulated connection for every channel.
    pub(crate) fn simulated(&self, tenant: TenantId, sender: SenderId) -> Result<Vec<Connection>> {
        let connection = |channel: &Channel| {
            let id = self.ids().next();
            let sealed = self
                .inner
                .sealer
                .seal(crate::Row::Connection(tenant, id), &serde_json::Map::new(), &*self.ids().entropy)
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
