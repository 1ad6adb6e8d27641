//! Operations available only in test environments.

mod inbound;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(inbound::play_inbound))
}
