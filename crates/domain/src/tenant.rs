//! Tenants: the unit of isolation.

use serde::{Deserialize, Serialize};

use crate::channel::named;

/// Key of one environment of a project. Leads every primary key of tenant data. Internal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub i64);

named! {
    /// The two environments of a project.
    Environment {
        /// Real messages, real costs.
        Live "live",
        /// Simulated sending; providers are never called.
        Test "test",
    }
}
