//! `GET /v1/invitations/{id}`.

use nuncio_core::invitations::InvitationView;
use nuncio_domain::InvitationId;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result, named};

named! {
    /// An invitation under its name.
    InvitationBody as InvitationResponse: invitation of InvitationView
}

/// Get an invitation
#[utoipa::path(
    get, path = "/v1/invitations/{id}", tag = "Invitations",
    params(("id" = InvitationId, Path, description = "The invitation.")),
    responses((status = 200, description = "The invitation.", body = InvitationBody)),
)]
pub(crate) async fn get_invitation(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<InvitationBody>> {
    Ok(Reply::ok(core.invitations().get(&caller, &id).await?.into()))
}
