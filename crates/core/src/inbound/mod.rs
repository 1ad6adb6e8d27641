//! Provider events: inbound messages, receipts, opt-outs, complaints, and the same as the sandbox plays them.

mod callbacks;
mod keywords;
mod parts;
mod play;
mod receipts;
mod receive;

pub use callbacks::{CallbackTarget, Called, ProviderAnswer};
pub use play::PlayInbound;
use receive::Received;

use nuncio_channel::ProviderEvent;
use nuncio_store::{Result, SuppressionReason};

crate::base::use_cases! {
    /// Applies provider events.
    inbound => ProviderEvents
}

impl ProviderEvents<'_> {
    /// Applies a provider event and signals the readers of the event log.
    ///
    /// # Errors
    ///
    /// [`nuncio_store::StoreError`]: nothing is stored, or the outcome is unknown; the event can be passed again.
    pub async fn receive(&self, event: ProviderEvent) -> Result<()> {
        let tenant = event.tenant();
        match event {
            ProviderEvent::Receipt { target, kind, at, raw } => self.receive_receipt(target, (kind, at, raw)).await?,
            ProviderEvent::LateResult(result) => Box::pin(self.inner.dispatch.settle_late(*result)).await?,
            // Boxed, above and from here on: the future of a receipt is moved several times, and would otherwise be as large as the largest of these.
            ProviderEvent::Inbound(inbound) => Box::pin(self.receive_message(inbound)).await?,
            ProviderEvent::Part(part) => Box::pin(self.receive_part(*part)).await?,
            ProviderEvent::OptedOut(opted) => Box::pin(self.opt_out(opted)).await?,
            ProviderEvent::TemplateDecided { tenant, template, decision } => {
                Box::pin(self.templates().decided(tenant, template, &decision)).await?;
            }
            ProviderEvent::Complaint { tenant, message } => {
                Box::pin(self.suppress(tenant, message, SuppressionReason::Complaint, None)).await?;
            }
            ProviderEvent::Bounced { tenant, message, recipient } => {
                Box::pin(self.suppress(tenant, message, SuppressionReason::Bounce, recipient)).await?;
            }
        }
        self.inner.dispatch.log_signals().grown(tenant);
        Ok(())
    }
}
