//! `POST /v1/invitations`.

use nuncio_core::invitations::{CreateInvitation, InvitationView};

use super::get::InvitationBody;
use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Call, IdempotencyKey, OptionalBody};
use crate::reply::{Reply, Result};

repeated! {
    /// The invitation that an idempotency key was used for.
    InvitationConflict: invitation of InvitationView
}

/// Create an invitation
///
/// Creates a link with which a client sets up a sender: the client enters a name and an email address, and verifies a phone number by a
/// code, or uses the number that you reserved. You send the link; nuncio does not. The body is optional.
#[utoipa::path(
    post, path = "/v1/invitations", tag = "Invitations", request_body = CreateInvitation, params(IdempotencyKey),
    responses(
        (status = 201, description = "The invitation.", body = InvitationBody, links(
            ("get" = (operation_id = "get_invitation", parameters(("id" = "$response.body#/invitation/id")))),
            ("cancel" = (operation_id = "cancel_invitation", parameters(("id" = "$response.body#/invitation/id")))),
        )),
        (status = 404, description = "No such phone number in this environment. Code: `not_found`.", body = ErrorBody),
        (status = 409, description = "The number belongs to a sender or to another invitation, or the idempotency key was used before. Codes: `conflict`, `idempotency_conflict`, `idempotency_key_reused`.", body = InvitationConflict),
    ),
)]
pub(crate) async fn create_invitation(
    Call(core, caller): Call,
    IdempotencyKey(key): IdempotencyKey,
    OptionalBody(asked): OptionalBody<CreateInvitation>,
) -> Result<Reply<InvitationBody>> {
    Ok(Reply::created(core.invitations().create(&caller, asked, key.as_deref()).await?.into()))
}
