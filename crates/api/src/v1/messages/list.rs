//! `GET /v1/messages`.

use nuncio_core::messages::{ListMessages, MessageView};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of messages.
    MessagePage of MessageView
}

/// List messages
///
/// Newest first. `to`, `contactId`, `idempotencyKey` and `status=failed` are indexed. With other filters, a request examines 10,000
/// messages: its page can be short or empty and still have a `nextCursor`.
#[utoipa::path(
    get, path = "/v1/messages", tag = "Messages", params(ListMessages),
    responses((status = 200, description = "A page of messages.", body = MessagePage)),
)]
pub(crate) async fn list_messages(Call(core, caller): Call, Query(list): Query<ListMessages>) -> Result<Reply<MessagePage>> {
    Ok(Reply::ok(core.messages().list(&caller, &list).await?.into()))
}
