//! Receipts of providers: found their message, written with what they change, kept as they came.

use nuncio_channel::ReceiptTarget;
use nuncio_domain::lifecycle::{ReceiptKind, Step};
use nuncio_domain::{ConnectionId, Ids, TenantId, Timestamp};
use nuncio_store::{RawReceipt, Result, Store, StoreError, StrayReceipt, Transition, Transitioned, next_look};

/// The longest receipt that is kept, in bytes.
const RAW: usize = 4 * 1_024;
/// Stray receipts of one look.
const STRAYS: u32 = 256;

/// Writes a receipt. One that comes before its message is known waits for it.
pub(crate) async fn receive(
    store: &dyn Store,
    ids: &Ids,
    target: ReceiptTarget,
    (kind, at, raw): (ReceiptKind, Timestamp, Option<String>),
) -> Result<Option<Transitioned>> {
    match target {
        ReceiptTarget::Attempt { tenant, message, attempt, connection } => {
            let raw = raw.map(|raw| Box::new(kept(ids, connection, String::new(), raw)));
            let step = Step::Receipt { attempt, part: 0, kind, at };
            store.transition(Transition { raw, ..Transition::new(tenant, message, step, ids.clock.now()) }).await.map(Some)
        }
        ReceiptTarget::Reference { tenant, connection, reference } => {
            let receipt = kept(ids, connection, reference, raw.unwrap_or_default());
            let stray = StrayReceipt { tenant, receipt, kind, at, tries: 0 };
            if let Some(transitioned) = apply(store, ids, &stray).await? {
                return Ok(Some(transitioned));
            }
            let mut tx = store.begin().await?;
            tx.insert_stray(&stray, ids.clock.now().plus(next_look(0).unwrap_or_default())).await?;
            tx.commit().await?;
            Ok(None)
        }
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

/// A receipt whose message was found, with what became of it.
pub type Settled = (TenantId, Transitioned);

/// Looks for the messages of stray receipts that are due. Those of which none is found within a day stay to be seen.
pub async fn look_for_strays(store: &dyn Store, ids: &Ids) -> Result<Vec<Settled>> {
    let due = store.read().await?.due_strays(ids.clock.now(), STRAYS).await?;
    let mut settled = Vec::new();
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
                settled.push((stray.tenant, transitioned));
            }
            None => {
                let due = next_look(stray.tries + 1).map(|pause| ids.clock.now().plus(pause));
                tx.put_off_stray(&stray, due).await?;
            }
        }
        tx.commit().await?;
    }
    Ok(settled)
}

fn kept(ids: &Ids, connection: ConnectionId, reference: String, mut raw: String) -> RawReceipt {
    raw.truncate(raw.floor_char_boundary(RAW));
    RawReceipt { id: ids.next(), connection, reference, raw: raw.replace('\0', "\u{fffd}") }
}
