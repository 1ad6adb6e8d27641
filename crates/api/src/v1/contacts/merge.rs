//! `POST /v1/contacts/{id}/merge`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::contacts::{ContactView, MergeContacts};

use crate::error::ErrorBody;
use crate::extract::{Auth, Body, Path};
use crate::reply::{Reply, Result};

/// Merge another contact into this one
///
/// All channels and messages of the source come to the target, with their metrics. The target keeps its fields and takes what it lacks
/// from the source. The source leaves the lists; reading it returns the target. Repeating the same merge changes nothing.
#[utoipa::path(
    post, path = "/v1/contacts/{id}/merge", tag = "Contacts", request_body = MergeContacts,
    params(("id" = String, Path, description = "The contact that stays.", example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses(
        (status = 200, description = "The target as it is now.", body = ContactView),
        (status = 409, description = "One of the two was merged into `details.mergedInto`. Code: `conflict`.", body = ErrorBody),
    ),
)]
pub(crate) async fn merge_contacts(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Body { value, .. }: Body<MergeContacts>,
) -> Result<Reply<ContactView>> {
    Ok(Reply::ok(core.contacts().merge(&caller, &id, value).await?))
}
