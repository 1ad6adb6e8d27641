//! Stores receipts, and applies them to their messages.

use nuncio_channel::ReceiptTarget;
use nuncio_domain::lifecycle::{ReceiptKind, Step};
use nuncio_domain::{ConnectionId, Ids, Timestamp};
use nuncio_store::{RawReceipt, Result, StoreError, StrayReceipt, Transition, Transitioned, next_lookup};

use super::ProviderEvents;

/// Maximum length of a stored receipt, in bytes.
const RAW: usize = 4 * 1_024;
/// Stray receipts that are looked up at once, and how often a second.
const STRAYS: u32 = 256;
const SWEEPS: usize = 16;

impl ProviderEvents<'_> {
    /// Stores and applies a receipt. One whose message is not known yet is stored as stray.
    pub(crate) async fn receive_receipt(&self, of: ReceiptTarget, (kind, at, raw): (ReceiptKind, Timestamp, Option<String>)) -> Result<()> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let (tenant, transitioned) = match of {
            ReceiptTarget::Attempt { tenant, message, attempt, connection } => {
                let raw = raw.map(|raw| Box::new(kept(ids, connection, String::new(), raw)));
                let step = Step::Receipt { attempt, part: 0, kind, at };
                let transition = Transition { raw, ..Transition::new(tenant, message, step, ids.clock.now()) };
                (tenant, store.transition(transition).await?)
            }
            ReceiptTarget::Reference { tenant, connection, reference } => {
                let receipt = kept(ids, connection, reference, raw.unwrap_or_default());
                let now = ids.clock.now();
                let by_reference = Transition::of_reference(tenant, receipt.clone(), kind.clone(), at, now);
                let transitioned = store.transition(by_reference).await?;
                if matches!(transitioned, Transitioned::Missing) {
                    let stray = StrayReceipt { tenant, receipt, kind, at, tries: 0 };
                    let mut tx = store.begin().await?;
                    tx.insert_stray(&stray, now.plus(next_lookup(0).unwrap_or_default())).await?;
                    return tx.commit().await;
                }
                (tenant, transitioned)
            }
        };
        self.inner.dispatch.count_result(tenant, &transitioned);
        Ok(())
    }

    /// Looks for the messages of stray receipts that are due. Receipts without a message after a day stay listed. Returns whether any was
    /// found.
    pub async fn match_strays(&self) -> Result<bool> {
        let mut any = false;
        for _ in 0..SWEEPS {
            let due = self.inner.store.read().await?.due_strays(self.ids().clock.now(), STRAYS).await?;
            let full = due.len() == STRAYS as usize;
            any |= self.match_due(due).await?;
            if !full {
                break;
            }
        }
        Ok(any)
    }

    async fn match_due(&self, due: Vec<StrayReceipt>) -> Result<bool> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let apply = async |stray: &StrayReceipt| {
            let StrayReceipt { tenant, receipt, kind, at, .. } = stray.clone();
            match store.transition(Transition::of_reference(tenant, receipt, kind, at, ids.clock.now())).await {
                // A message that cannot be read must not block the others.
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(receipt = %stray.receipt.id, %error, "failed to apply stray receipt");
                    Ok(Transitioned::Missing)
                }
                found => found,
            }
        };
        let found = futures::future::join_all(due.iter().map(apply)).await;
        let (mut matched, mut failed) = (Vec::new(), None);
        let mut tx = store.begin().await?;
        for (stray, found) in due.iter().zip(found) {
            match found {
                Ok(Transitioned::Missing) => {
                    let due = next_lookup(stray.tries + 1).map(|pause| ids.clock.now().plus(pause));
                    tx.reschedule_stray(stray, due).await?;
                }
                Ok(found) => {
                    tx.delete_stray(stray.tenant, stray.receipt.id).await?;
                    matched.push((stray.tenant, found));
                }
                Err(error) => failed = Some(error),
            }
        }
        tx.commit().await?;
        for (tenant, found) in &matched {
            self.inner.dispatch.count_result(*tenant, found);
        }
        failed.map_or(Ok(!matched.is_empty()), Err)
    }
}

fn kept(ids: &Ids, connection: ConnectionId, reference: String, mut raw: String) -> RawReceipt {
    raw.truncate(raw.floor_char_boundary(RAW));
    RawReceipt { id: ids.next(), connection, reference, raw: raw.replace('\0', "\u{fffd}") }
}
