//! `GET /v1/invitations`.

use nuncio_core::invitations::{InvitationView, ListInvitations};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of invitations.
    InvitationPage of InvitationView
}

/// List invitations
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/invitations", tag = "Invitations", params(ListInvitations),
    responses((status = 200, description = "A page of invitations.", body = InvitationPage)),
)]
pub(crate) async fn list_invitations(Call(core, caller): Call, Query(list): Query<ListInvitations>) -> Result<Reply<InvitationPage>> {
    Ok(Reply::ok(core.invitations().list(&caller, &list).await?.into()))
}
