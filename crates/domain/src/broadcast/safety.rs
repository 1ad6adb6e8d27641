//! Canaries and automatic pauses.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::time::Timestamp;

/// Sends to some recipients first, so that problems show early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BroadcastCanary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Canary {
    /// Percentage of recipients that get their message first, rounded up.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 50))]
    pub percent: u8,
    /// How long the others wait after the first were all queued, in seconds.
    #[cfg_attr(feature = "openapi", schema(minimum = 60, maximum = 604_800))]
    pub wait_seconds: u32,
}

impl Canary {
    /// Returns how many of `total` recipients get their message first.
    pub const fn first_of(&self, total: i64) -> i64 {
        (total * self.percent as i64 + 99) / 100
    }

    /// Returns when the others follow the first, who had their messages at `sent_at`.
    pub const fn end(&self, sent_at: Timestamp) -> Timestamp {
        sent_at.plus(Duration::from_secs(self.wait_seconds as u64))
    }
}

/// When a broadcast pauses automatically. Rates apply once the outcome of 50 recipients is known.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BroadcastHaltOn))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HaltOn {
    /// More than this percentage failed.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100))]
    pub failure_percent: Option<f64>,
    /// More than this percentage of the recipients reached opted out since the start.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100))]
    pub opt_out_percent: Option<f64>,
    /// More than this percentage of the recipients reached complained since the start.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100))]
    pub complaint_percent: Option<f64>,
}

/// Outcomes at the time of a halt; after a resume, rates count from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HaltBase {
    /// Not delivered.
    pub failed: i64,
    /// Delivered, or accepted by a provider.
    pub reached: i64,
    /// Opted out since the start.
    pub opted_out: i64,
    /// Complained since the start.
    pub complained: i64,
}
