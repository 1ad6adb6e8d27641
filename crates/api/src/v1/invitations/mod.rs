//! Invitations.

mod cancel;
mod create;
mod get;
mod list;

use nuncio_core::invitations::InvitationView;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::state::App;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default()
        .routes(routes!(create::create_invitation, list::list_invitations))
        .routes(routes!(get::get_invitation))
        .routes(routes!(cancel::cancel_invitation))
}

/// An invitation under its name.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = InvitationResponse)]
pub(crate) struct InvitationBody {
    invitation: InvitationView,
}

impl From<InvitationView> for InvitationBody {
    fn from(invitation: InvitationView) -> Self {
        Self { invitation }
    }
}
