//! What the choice of a channel rests on.

use async_trait::async_trait;
use nuncio_domain::{AddressId, AddressKind, Channel, TenantId};

use crate::contacts::ChannelMetrics;
use crate::error::Result;

/// How a channel does with all recipients of one country.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountryMetrics {
    /// The channel.
    pub channel: Channel,
    /// ISO 3166-1 alpha-2; `""` if unknown.
    pub country: String,
    /// Attempts that arrived.
    pub successes: i64,
    /// Attempts that failed.
    pub failures: i64,
}

/// Channel choice.
#[async_trait]
pub trait RoutingRepo {
    /// Metrics of recipients of one kind with their identifiers, by channel; none of one that is unknown. At most 1,000 identifiers.
    async fn recipient_metrics(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &[&str],
    ) -> Result<Vec<(String, ChannelMetrics)>>;

    /// How channels do by country.
    async fn country_metrics(&mut self, tenant: TenantId) -> Result<Vec<CountryMetrics>>;

    /// The countries of addresses; of those that are known.
    async fn countries_of(&mut self, addresses: &[(TenantId, AddressId)]) -> Result<Vec<(TenantId, AddressId, String)>>;

    /// Adds to the metrics of a country, whose old ones count less and less. Rows of one world in the order of channel and country.
    async fn add_country_metrics(&mut self, tenant: TenantId, delta: &CountryMetrics) -> Result<()>;
}
