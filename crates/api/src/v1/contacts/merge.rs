//! `POST /v1/contacts/{id}/merge`.

use nuncio_core::contacts::{ContactView, MergeContacts};
use nuncio_domain::ContactId;

use crate::error_schemas::ErrorBody;
use crate::extract::{Body, Call, Path};
use crate::reply::{Reply, Result};

/// Merge another contact into this one
///
/// Moves all channels and messages of the source to the target, with their metrics. The target keeps its fields; those it lacks are taken
/// from the source. Lists no longer contain the source; reading it returns the target. Repeating the same merge changes nothing.
#[utoipa::path(
    post, path = "/v1/contacts/{id}/merge", tag = "Contacts", request_body = MergeContacts,
    params(("id" = ContactId, Path, description = "The contact that stays.")),
    responses(
        (status = 200, description = "The target as it is now.", body = ContactView),
        (status = 409, description = "One of the two was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn merge_contacts(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Body { value, .. }: Body<MergeContacts>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().merge(&caller, &id, value).await?))
}
