mod cancel;
mod create;
mod get;
mod list;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(create::create_invitation, list::list_invitations))
        .routes(routes!(get::get_invitation))
        .routes(routes!(cancel::cancel_invitation))
}
