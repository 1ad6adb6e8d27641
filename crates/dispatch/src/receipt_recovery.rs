//! Requests receipts again that in-process providers lost when a node ended.
//!
//! A real provider resends receipts, or sends them to another node. A provider that lives in the process loses its pending receipts with
//! it. So after a start, and after another node died, it is asked again for every message that waits for a receipt, each once: newest
//! first, some pages per second. A repeated receipt changes nothing.

use std::sync::Arc;

use nuncio_channel::SendRequest;
use nuncio_domain::message::{AttemptStatus, Message, Wait};
use nuncio_store::{AgendaPlace, DueMessage, Result};
use parking_lot::Mutex;

use crate::{Shared, nodes::SHARDS};

/// Pages per call.
const PAGES: usize = 4;

/// Progress through the messages.
#[derive(Debug, Default)]
pub(crate) struct ReceiptRecovery(Mutex<Scan>);

#[derive(Clone, Copy, Debug, Default)]
struct Scan {
    /// Number of the scan.
    number: u64,
    /// Next shard and position in it, newest first; `None` when done.
    next: Option<(i16, Option<AgendaPlace>)>,
}

impl ReceiptRecovery {
    /// Starts from the first message.
    pub(crate) fn begin(&self) {
        let mut scan = self.0.lock();
        *scan = Scan { number: scan.number + 1, next: Some((0, None)) };
    }

    /// Continues the scan, unless it was restarted meanwhile.
    fn advance(&self, scan: Scan) {
        let mut known = self.0.lock();
        if known.number == scan.number {
            *known = scan;
        }
    }
}

impl Shared {
    /// Requests some receipts again; returns whether there were any.
    pub(crate) async fn recover_receipts(self: &Arc<Self>) -> Result<bool> {
        let kinds: Vec<&str> = self.registry.iter().filter(|factory| factory.forgets_receipts()).map(|factory| factory.kind()).collect();
        let (mut scan, mut pages, mut asked) = (*self.receipt_recovery.0.lock(), 0, false);
        while let Some((shard, before)) = scan.next.filter(|_| pages < PAGES && !self.is_stopping()) {
            let page = self.store.read().await?.messages_awaiting_receipts(shard, before).await?;
            pages += usize::from(page.is_some());
            for waiting in page.iter().flat_map(|page| &page.messages).filter(|waiting| kinds.contains(&waiting.provider.as_str())) {
                self.ask_for_receipt(&waiting.message).await?;
                asked = true;
            }
            scan.next = match page {
                Some(page) => Some((shard, Some(page.next))),
                None if kinds.is_empty() || shard + 1 >= SHARDS => None,
                None => Some((shard + 1, None)),
            };
            self.receipt_recovery.advance(scan);
        }
        Ok(asked)
    }

    async fn ask_for_receipt(self: &Arc<Self>, message: &DueMessage) -> Result<()> {
        let found = self.store.read().await?.lookup_messages(message.tenant, &[message.id]).await?.pop();
        let Some(found) = found.filter(|found| matches!(found.state.wait, Wait::Receipt { .. })) else { return Ok(()) };
        let taken = found.state.detail.attempts.iter().enumerate().filter(|(_, attempt)| attempt.status == AttemptStatus::Accepted);
        for (index, attempt) in taken {
            let Some(lane) = self.find_lane(message.tenant, attempt.connection).await? else { continue };
            let Ok(adapter) = &lane.adapter else { continue };
            let message = as_of(&found, index);
            let request =
                SendRequest { message: &message, attempt: index, channel: attempt.channel, attachments: &[], now: attempt.started_at };
            adapter.resend_receipt(&request).await;
        }
        Ok(())
    }
}

/// Returns a message as of this attempt.
fn as_of(message: &Message, attempt: usize) -> Message {
    let mut message = message.clone();
    message.state.detail.attempts.truncate(attempt + 1);
    message
}
