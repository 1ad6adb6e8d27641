//! Webhook deliveries.

mod get;
mod list;
mod replay;
mod test;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(list::list_webhook_deliveries))
        .routes(routes!(get::get_webhook_delivery))
        .routes(routes!(replay::replay_webhook_delivery))
        .routes(routes!(test::test_sender_webhook))
        .routes(routes!(test::test_webhook))
}
