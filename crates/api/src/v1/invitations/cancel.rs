//! `POST /v1/invitations/{id}/cancel`.

use axum::extract::State;
use nuncio_core::Core;

use super::InvitationBody;
use crate::extract::{Auth, NoBody, Path};
use crate::reply::{Reply, Result};

/// Cancel an invitation
///
/// Withdraws an invitation that is pending or in progress; its link stops working. Any other answers 400 with its status.
#[utoipa::path(
    post, path = "/v1/invitations/{id}/cancel", tag = "Invitations",
    params(("id" = String, Path, description = "The invitation.", example = "inv_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The invitation, cancelled.", body = InvitationBody)),
)]
pub(crate) async fn cancel_invitation(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    _: NoBody,
) -> Result<Reply<InvitationBody>> {
    Ok(Reply::ok(core.invitations().cancel(&caller, &id).await?.into()))
}
