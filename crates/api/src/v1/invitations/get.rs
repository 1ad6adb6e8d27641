//! `GET /v1/invitations/{id}`.

use axum::extract::State;
use nuncio_core::Core;

use super::InvitationBody;
use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get an invitation
#[utoipa::path(
    get, path = "/v1/invitations/{id}", tag = "Invitations",
    params(("id" = String, Path, description = "The invitation.", example = "inv_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The invitation.", body = InvitationBody)),
)]
pub(crate) async fn get_invitation(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<Reply<InvitationBody>> {
    Ok(Reply::ok(core.invitations().get(&caller, &id).await?.into()))
}
