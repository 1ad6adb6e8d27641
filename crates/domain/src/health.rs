//! Health of provider connections.

use serde::Serialize;

use crate::{channel::named, time::Timestamp};

/// Health of a connection as observed by one node.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConnectionHealth))]
pub struct Health {
    /// Health state.
    pub state: HealthState,
    /// Since when the connection has not been working.
    pub since: Option<Timestamp>,
    /// Reason, as text.
    pub reason: Option<String>,
}

named! {
    /// Health state of a connection.
    #[derive(Default)]
    HealthState {
        /// Working, or not used yet.
        #[default]
        Ok "ok",
        /// Backing off after a failure of the whole connection.
        Resting "resting",
        /// Failed to open, failed its last test, or about to be retried.
        Failing "failing",
        /// The provider rejects the account. Messages wait; the account is retried from time to time.
        Stopped "stopped",
    }
}
