use nuncio_core::invitations::{CreateInvitation, InvitationView, ListInvitations};
use nuncio_domain::InvitationId;

use crate::error_schemas::{ErrorBody, repeated};
use crate::extract::{Call, IdempotencyKey, NoBody, OptionalBody, Path, Query};
use crate::reply::{Reply, Result, named, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create_invitation, list_invitations))
        .routes(routes!(get_invitation))
        .routes(routes!(cancel_invitation))
}

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
