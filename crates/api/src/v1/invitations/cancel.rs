//! `POST /v1/invitations/{id}/cancel`.

use nuncio_domain::InvitationId;

use super::get::InvitationBody;
use crate::extract::{Call, NoBody, Path};
use crate::reply::{Reply, Result};

/// Cancel an invitation
///
/// Withdraws an invitation that is pending or in progress; its link stops working. For any other, the response is 400 with its status.
#[utoipa::path(
    post, path = "/v1/invitations/{id}/cancel", tag = "Invitations",
    params(("id" = InvitationId, Path, description = "The invitation.")),
    responses((status = 200, description = "The invitation, cancelled.", body = InvitationBody)),
)]
pub(crate) async fn cancel_invitation(Call(core, caller): Call, Path(id): Path<String>, _: NoBody) -> Result<Reply<InvitationBody>> {
    Ok(Reply::ok(core.invitations().cancel(&caller, &id).await?.into()))
}
