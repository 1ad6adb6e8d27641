mod create;
mod list;
mod revoke;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(list::list_keys, create::create_key)).routes(routes!(revoke::revoke_key))
}
