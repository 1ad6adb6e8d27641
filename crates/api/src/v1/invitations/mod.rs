mod cancel;
mod create;
mod get;
mod list;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create::create_invitation, list::list_invitations))
        .routes(routes!(get::get_invitation))
        .routes(routes!(cancel::cancel_invitation))
}
