//! Webhook deliveries.

mod get;
mod list;
mod replay;
mod test;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list::list_webhook_deliveries))
        .routes(routes!(get::get_webhook_delivery))
        .routes(routes!(replay::replay_webhook_delivery))
        .routes(routes!(test::test_sender_webhook))
        .routes(routes!(test::test_webhook))
}
