//! Caches configuration by tenant: senders, connections, prices, and channel metrics by country.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::config::{Project, TenantConfig};
use nuncio_domain::{Error, Recipient, Result, TenantId, price::PriceBook};
use nuncio_store::{CountryMetrics, Tx};

use super::Core;

/// Kind of the adapter for every channel of the test environment.
pub(crate) const SIM: &str = "sim";

/// Maximum number of cached price books; beyond it the cache is cleared.
const BOOKS: usize = 10_000;

/// Price books by tenant, with the epoch they were read at.
#[derive(Debug, Default)]
pub(crate) struct Books {
    by_tenant: HashMap<TenantId, (i64, Arc<PriceBook>)>,
    newest: Arc<PriceBook>,
}

impl Books {
    /// Caches a book. Most environments have no prices of their own and share the general list.
    fn keep(&mut self, config: &TenantConfig, mut book: PriceBook) -> Arc<PriceBook> {
        book.share(&self.newest);
        if self.by_tenant.len() >= BOOKS {
            self.by_tenant.clear();
        }
        self.newest = Arc::new(book);
        self.by_tenant.insert(config.tenant, (config.epoch, Arc::clone(&self.newest)));
        Arc::clone(&self.newest)
    }
}

impl Core {
    /// Returns the configuration of an environment, at most a second old.
    pub async fn tenant_config(&self, tenant: TenantId) -> Result<Arc<TenantConfig>> {
        self.stored_tenant_config(tenant).await?.ok_or_else(|| Error::not_found("project"))
    }

    pub(crate) async fn stored_tenant_config(&self, tenant: TenantId) -> nuncio_store::Result<Option<Arc<TenantConfig>>> {
        let read = async { Ok(self.inner.store.read().await?.load_tenant(tenant).await?.map(Arc::new)) };
        self.inner.tenant_configs.get_or_read(tenant, &*self.ids().clock, read).await
    }

    /// Returns the configuration of an environment as it is stored, for what is not planned again if the cached one is outdated.
    pub(crate) async fn current_config(&self, tenant: TenantId) -> Result<Arc<TenantConfig>> {
        let config = self.tenant_config(tenant).await?;
        if self.is_current(&config).await? { Ok(config) } else { self.tenant_config(tenant).await }
    }

    /// Returns whether a configuration is the stored one; if another node has changed it, the cached one is dropped.
    pub(crate) async fn is_current(&self, config: &TenantConfig) -> nuncio_store::Result<bool> {
        let stored = self.inner.store.read().await?.epochs(&[config.tenant]).await?;
        let is_current = stored == [(config.tenant, config.epoch)];
        if !is_current {
            self.forget_config(config.tenant);
        }
        Ok(is_current)
    }

    /// Invalidates the configuration of an environment, after a change or when a plan was stale.
    pub fn forget_config(&self, tenant: TenantId) {
        self.inner.tenant_configs.forget(&tenant);
    }

    /// Returns the prices of an environment's project as of the environment's epoch: a plan with outdated prices is planned again.
    pub(crate) async fn price_book(&self, config: &TenantConfig) -> nuncio_store::Result<Arc<PriceBook>> {
        if let Some((epoch, book)) = self.inner.prices.read().by_tenant.get(&config.tenant)
            && *epoch == config.epoch
        {
            return Ok(Arc::clone(book));
        }
        let mut tx = self.inner.store.read().await?;
        let general = tx.list_prices(None).await?;
        let own = tx.list_prices(Some(config.project.id)).await?;
        Ok(self.inner.prices.write().keep(config, PriceBook::new(own, general)))
    }

    /// Returns the channel metrics by country, at most a second old.
    pub(crate) async fn countries(&self, tenant: TenantId) -> Result<Arc<Vec<CountryMetrics>>> {
        let read = async { Ok(Arc::new(self.inner.store.read().await?.country_metrics(tenant).await?)) };
        self.inner.countries.get_or_read(tenant, &*self.ids().clock, read).await
    }

    /// Returns the recipient under which suppressions of an erased contact are stored.
    pub(crate) fn marked(&self, tenant: TenantId, recipient: &Recipient) -> Recipient {
        Recipient { kind: recipient.kind, identifier: self.inner.marks.of(tenant, recipient) }
    }

    /// Begins a transaction that changes an environment's configuration. Such transactions of one environment are serialised, so that reads
    /// stay valid until the commit.
    pub(crate) async fn change_config(&self, tenant: TenantId) -> Result<Box<dyn Tx>> {
        let mut tx = self.inner.store.begin().await?;
        tx.raise_epoch(tenant).await?;
        Ok(tx)
    }

    /// Commits a change begun with [`Self::change_config`].
    pub(crate) async fn commit_change(&self, tenant: TenantId, tx: Box<dyn Tx>) -> Result<()> {
        tx.commit().await?;
        self.forget_config(tenant);
        Ok(())
    }

    /// Begins a change of a project, which is part of the configuration of both environments.
    pub(crate) async fn change_project(&self, project: &Project) -> Result<Box<dyn Tx>> {
        let mut tx = self.change_config(project.live).await?;
        tx.raise_epoch(project.test).await?;
        Ok(tx)
    }

    /// Commits a change begun with [`Self::change_project`].
    pub(crate) async fn commit_project(&self, project: &Project, tx: Box<dyn Tx>) -> Result<()> {
        self.commit_change(project.live, tx).await?;
        self.forget_config(project.test);
        Ok(())
    }
}
