mod create;
mod delete;
mod list;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(create::create_suppression, list::list_suppressions))
        .routes(routes!(delete::delete_suppression))
}
