//! Texts from outside that come in several parts: each part is on disk before it is answered, whatever node it comes to.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_channel::{Inbound, InboundPart};
use nuncio_domain::{Ids, sms};
use nuncio_store::{Parts, Piece, Reassembly, Result, StoreError};

use super::ProviderEvents;

/// Stands for what did not come.
const GAP: &str = "[…]";
/// Messages of one look.
const LOOK: u32 = 256;

impl ProviderEvents<'_> {
    /// Writes a part; with the last one that was missing, the message.
    pub(crate) async fn receive_part(&self, part: InboundPart) -> Result<()> {
        let (store, fresh) = (&*self.inner.store, fresh(self.ids(), &part));
        let index = usize::from(part.sequence.max(1)) - 1;
        if index >= fresh.parts.pieces.len() {
            tracing::warn!(connection = %part.connection, "a part of a message numbers itself beyond their total; it was dropped");
            return Ok(());
        }
        let piece = Some(Piece { alphabet: part.alphabet, octets: part.octets });
        let mut written = String::new();
        let known = loop {
            let mut tx = store.begin().await?;
            let mut known = tx.lock_reassembly(&fresh).await?;
            let here = known.parts.pieces.get(index).cloned().flatten();
            // A phone uses its numbers again: a part that differs from the one that is here is of another message.
            if here != piece && (here.is_some() || known.parts.sealed) {
                if !known.parts.done && known.reference != written {
                    drop(tx);
                    self.receive_message(whole(&known)).await?;
                    written = known.reference;
                    continue;
                }
                known = fresh.clone();
            }
            if let Some(slot) = known.parts.pieces.get_mut(index) {
                *slot = piece;
            }
            tx.put_reassembly(&known).await?;
            tx.commit().await?;
            break known;
        };
        if known.parts.done || known.parts.pieces.iter().any(Option::is_none) {
            return Ok(());
        }
        self.receive_message(whole(&known)).await?;
        // Should this not be reached, the message is written once more when its time is over, which changes nothing.
        let mut tx = store.begin().await?;
        let mut now = tx.lock_reassembly(&known).await?;
        if now.reference == known.reference {
            now.parts.done = true;
            tx.put_reassembly(&now).await?;
        }
        tx.commit().await
    }

    /// Writes messages whose missing parts did not come in time, and forgets the parts of all whose time is over. Returns
    /// whether any was written.
    pub async fn look_for_late_parts(&self) -> Result<bool> {
        let due = self.inner.store.read().await?.due_reassemblies(self.ids().clock.now(), LOOK).await?;
        let mut any = false;
        for seen in due {
            match self.give_up_parts(&seen).await {
                Ok(true) => {
                    self.inner.dispatch.logs().grown(seen.tenant);
                    any = true;
                }
                Ok(false) => {}
                // Others are not to wait for a world that cannot be read.
                Err(error @ StoreError::Corrupt { .. }) => {
                    tracing::error!(connection = %seen.connection, %error, "a text in parts cannot be written")
                }
                Err(error) => return Err(error),
            }
        }
        Ok(any)
    }

    /// Takes a message as it is; answers whether it was written. It is closed to further parts first: these are of another message then.
    async fn give_up_parts(&self, seen: &Reassembly) -> Result<bool> {
        let store = &*self.inner.store;
        let mut tx = store.begin().await?;
        let mut known = tx.lock_reassembly(seen).await?;
        if known.reference != seen.reference {
            return Ok(false);
        }
        known.parts.sealed = true;
        tx.put_reassembly(&known).await?;
        tx.commit().await?;
        if !known.parts.done {
            self.receive_message(whole(&known)).await?;
        }
        let mut tx = store.begin().await?;
        tx.delete_reassembly(&known).await?;
        tx.commit().await?;
        Ok(!known.parts.done)
    }
}

fn fresh(ids: &Ids, part: &InboundPart) -> Reassembly {
    let mut random = [0; 16];
    ids.entropy.fill(&mut random);
    let now = ids.clock.now();
    Reassembly {
        tenant: part.tenant,
        connection: part.connection,
        key: part.key.clone(),
        reference: URL_SAFE_NO_PAD.encode(random),
        due_at: now.plus(part.patience.max(Duration::from_secs(1))),
        parts: Parts {
            channel: part.channel,
            from: part.from.clone(),
            to: part.to.clone(),
            since: part.at,
            pieces: vec![None; usize::from(part.total.max(1))],
            done: false,
            sealed: false,
        },
    }
}

fn whole(reassembly: &Reassembly) -> Inbound {
    let Reassembly { tenant, connection, reference, parts, .. } = reassembly;
    let place = (*tenant, *connection, parts.channel);
    let inbound = Inbound::text(place, reference.clone(), parts.from.clone(), text(&parts.pieces), parts.since);
    Inbound { to: parts.to.clone(), ..inbound }
}

/// What the parts say. Those of one alphabet are joined before they are read: some phones cut a character in two.
fn text(pieces: &[Option<Piece>]) -> String {
    let joins = |a: &Option<Piece>, b: &Option<Piece>| a.as_ref().map(|a| a.alphabet) == b.as_ref().map(|b| b.alphabet);
    let runs = pieces.chunk_by(joins).map(|run| match &run[0] {
        Some(first) => sms::read(first.alphabet, &run.iter().flatten().flat_map(|piece| piece.octets.iter().copied()).collect::<Vec<_>>()),
        None => GAP.to_owned(),
    });
    runs.collect()
}
