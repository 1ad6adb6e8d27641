//! The price list.

use async_trait::async_trait;
use nuncio_domain::ProjectId;
use nuncio_domain::price::Price;

use crate::error::Result;

/// Prices of the installation (no project), and those of single projects that go before them.
#[async_trait]
pub trait PriceRepo {
    /// All lines, by channel, country and date.
    async fn list_prices(&mut self, project: Option<ProjectId>) -> Result<Vec<Price>>;

    /// Writes lines, in place of those of the same channel, country and date; of all lines if `replace`. Raises the epoch of every
    /// world, so that nothing is accepted by an old price.
    async fn put_prices(&mut self, project: Option<ProjectId>, prices: &[Price], replace: bool) -> Result<()>;
}
