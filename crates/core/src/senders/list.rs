//! Reads senders, and lists the adapter kinds with their settings.

use nuncio_channel::Field;
use nuncio_domain::{Channel, Environment, Error, Result, SenderId, TenantId};

use super::Senders;
use super::view::{ConnectionView, SenderView};
use crate::base::{Caller, SIM, UseCase, list, list::Listed, parse_id};

list::list_query! {
    /// Query of `GET /v1/senders`.
    ListSenders {}
}

/// An adapter kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name, such as `smtp`.
    pub name: &'static str,
    /// Settings and secrets, in the order of their documentation.
    pub fields: &'static [Field],
}

impl Senders<'_> {
    /// `GET /v1/senders`: returns a page and the cursor of the next one.
    pub async fn list(&self, caller: &Caller, asked: &ListSenders) -> Result<Listed<SenderView>> {
        caller.require(UseCase::ListSenders)?;
        let (range, errors) = list::asked!(asked);
        let listing = self.listing(caller.tenant, "senders", &range, errors)?;
        let mut tx = self.inner.store.read().await?;
        let page = tx.list_senders(caller.tenant, listing.page).await?;
        let items = self.views(&mut *tx, caller.tenant, page.items).await?;
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// `GET /v1/senders/{id}`.
    pub async fn get(&self, caller: &Caller, id: &str) -> Result<SenderView> {
        caller.require(UseCase::GetSender)?;
        self.view(caller.tenant, parse_id(id, "sender")?).await
    }

    /// Returns all senders of an environment, for the operator.
    pub async fn all(&self, tenant: TenantId) -> Result<Vec<SenderView>> {
        let senders = self.tenant_config(tenant).await?.senders.clone();
        let mut tx = self.inner.store.read().await?;
        self.views(&mut *tx, tenant, senders).await
    }

    /// Returns all connections of an environment, for the operator.
    pub async fn all_connections(&self, tenant: TenantId) -> Result<Vec<ConnectionView>> {
        let world = self.tenant_config(tenant).await?;
        let mut tx = self.inner.store.read().await?;
        let mut views = Vec::new();
        for connection in &world.connections {
            views.push(self.connection_view(&mut *tx, tenant, connection).await?);
        }
        Ok(views)
    }

    pub(super) async fn view(&self, tenant: TenantId, id: SenderId) -> Result<SenderView> {
        let mut tx = self.inner.store.read().await?;
        let found = tx.find_senders(tenant, &[id]).await?.pop();
        self.one_view(&mut *tx, tenant, found.ok_or_else(|| Error::not_found("sender"))?, None).await
    }

    /// Returns the kinds that can carry a channel in an environment. The test environment only has the simulator, the live one only has the
    /// others.
    pub fn kinds(&self, environment: Environment, channel: Channel) -> Vec<Kind> {
        let factories = self.inner.registry.iter().filter(|factory| factory.channels().contains(&channel));
        let allowed = factories.filter(|factory| (factory.kind() == SIM) == (environment == Environment::Test));
        allowed.map(|factory| Kind { name: factory.kind(), fields: factory.fields() }).collect()
    }
}
