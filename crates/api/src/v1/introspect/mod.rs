//! Checks recipients without sending anything.

mod email;
mod phone;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(phone::introspect_phone)).routes(routes!(email::introspect_email))
}
