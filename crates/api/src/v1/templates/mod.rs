mod create;
mod delete;
mod get;
mod list;
mod submit;
mod update;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(create::create_template, list::list_templates))
        .routes(routes!(get::get_template, update::update_template, delete::delete_template))
        .routes(routes!(submit::submit_template))
}
