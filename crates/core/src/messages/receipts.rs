//! Receipts as received: those of a message, and stray ones.

use nuncio_domain::{ConnectionId, Error, ReceiptId, Result, Timestamp, id::Id as _, lifecycle::ReceiptKind, message::Status};
use nuncio_store::RawReceipt;
use serde::Serialize;
use utoipa::ToSchema;

use super::Messages;
use crate::base::{Caller, UseCase, parse_id};

/// A receipt as received from the provider.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Receipt)]
pub struct ReceiptView {
    /// Its identifier.
    pub id: ReceiptId,
    /// The connection that received it.
    pub connection_id: ConnectionId,
    /// The provider's id in the receipt; null if it named the message by nuncio's id.
    #[schema(required)]
    pub provider_message_id: Option<String>,
    /// As received, up to 4 KB; empty if it had no further information.
    pub raw: String,
    /// When it arrived.
    pub received_at: Timestamp,
}

/// A receipt whose message is unknown.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = StrayReceipt)]
pub struct StrayReceiptView {
    /// The receipt.
    #[serde(flatten)]
    pub receipt: ReceiptView,
    /// The reported status.
    pub status: Status,
    /// Time of the status, as reported by the provider.
    pub occurred_at: Timestamp,
}

impl Messages<'_> {
    /// `GET /v1/messages/{id}/receipts`: oldest first, at most 100.
    pub async fn list_receipts(&self, caller: &Caller, id: &str) -> Result<Vec<ReceiptView>> {
        caller.require(UseCase::ListMessageReceipts)?;
        let id = parse_id(id, "message")?;
        let mut tx = self.inner.store.read().await?;
        tx.lookup_messages(caller.tenant, &[id]).await?.pop().ok_or_else(|| Error::not_found("message"))?;
        let receipts = tx.list_receipts(caller.tenant, id).await?;
        Ok(receipts.into_iter().map(|record| view(record.receipt)).collect())
    }

    /// `GET /v1/stray-receipts`: newest first, at most 100.
    pub async fn list_stray_receipts(&self, caller: &Caller) -> Result<Vec<StrayReceiptView>> {
        caller.require(UseCase::ListStrayReceipts)?;
        let strays = self.inner.store.read().await?.list_strays(caller.tenant).await?;
        let shown = |stray: nuncio_store::StrayReceipt| StrayReceiptView {
            receipt: view(stray.receipt),
            status: says(&stray.kind),
            occurred_at: stray.at,
        };
        Ok(strays.into_iter().map(shown).collect())
    }
}

fn view(receipt: RawReceipt) -> ReceiptView {
    ReceiptView {
        id: receipt.id,
        connection_id: receipt.connection,
        provider_message_id: Some(receipt.reference).filter(|reference| !reference.is_empty()),
        raw: receipt.raw,
        received_at: receipt.id.created_at(),
    }
}

fn says(kind: &ReceiptKind) -> Status {
    match kind {
        ReceiptKind::Sent => Status::Sent,
        ReceiptKind::Delivered => Status::Delivered,
        ReceiptKind::Read => Status::Read,
        ReceiptKind::Failed(_) => Status::Failed,
    }
}
