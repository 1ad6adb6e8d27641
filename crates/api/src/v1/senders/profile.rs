//! `/v1/senders/{id}/profile` and its picture: the business profile at the provider of the WhatsApp account.

use nuncio_core::senders::{ProfileView, SetPicture, UpdateProfile};
use nuncio_domain::SenderId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result, named};

named! {
    /// A business profile under its name.
    ProfileBody as BusinessProfileResponse: profile of ProfileView
}

/// A business profile that was changed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UpdatedBusinessProfile)]
pub(crate) struct ChangedProfile {
    /// Always true; a failure returns an error.
    success: bool,
    profile: ProfileView,
}

impl From<ProfileView> for ChangedProfile {
    fn from(profile: ProfileView) -> Self {
        Self { success: true, profile }
    }
}

/// Get the business profile
///
/// Queries the provider of the sender's WhatsApp account. Without one, the response is 400 `sender_not_configured`.
#[utoipa::path(
    get, path = "/v1/senders/{id}/profile", tag = "Senders",
    params(("id" = SenderId, Path, description = "The sender.")),
    responses(
        (status = 200, description = "The business profile.", body = ProfileBody),
        (status = 400, description = "The request is invalid, or the sender has no WhatsApp account. Code: `sender_not_configured`.", body = ErrorBody),
    ),
)]
pub(crate) async fn get_sender_profile(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<ProfileBody>> {
    Ok(Reply::ok(ProfileBody { profile: core.senders().get_profile(&caller, &id).await? }))
}

/// Change the business profile
///
/// Absent fields stay unchanged; an empty text or list clears a field. Returns the profile as then reported by the provider.
#[utoipa::path(
    patch, path = "/v1/senders/{id}/profile", tag = "Senders", request_body = UpdateProfile,
    params(("id" = SenderId, Path, description = "The sender.")),
    responses(
        (status = 200, description = "The business profile as it is now.", body = ChangedProfile),
        (status = 400, description = "The request is invalid, or the sender has no WhatsApp account. Code: `sender_not_configured`.", body = ErrorBody),
    ),
)]
pub(crate) async fn update_sender_profile(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<UpdateProfile>,
) -> Result<Reply<ChangedProfile>> {
    Ok(Reply::ok(core.senders().update_profile(&caller, &id, value).await?.into()))
}

/// Set the picture of the business profile
///
/// The server downloads it (at most 5 MB), checks that it has the type in `mimeType`, and uploads it to the provider.
#[utoipa::path(
    post, path = "/v1/senders/{id}/profile/picture", tag = "Senders", request_body = SetPicture,
    params(("id" = SenderId, Path, description = "The sender.")),
    responses(
        (status = 200, description = "The business profile as it is now.", body = ChangedProfile),
        (status = 400, description = "The request is invalid, or the sender has no WhatsApp account. Code: `sender_not_configured`.", body = ErrorBody),
    ),
)]
pub(crate) async fn set_sender_profile_picture(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<SetPicture>,
) -> Result<Reply<ChangedProfile>> {
    Ok(Reply::ok(core.senders().set_picture(&caller, &id, value).await?.into()))
}
