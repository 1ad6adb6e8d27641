//! Receipts of providers: found their message, written with what they change, kept as they came.

use nuncio_channel::ReceiptTarget;
use nuncio_domain::lifecycle::{ReceiptKind, Step};
use nuncio_domain::{ConnectionId, Ids, Timestamp};
use nuncio_store::{RawReceipt, Result, Store, StoreError, StrayReceipt, Transition, Transitioned, next_look};

use super::ProviderEvents;

/// The longest receipt that is kept, in bytes.
const RAW: usize = 4 * 1_024;
/// Stray receipts of one look.
const STRAYS: u32 = 256;

impl ProviderEvents<'_> {
    /// Writes a receipt. One that comes before its message is known waits for it.
    pub(crate) async fn receive_receipt(
        &self,
        target: ReceiptTarget,
        (kind, at, raw): (ReceiptKind, Timestamp, Option<String>),
    ) -> Result<()> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let (tenant, transitioned) = match target {
            ReceiptTarget::Attempt { tenant, message, attempt, connection } => {
                let raw = raw.map(|raw| Box::new(kept(ids, connection, String::new(), raw)));
                let step = Step::Receipt { attempt, part: 0, kind, at };
                let transition = Transition { raw, ..Transition::new(tenant, message, step, ids.clock.now()) };
                (tenant, store.transition(transition).await?)
            }
            ReceiptTarget::Reference { tenant, connection, reference } => {
                let receipt = kept(ids, connection, reference, raw.unwrap_or_default());
                let stray = StrayReceipt { tenant, receipt, kind, at, tries: 0 };
                let Some(transitioned) = apply(store, ids, &stray).await? else {
                    let mut tx = store.begin().await?;
                    tx.insert_stray(&stray, ids.clock.now().plus(next_look(0).unwrap_or_default())).await?;
                    return tx.commit().await;
                };
                (tenant, transitioned)
            }
        };
        self.inner.dispatch.count_receipt(tenant, &transitioned);
        Ok(())
    }

    /// Looks for the messages of stray receipts that are due. Those of which none is found within a day stay to be seen.
    /// Returns whether any was found.
    pub async fn look_for_strays(&self) -> Result<bool> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let due = store.read().await?.due_strays(ids.clock.now(), STRAYS).await?;
        let mut any = false;
        for stray in due {
            let found = match apply(store, ids, &stray).await {
                // Others are not to wait for a message that cannot be read.
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(receipt = %stray.receipt.id, %error, "a receipt cannot be written");
                    None
                }
                found => found?,
            };
            let mut tx = store.begin().await?;
            match found {
                Some(transitioned) => {
                    tx.delete_stray(stray.tenant, stray.receipt.id).await?;
                    self.inner.dispatch.count_receipt(stray.tenant, &transitioned);
                    self.inner.dispatch.logs().grown(stray.tenant);
                    any = true;
                }
                None => {
                    let due = next_look(stray.tries + 1).map(|pause| ids.clock.now().plus(pause));
                    tx.put_off_stray(&stray, due).await?;
                }
            }
            tx.commit().await?;
        }
        Ok(any)
    }
}

/// What a stray receipt's message became, if it is known by now.
async fn apply(store: &dyn Store, ids: &Ids, stray: &StrayReceipt) -> Result<Option<Transitioned>> {
    let StrayReceipt { tenant, receipt, kind, at, .. } = stray.clone();
    match store.transition(Transition::of_reference(tenant, receipt, kind, at, ids.clock.now())).await? {
        Transitioned::Missing => Ok(None),
        found => Ok(Some(found)),
    }
}

fn kept(ids: &Ids, connection: ConnectionId, reference: String, mut raw: String) -> RawReceipt {
    raw.truncate(raw.floor_char_boundary(RAW));
    RawReceipt { id: ids.next(), connection, reference, raw: raw.replace('\0', "\u{fffd}") }
}
