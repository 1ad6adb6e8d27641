//! Tenants: the unit of isolation.

use serde::{Deserialize, Serialize};

/// Key of one environment of a project. Leads every primary key of tenant data. Internal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub i64);

/// The two environments of a project.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Real messages, real costs.
    Live,
    /// Simulated sending; providers are never called.
    Test,
}

impl Environment {
    /// Returns `live` or `test`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// Parses `live` or `test`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "live" => Some(Self::Live),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}
