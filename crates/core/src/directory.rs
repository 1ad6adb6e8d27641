//! Projects, worlds and senders.

use std::sync::Arc;

use nuncio_domain::config::{Connection, Project, Sender, World};
use nuncio_domain::{Channel, Environment, Error, Redacted, Result, SenderId, TenantId, address};

use crate::{Core, StoreResultExt as _};

/// The adapter that carries every channel of the test world.
const SIM: &str = "sim";

impl Core {
    /// Everything about a world, at most a second old.
    pub async fn world(&self, tenant: TenantId) -> Result<Arc<World>> {
        let now = self.ids().clock.monotonic();
        if let Some(known) = self.inner.worlds.get(&tenant, now) {
            return known.ok_or_else(|| Error::not_found("project"));
        }
        let world = self.inner.store.read().await.or_fail()?.load_world(tenant).await.or_fail()?.map(Arc::new);
        self.inner.worlds.put(tenant, world.clone(), now);
        world.ok_or_else(|| Error::not_found("project"))
    }

    /// Forgets what is known of a world, after a change or when a plan turned out to be stale.
    pub fn forget_world(&self, tenant: TenantId) {
        self.inner.worlds.forget(&tenant);
    }

    /// All projects, oldest first.
    pub async fn projects(&self) -> Result<Vec<Project>> {
        self.inner.store.read().await.or_fail()?.list_projects().await.or_fail()
    }

    /// Makes a project with a default sender in each of its worlds; in the test world the sender's every channel is simulated.
    pub async fn create_project(&self, name: &str) -> Result<Project> {
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
        for environment in [Environment::Live, Environment::Test] {
            let sender = Sender {
                id: self.ids().next(),
                name: "Default".to_owned(),
                phone_number: String::new(),
                is_default: true,
                updated_at: now,
            };
            let tenant = project.tenant(environment);
            tx.insert_sender(tenant, &sender, now).await.or_fail()?;
            if environment == Environment::Test {
                for connection in self.simulated(tenant, sender.id)? {
                    tx.put_connection(tenant, &connection).await.or_fail()?;
                }
            }
        }
        tx.commit().await.or_fail()?;
        Ok(project)
    }

    /// Makes a sender.
    pub async fn create_sender(
        &self,
        tenant: TenantId,
        environment: Environment,
        name: &str,
        phone_number: &str,
        is_default: bool,
    ) -> Result<Sender> {
        let sender = Sender {
            id: self.ids().next(),
            name: sender_name(name)?,
            phone_number: sender_phone(phone_number)?,
            is_default,
            updated_at: self.ids().clock.now(),
        };
        let mut tx = self.inner.store.begin().await.or_fail()?;
        tx.insert_sender(tenant, &sender, sender.updated_at).await.or_fail()?;
        if environment == Environment::Test {
            for connection in self.simulated(tenant, sender.id)? {
                tx.put_connection(tenant, &connection).await.or_fail()?;
            }
        }
        tx.commit().await.or_fail()?;
        self.forget_world(tenant);
        Ok(sender)
    }

    /// Changes a sender; what is `None` stays.
    pub async fn update_sender(
        &self,
        tenant: TenantId,
        id: SenderId,
        name: Option<&str>,
        phone_number: Option<&str>,
        make_default: bool,
    ) -> Result<Sender> {
        let mut sender = self.world(tenant).await?.sender(id).cloned().ok_or_else(|| Error::not_found("sender"))?;
        if let Some(name) = name {
            sender.name = sender_name(name)?;
        }
        if let Some(phone_number) = phone_number {
            sender.phone_number = sender_phone(phone_number)?;
        }
        sender.is_default |= make_default;
        sender.updated_at = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await.or_fail()?;
        tx.update_sender(tenant, &sender).await.or_fail()?;
        tx.commit().await.or_fail()?;
        self.forget_world(tenant);
        Ok(sender)
    }

    /// A simulated connection for every channel.
    fn simulated(&self, tenant: TenantId, sender: SenderId) -> Result<Vec<Connection>> {
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
                updated_at: self.ids().clock.now(),
            })
        };
        Channel::ALL.iter().map(connection).collect()
    }
}

fn sender_name(name: &str) -> Result<String> {
    let length = name.chars().count();
    if (1..=100).contains(&length) {
        Ok(name.to_owned())
    } else {
        Err(Error::field("name", format!("has {length} characters; must have 1 to 100")))
    }
}

fn sender_phone(phone: &str) -> Result<String> {
    if phone.is_empty() {
        return Ok(String::new());
    }
    address::phone(phone).map_err(|e| Error::field("phoneNumber", e.to_string()))
}
