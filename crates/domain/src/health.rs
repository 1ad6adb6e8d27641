//! Health of provider connections.

use serde::Serialize;

use crate::time::Timestamp;

/// Health of a connection as observed by one node.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConnectionHealth))]
pub struct Health {
    /// Health state.
    pub state: HealthState,
    /// Since when the connection has not been working.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Reason, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Health state of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HealthState {
    /// Working, or not used yet.
    #[default]
    Ok,
    /// Backing off after a failure of the whole connection.
    Resting,
    /// Failed to open, failed its last test, or about to be retried.
    Failing,
    /// The provider rejects the account. Messages wait; the account is retried from time to time.
    Stopped,
}

impl HealthState {
    /// Returns the name that metrics and lists use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Resting => "resting",
            Self::Failing => "failing",
            Self::Stopped => "stopped",
        }
    }
}
