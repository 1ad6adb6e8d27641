//! The configuration of a tenant, cached: senders, connections, prices, and how well channels do by country.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::config::World;
use nuncio_domain::price::PriceBook;
use nuncio_domain::{Error, Recipient, Result, TenantId};
use nuncio_store::{CountryMetrics, Tx};

use super::Core;

/// The adapter that carries every channel of the test world.
pub(crate) const SIM: &str = "sim";

/// The most price books that are kept; beyond it all are forgotten and read anew.
const BOOKS: usize = 10_000;

/// Price books by world, with the epoch that they were read after.
#[derive(Debug, Default)]
pub(crate) struct Books {
    by_world: HashMap<TenantId, (i64, Arc<PriceBook>)>,
    newest: Arc<PriceBook>,
}

impl Books {
    /// Keeps a book. Most worlds have no prices of their own: the list of everybody is kept once for them all.
    fn keep(&mut self, world: &World, mut book: PriceBook) -> Arc<PriceBook> {
        book.share(&self.newest);
        if self.by_world.len() >= BOOKS {
            self.by_world.clear();
        }
        self.newest = Arc::new(book);
        self.by_world.insert(world.tenant, (world.epoch, Arc::clone(&self.newest)));
        Arc::clone(&self.newest)
    }
}

impl Core {
    /// Everything about a world, at most a second old.
    pub async fn world(&self, tenant: TenantId) -> Result<Arc<World>> {
        self.stored_world(tenant).await?.ok_or_else(|| Error::not_found("project"))
    }

    pub(crate) async fn stored_world(&self, tenant: TenantId) -> nuncio_store::Result<Option<Arc<World>>> {
        let read = async { Ok(self.inner.store.read().await?.load_world(tenant).await?.map(Arc::new)) };
        self.inner.worlds.get_or_read(tenant, &*self.ids().clock, read).await
    }

    /// Forgets what is known of a world, after a change or when a plan turned out to be stale.
    pub fn forget_world(&self, tenant: TenantId) {
        self.inner.worlds.forget(&tenant);
    }

    /// The prices of a world's project, as old as the world's epoch: who plans by outdated ones plans again.
    pub(crate) async fn price_book(&self, world: &World) -> Result<Arc<PriceBook>> {
        Ok(self.stored_price_book(world).await?)
    }

    pub(crate) async fn stored_price_book(&self, world: &World) -> nuncio_store::Result<Arc<PriceBook>> {
        if let Some((epoch, book)) = self.inner.prices.read().by_world.get(&world.tenant)
            && *epoch == world.epoch
        {
            return Ok(Arc::clone(book));
        }
        let mut tx = self.inner.store.read().await?;
        let general = tx.list_prices(None).await?;
        let own = tx.list_prices(Some(world.project.id)).await?;
        Ok(self.inner.prices.write().keep(world, PriceBook::new(own, general)))
    }

    /// How channels do by country, at most a second old.
    pub(crate) async fn countries(&self, tenant: TenantId) -> Result<Arc<Vec<CountryMetrics>>> {
        let read = async { Ok(Arc::new(self.inner.store.read().await?.country_metrics(tenant).await?)) };
        self.inner.countries.get_or_read(tenant, &*self.ids().clock, read).await
    }

    /// Under what suppressions of an erased recipient stand.
    pub(crate) fn marked(&self, tenant: TenantId, recipient: &Recipient) -> Recipient {
        Recipient { kind: recipient.kind, identifier: self.inner.marks.of(tenant, recipient) }
    }

    /// A transaction that changes what a world has set up. Those of one world take turns, so that what one reads stays so until its commit.
    pub(crate) async fn change_world(&self, tenant: TenantId) -> Result<Box<dyn Tx>> {
        let mut tx = self.inner.store.begin().await?;
        tx.raise_epoch(tenant).await?;
        Ok(tx)
    }

    /// Commits a change that [`Self::change_world`] began.
    pub(crate) async fn commit_change(&self, tenant: TenantId, tx: Box<dyn Tx>) -> Result<()> {
        tx.commit().await?;
        self.forget_world(tenant);
        Ok(())
    }
}
