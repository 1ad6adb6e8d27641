//! `GET /v1/keys`.

use nuncio_core::{KeyView, ListKeys};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of API keys.
    ApiKeyPage of KeyView
}

/// List API keys
///
/// The keys of this environment, newest first, including expired and revoked ones. The keys themselves are not shown: the server stores only hashes.
#[utoipa::path(
    get, path = "/v1/keys", tag = "Account", params(ListKeys),
    responses((status = 200, description = "A page of API keys.", body = ApiKeyPage)),
)]
pub(crate) async fn list_keys(Call(core, caller): Call, Query(list): Query<ListKeys>) -> Result<Reply<ApiKeyPage>> {
    Ok(Reply::ok(core.keys().page(&caller, &list).await?.into()))
}
