//! Figures of an environment by hour and by day, from which charts are drawn without reading messages.

use async_trait::async_trait;
use nuncio_domain::{Channel, TenantId, Timestamp};

use crate::error::Result;

/// Milliseconds of an hour.
pub const HOUR: i64 = 3_600_000;
/// Milliseconds of a day.
pub const DAY: i64 = 24 * HOUR;
/// Upper bounds of the classes that delivery times are counted in, in milliseconds. What took longer is in one more class.
pub const DELAYS: [i64; 7] = [1_000, 2_000, 5_000, 15_000, 60_000, 300_000, 1_800_000];

/// Figures of some span of time. An attempt that fell back to another channel counts as failed on its own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Messages that a provider took.
    pub sent: i64,
    /// Those among them whose provider sends no receipts.
    pub unconfirmed: i64,
    /// Messages that arrived.
    pub delivered: i64,
    /// Messages that failed, and attempts that fell back.
    pub failed: i64,
    /// Micros of a US dollar that were charged.
    pub spent: i64,
    /// Messages that arrived, by the time from acceptance, or from the time they were scheduled for: classes of [`DELAYS`].
    pub delays: [i64; DELAYS.len() + 1],
}

impl Traffic {
    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.unconfirmed += other.unconfirmed;
        self.delivered += other.delivered;
        self.failed += other.failed;
        self.spent = self.spent.saturating_add(other.spent);
        for (sum, more) in self.delays.iter_mut().zip(other.delays) {
            *sum += more;
        }
    }

    /// Counts a delivery time in milliseconds.
    pub fn add_delay(&mut self, millis: i64) {
        let class = DELAYS.iter().position(|bound| millis <= *bound).unwrap_or(DELAYS.len());
        self.delays[class] += 1;
    }
}

/// The figures of one hour or one day, channel and country.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TrafficRow {
    /// Milliseconds: [`HOUR`] or [`DAY`].
    pub span: i64,
    /// When it began; days begin at midnight UTC.
    pub began: Timestamp,
    /// The channel.
    pub channel: Channel,
    /// ISO 3166-1 alpha-2; `""` if unknown.
    pub country: String,
    /// The figures.
    pub figures: Traffic,
}

/// Figures by hour and by day.
#[async_trait]
pub trait TrafficRepo {
    /// Adds to the figures of an hour or a day; whoever counts adds to both. Rows of one tenant in the order of span, beginning, channel and
    /// country, so that two nodes do not wait for each other.
    async fn add_traffic(&mut self, tenant: TenantId, row: &TrafficRow) -> Result<()>;

    /// Figures by channel since the hour `since`, in steps of `hours` hours that begin with it, without delivery times; oldest first.
    async fn traffic_by_time(&mut self, tenant: TenantId, since: Timestamp, hours: i64) -> Result<Vec<(Timestamp, Channel, Traffic)>>;

    /// Figures by channel and country since an hour.
    async fn traffic_by_country(&mut self, tenant: TenantId, since: Timestamp) -> Result<Vec<(Channel, String, Traffic)>>;

    /// Deletes up to `limit` rows of a tenant that began before `before`. Returns how many.
    async fn forget_traffic(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;
}
