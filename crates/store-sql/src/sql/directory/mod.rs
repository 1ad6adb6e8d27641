//! Projects, keys, senders and connections.

mod connections;
mod keys;
mod projects;
mod senders;

use async_trait::async_trait;
use nuncio_domain::config::{ApiKey, Connection, Project, Sender, TenantConfig};
use nuncio_domain::key::KeyHash;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Channel, ConnectionId, Environment, KeyId, SenderId, TenantId, Timestamp};
use nuncio_store::{DirectoryRepo, Result};

use super::SqlTx;
use crate::row::corrupt;

#[async_trait]
impl DirectoryRepo for SqlTx {
    async fn insert_project(&mut self, project: Project, now: Timestamp) -> Result<Project> {
        projects::insert(self, project, now).await
    }

    async fn list_projects(&mut self) -> Result<Vec<Project>> {
        projects::list(self).await
    }

    async fn update_project(&mut self, project: &Project) -> Result<bool> {
        projects::update(self, project).await
    }

    async fn load_tenant(&mut self, tenant: TenantId) -> Result<Option<TenantConfig>> {
        projects::load_tenant(self, tenant).await
    }

    async fn raise_epoch(&mut self, tenant: TenantId) -> Result<()> {
        projects::raise_epoch(self, tenant).await
    }

    async fn epochs(&mut self, tenants: &[TenantId]) -> Result<Vec<(TenantId, i64)>> {
        projects::epochs(self, tenants).await
    }

    async fn check_key(&mut self, check: &[u8]) -> Result<bool> {
        projects::check_key(self, check).await
    }

    async fn insert_key(&mut self, key: &ApiKey, now: Timestamp) -> Result<()> {
        keys::insert(self, key, now).await
    }

    async fn find_key(&mut self, hash: &KeyHash) -> Result<Option<(ApiKey, Environment)>> {
        keys::find(self, hash).await
    }

    async fn list_keys(&mut self, tenant: TenantId) -> Result<Vec<ApiKey>> {
        keys::list(self, tenant).await
    }

    async fn revoke_key(&mut self, tenant: TenantId, id: KeyId, now: Timestamp) -> Result<bool> {
        keys::revoke(self, tenant, id, now).await
    }

    async fn mark_keys_used(&mut self, keys: &[(TenantId, KeyId)], at: Timestamp) -> Result<()> {
        keys::mark_used(self, keys, at).await
    }

    async fn insert_sender(&mut self, tenant: TenantId, sender: &Sender, now: Timestamp) -> Result<()> {
        senders::insert(self, tenant, sender, now).await
    }

    async fn update_sender(&mut self, tenant: TenantId, sender: &Sender) -> Result<bool> {
        senders::update(self, tenant, sender).await
    }

    async fn find_senders(&mut self, tenant: TenantId, ids: &[SenderId]) -> Result<Vec<Sender>> {
        senders::find(self, tenant, ids).await
    }

    async fn list_senders(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Sender>> {
        senders::list(self, tenant, page).await
    }

    async fn delete_sender(&mut self, tenant: TenantId, id: SenderId) -> Result<bool> {
        senders::delete(self, tenant, id).await
    }

    async fn connections_of_senders(&mut self, tenant: TenantId, senders: &[SenderId]) -> Result<Vec<Connection>> {
        connections::of_senders(self, tenant, senders).await
    }

    async fn find_connection(&mut self, id: ConnectionId) -> Result<Option<(TenantId, Connection)>> {
        connections::find(self, id).await
    }

    async fn connections_of_kinds(&mut self, kinds: &[&str]) -> Result<Vec<(TenantId, Connection)>> {
        connections::of_kinds(self, kinds).await
    }

    async fn put_connection(&mut self, tenant: TenantId, connection: &Connection) -> Result<()> {
        connections::put(self, tenant, connection).await
    }

    async fn delete_connection(&mut self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<bool> {
        connections::delete(self, tenant, sender, channel).await
    }
}

pub(super) fn environment(text: &str) -> Result<Environment> {
    Environment::parse(text).ok_or_else(|| corrupt("worlds", text))
}
