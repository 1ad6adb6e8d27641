//! Projects, keys, senders and connections: written rarely, read through caches.

use async_trait::async_trait;
use nuncio_domain::config::{Connection, Project, Sender, TenantConfig};
use nuncio_domain::key::{ApiKey, KeyHash};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Channel, ConnectionId, Environment, KeyId, SenderId, TenantId, Timestamp};

use crate::error::Result;

/// Projects and their environments.
#[async_trait]
pub trait ProjectRepo {
    /// Stores a project and its two environments. The returned project has the tenant keys chosen by the store.
    async fn insert_project(&mut self, project: Project, now: Timestamp) -> Result<Project>;

    /// Returns all projects, oldest first.
    async fn list_projects(&mut self) -> Result<Vec<Project>>;

    /// Updates name and colour of a project; `false` if there is none.
    async fn update_project(&mut self, project: &Project) -> Result<bool>;

    /// Returns the configuration of an environment, as of one epoch.
    async fn load_tenant(&mut self, tenant: TenantId) -> Result<Option<TenantConfig>>;

    /// Increments the configuration epoch of an environment. Must be called in every transaction that changes what [`TenantConfig`] holds.
    async fn raise_epoch(&mut self, tenant: TenantId) -> Result<()>;

    /// Returns the configuration epochs of the environments that exist.
    async fn epochs(&mut self, tenants: &[TenantId]) -> Result<Vec<(TenantId, i64)>>;

    /// Checks that each environment's secrets were made with the same encryption key: stores `check`, which is derived from the key, in
    /// environments that have none, and returns whether all have this one.
    async fn check_key(&mut self, check: &[u8]) -> Result<bool>;
}

/// API keys.
#[async_trait]
pub trait KeyRepo {
    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()>;

    /// Returns the key with this hash, valid or not, and its environment.
    async fn find_key(&mut self, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>>;

    /// Returns all keys of an environment, oldest first.
    async fn list_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>>;

    /// Lists keys, newest first.
    async fn page_keys(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<ApiKey>>;

    /// Returns the key with this id, valid or not.
    async fn lookup_key(&mut self, tenant: TenantId, id: KeyId) -> Result<Option<ApiKey>>;

    /// Revokes a key; `false` if there is none or it is already revoked.
    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool>;

    /// Records that these keys were used at `at`, unless a later use of theirs is stored.
    async fn mark_keys_used(&mut self, keys: &[(TenantId, KeyId)], at: Timestamp) -> Result<()>;
}

/// Senders.
#[async_trait]
pub trait SenderRepo {
    /// Stores a sender. A default sender replaces the current default.
    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()>;

    /// Updates a sender; `false` if there is none.
    async fn update_sender(&mut self, tenant: TenantId, sender: &Sender) -> Result<bool>;

    /// Returns the existing senders with these ids.
    async fn find_senders(&mut self, tenant: TenantId, ids: &[SenderId]) -> Result<Vec<Sender>>;

    /// Lists senders, newest first.
    async fn list_senders(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Sender>>;

    /// Deletes a sender and its connections; `false` if there is none. Its messages stay.
    async fn delete_sender(&mut self, tenant: TenantId, id: SenderId) -> Result<bool>;
}

/// Connections of senders to providers.
#[async_trait]
pub trait ConnectionRepo {
    /// Returns the connections of these senders, ordered by id.
    async fn connections_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Connection>>;

    /// Returns a connection and its tenant: a provider callback names only the connection.
    async fn find_connection(&mut self, id: ConnectionId) -> Result<Option<(TenantId, Connection)>>;

    /// Returns all connections of these kinds, with their tenants.
    async fn connections_of_kinds(&mut self, kinds: &[&str]) -> Result<Vec<(TenantId, Connection)>>;

    /// Stores a connection, replacing the sender's connection for the channel.
    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()>;

    /// Deletes the connection of a sender for a channel; `false` if there is none.
    async fn delete_connection(&mut self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<bool>;
}
