//! Exports the result of every recipient, by page or as CSV.

use nuncio_domain::{Result, broadcast::Broadcast, page::PageRequest};

use super::{Broadcasts, view::BroadcastContactView};
use crate::base::csv::quoted;
use crate::base::{Caller, Core, UseCase, parse_id};

/// Recipients per page.
const PAGE: u32 = 500;

impl Broadcasts<'_> {
    /// Returns all recipients, page by page.
    pub async fn results(&self, caller: &Caller, id: &str) -> Result<Results> {
        caller.require(UseCase::ExportBroadcastResults)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        Ok(Results { core: Core::clone(self), broadcast, before: None, through: false })
    }
}

/// Iterates over the recipients of a broadcast, newest first.
#[derive(Debug)]
pub struct Results {
    core: Core,
    broadcast: Broadcast,
    before: Option<uuid::Uuid>,
    through: bool,
}

impl Results {
    /// Returns the next page, once there is a read permit; `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<Vec<BroadcastContactView>>> {
        if self.through {
            return Ok(None);
        }
        let (tenant, id) = (self.broadcast.tenant, self.broadcast.id);
        let _permit = self.core.inner.reads.wait(tenant).await;
        let mut tx = self.core.inner.store.read().await?;
        let page = tx.list_broadcast_contacts(tenant, id, &[], PageRequest::older(PAGE, self.before)).await?;
        (self.before, self.through) = (page.next, page.next.is_none());
        Ok(Some(page.items.into_iter().map(|contact| BroadcastContactView::new(contact, &self.broadcast)).collect()))
    }
}

/// Header of the CSV file.
pub const CSV_HEAD: &str = "id,recipient,recipientType,status,channel,messageId,errorCode,errorMessage,cost,processedAt,createdAt\r\n";

/// Returns a recipient's CSV line (RFC 4180).
pub fn csv_line(contact: &BroadcastContactView) -> String {
    let cells = [
        contact.id.to_string(),
        contact.recipient.clone(),
        contact.recipient_type.to_owned(),
        contact.status.to_string(),
        contact.channel.map(|channel| channel.to_string()).unwrap_or_default(),
        contact.message_id.map(|id| id.to_string()).unwrap_or_default(),
        contact.error_code.map(|code| code.to_string()).unwrap_or_default(),
        contact.error_message.clone().unwrap_or_default(),
        contact.cost.map(|cost| cost.to_string()).unwrap_or_default(),
        contact.processed_at.map(|at| at.to_string()).unwrap_or_default(),
        contact.created_at.to_string(),
    ];
    cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
}
