mod acquire;
mod available;
mod get;
mod list;
mod release;
mod update;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(acquire::acquire_phone_number, list::list_phone_numbers))
        .routes(routes!(available::list_available_phone_numbers))
        .routes(routes!(get::get_phone_number, update::update_phone_number, release::release_phone_number))
}
