//! `GET /v1/messages/{id}/receipts` and `GET /v1/stray-receipts`.

use nuncio_core::messages::{ReceiptView, StrayReceiptView};
use nuncio_domain::MessageId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// The receipts of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceiptList {
    items: Vec<ReceiptView>,
}

/// Receipts that match no message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StrayReceiptList {
    items: Vec<StrayReceiptView>,
}

/// List the receipts of a message
///
/// The receipts as sent by the providers, oldest first; at most 100.
#[utoipa::path(
    get, path = "/v1/messages/{id}/receipts", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The receipts.", body = ReceiptList)),
)]
pub(crate) async fn list_message_receipts(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<ReceiptList>> {
    Ok(Reply::ok(ReceiptList { items: core.messages().list_receipts(&caller, &id).await? }))
}

/// List receipts without a message
///
/// Receipts that match no message, newest first; at most 100. The server tries to match them for a day; after that they remain here.
#[utoipa::path(
    get, path = "/v1/stray-receipts", tag = "Messages",
    responses((status = 200, description = "The receipts.", body = StrayReceiptList)),
)]
pub(crate) async fn list_stray_receipts(Call(core, caller): Call) -> Result<Reply<StrayReceiptList>> {
    Ok(Reply::ok(StrayReceiptList { items: core.messages().list_stray_receipts(&caller).await? }))
}
