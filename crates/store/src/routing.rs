//! Metrics that the choice of a channel is based on.

use async_trait::async_trait;
use nuncio_domain::{AddressKind, Channel, TenantId};

use crate::addresses::ChannelMetrics;
use crate::error::Result;

/// Results of a channel over all recipients of a country.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CountryMetrics {
    pub channel: Channel,
    /// ISO 3166-1 alpha-2; `""` if unknown.
    pub country: String,
    /// Delivered attempts.
    pub successes: i64,
    /// Failed attempts.
    pub failures: i64,
}

#[async_trait]
pub trait RoutingRepo {
    /// Returns metrics of recipients of one kind by channel; none for an unknown recipient. At most 1,000 identifiers.
    async fn recipient_metrics(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &[&str],
    ) -> Result<Vec<(String, ChannelMetrics)>>;

    /// Returns the results of channels by country.
    async fn country_metrics(&mut self, tenant: TenantId) -> Result<Vec<CountryMetrics>>;

    /// Adds to the metrics of a country, whose old values decay. Within an environment, call in the order of channel and country.
    async fn add_country_metrics(&mut self, tenant: TenantId, delta: &CountryMetrics) -> Result<()>;
}
