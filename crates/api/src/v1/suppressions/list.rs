//! `GET /v1/suppressions`.

use nuncio_core::suppressions::{ListSuppressions, SuppressionView};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of suppressions.
    SuppressionPage of SuppressionView
}

/// List suppressions
///
/// Newest first. With `identifier`, also those of an erased person.
#[utoipa::path(
    get, path = "/v1/suppressions", tag = "Suppressions", params(ListSuppressions),
    responses((status = 200, description = "A page of suppressions.", body = SuppressionPage)),
)]
pub(crate) async fn list_suppressions(Call(core, caller): Call, Query(list): Query<ListSuppressions>) -> Result<Reply<SuppressionPage>> {
    Ok(Reply::ok(core.suppressions().list(&caller, &list).await?.into()))
}
