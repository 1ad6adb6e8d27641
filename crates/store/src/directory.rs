//! Projects, keys, senders and connections: what is written seldom and read through caches.

use async_trait::async_trait;
use nuncio_domain::config::{ApiKey, Connection, Project, Sender, World};
use nuncio_domain::key::KeyHash;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Channel, ConnectionId, Environment, KeyId, ProjectId, SenderId, TenantId, Timestamp};

use crate::error::Result;

/// Projects, keys, senders and connections.
#[async_trait]
pub trait DirectoryRepo {
    /// Writes a project and its two worlds, whose tenant keys the store chooses and puts into the answer.
    async fn insert_project(&mut self, project: Project, now: Timestamp) -> Result<Project>;

    /// All projects, oldest first.
    async fn list_projects(&mut self) -> Result<Vec<Project>>;

    /// Gives a project another name; `false` when there is none.
    async fn rename_project(&mut self, id: ProjectId, name: &str) -> Result<bool>;

    /// Everything about one world, as of one epoch.
    async fn load_world(&mut self, tenant: TenantId) -> Result<Option<World>>;

    /// Raises the configuration epoch of a world. Every change of what [`World`] holds calls it in its own transaction.
    async fn raise_epoch(&mut self, tenant: TenantId) -> Result<()>;

    /// The configuration epochs of these worlds; those that are not there are left out.
    async fn epochs(&mut self, tenants: &[TenantId]) -> Result<Vec<(TenantId, i64)>>;

    /// Has each world remember by which encryption key its secrets and marks are made: writes `check`, which follows from the key, to
    /// the worlds that have none, and answers whether all have this one.
    async fn check_key(&mut self, check: &[u8]) -> Result<bool>;

    /// Writes a key.
    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()>;

    /// The key with this hash, revoked or not, and the environment of its world.
    async fn find_key(&mut self, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>>;

    /// All keys of a world, oldest first.
    async fn list_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>>;

    /// Revokes a key; `false` when there is none or it is revoked already.
    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool>;

    /// Writes a sender. A default one takes the place of the present default.
    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()>;

    /// Replaces everything about a sender but its identifier; `false` when there is none.
    async fn update_sender(&mut self, tenant: TenantId, sender: &Sender) -> Result<bool>;

    /// These senders; those that are not there are left out.
    async fn find_senders(&mut self, tenant: TenantId, ids: &[SenderId]) -> Result<Vec<Sender>>;

    /// Senders, newest first.
    async fn list_senders(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Sender>>;

    /// Removes a sender and its connections; `false` when there is none. Its messages stay.
    async fn delete_sender(&mut self, tenant: TenantId, id: SenderId) -> Result<bool>;

    /// The connections of these senders, in the order of their identifiers.
    async fn connections_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Connection>>;

    /// A connection and its world: a provider that calls names nothing else.
    async fn find_connection(&mut self, id: ConnectionId) -> Result<Option<(TenantId, Connection)>>;

    /// All connections of these kinds, with their worlds.
    async fn connections_of_kinds(&mut self, kinds: &[&str]) -> Result<Vec<(TenantId, Connection)>>;

    /// Writes a connection, in place of the one that the sender has for the channel.
    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()>;

    /// Removes the connection of a sender for a channel; `false` when there is none.
    async fn delete_connection(&mut self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<bool>;
}
