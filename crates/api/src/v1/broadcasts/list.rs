//! `GET /v1/broadcasts`.

use nuncio_core::broadcasts::{BroadcastView, ListBroadcasts};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of broadcasts.
    BroadcastPage of BroadcastView
}

/// List broadcasts
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/broadcasts", tag = "Broadcasts", params(ListBroadcasts),
    responses((status = 200, description = "A page of broadcasts.", body = BroadcastPage)),
)]
pub(crate) async fn list_broadcasts(Call(core, caller): Call, Query(list): Query<ListBroadcasts>) -> Result<Reply<BroadcastPage>> {
    Ok(Reply::ok(core.broadcasts().list(&caller, &list).await?.into()))
}
