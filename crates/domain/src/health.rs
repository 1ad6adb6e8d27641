//! How well the connections to providers work.

use serde::Serialize;

use crate::time::Timestamp;

/// The health of a connection, as far as one node has used it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ConnectionHealth))]
pub struct Health {
    /// Whether the connection works.
    pub state: HealthState,
    /// Since when it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(value_type = Option<String>, format = DateTime))]
    pub since: Option<Timestamp>,
    /// What is wrong, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a connection works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub enum HealthState {
    /// It works, or was not used yet.
    #[default]
    Ok,
    /// It failed as a whole and is left alone for a while.
    Resting,
    /// It cannot be opened, or failed and is about to be tried again.
    Failing,
    /// The provider refuses the account. Messages wait, and the provider is asked now and then whether it takes the account by now.
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
