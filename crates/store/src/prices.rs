//! The price list.

use async_trait::async_trait;
use nuncio_domain::ProjectId;
use nuncio_domain::price::Price;

use crate::error::Result;

/// General prices (no project), and projects' own prices, which take precedence.
#[async_trait]
pub trait PriceRepo {
    /// Returns all prices by channel, country and date.
    async fn list_prices(&mut self, project: Option<ProjectId>) -> Result<Vec<Price>>;

    /// Stores prices, replacing those of the same channel, country and date, or all of them if `replace`. Increments the epoch of every
    /// environment, so that no message is accepted at an old price.
    async fn put_prices(&mut self, project: Option<ProjectId>, prices: &[Price], replace: bool) -> Result<()>;
}
