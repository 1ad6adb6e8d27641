//! `GET /v1/senders`.

use nuncio_core::senders::{ListSenders, SenderView};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of senders.
    SenderPage of SenderView
}

/// List senders
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/senders", tag = "Senders", params(ListSenders),
    responses((status = 200, description = "A page of senders.", body = SenderPage)),
)]
pub(crate) async fn list_senders(Call(core, caller): Call, Query(list): Query<ListSenders>) -> Result<Reply<SenderPage>> {
    Ok(Reply::ok(core.senders().list(&caller, &list).await?.into()))
}
