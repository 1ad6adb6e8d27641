//! Worlds: the unit of isolation.

use serde::{Deserialize, Serialize};

/// The key of one world (a project's live or test side). Leads every primary key of tenant data; never leaves the process.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub i64);

/// Which of a project's two environments.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    /// Real messages, real costs.
    Live,
    /// Simulated sending; no provider is ever called.
    Test,
}

impl Environment {
    /// `live` or `test`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Test => "test",
        }
    }

    /// Reads `live` or `test`.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "live" => Some(Self::Live),
            "test" => Some(Self::Test),
            _ => None,
        }
    }
}
