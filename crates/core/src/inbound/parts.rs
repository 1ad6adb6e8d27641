//! Reassembles inbound texts from their segments. Each segment is stored before it is acknowledged, so segments can arrive on any node.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_channel::{Inbound, InboundPart};
use nuncio_domain::{Ids, sms};
use nuncio_store::{Piece, Reassembly, ReassemblyState, Result, StoreError};

use super::ProviderEvents;

/// Replaces missing segments.
const GAP: &str = "[…]";
/// Messages per sweep.
const LOOK: u32 = 256;
/// When a message that could not be stored is tried again.
const AGAIN: Duration = Duration::from_secs(60);

impl ProviderEvents<'_> {
    /// Stores a segment, and the message once it is complete.
    pub(crate) async fn receive_part(&self, part: InboundPart) -> Result<()> {
        let (store, fresh) = (&*self.inner.store, fresh(self.ids(), &part));
        let index = usize::from(part.sequence.max(1)) - 1;
        if index >= fresh.parts.pieces.len() {
            tracing::warn!(connection = %part.connection, "segment number exceeds the total; dropped the segment");
            return Ok(());
        }
        let piece = Some(Piece { alphabet: part.alphabet, octets: part.octets });
        let mut written = String::new();
        let known = loop {
            let mut tx = store.begin().await?;
            let mut known = tx.lock_reassembly(&fresh).await?;
            let here = known.parts.pieces.get(index).cloned().flatten();
            // Phones reuse reference numbers: a segment that differs from the stored one belongs to another message.
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
        // If this fails, the message is stored again when its time is over, which changes nothing.
        let mut tx = store.begin().await?;
        let mut now = tx.lock_reassembly(&known).await?;
        if now.reference == known.reference {
            now.parts.done = true;
            tx.put_reassembly(&now).await?;
        }
        tx.commit().await
    }

    /// Stores incomplete messages whose time is over, and deletes the segments of all that are done. Returns whether any was stored.
    pub async fn store_late_messages(&self) -> Result<bool> {
        let due = self.inner.store.read().await?.due_reassemblies(self.ids().clock.now(), LOOK).await?;
        let mut any = false;
        for seen in due {
            match self.store_incomplete(&seen).await {
                Ok(true) => {
                    self.inner.dispatch.log_signals().grown(seen.tenant);
                    any = true;
                }
                Ok(false) => {}
                Err(error @ (StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_))) => return Err(error),
                // One that cannot be stored must not block the others.
                Err(error) => tracing::error!(connection = %seen.connection, %error, "failed to store segmented text; will retry"),
            }
        }
        Ok(any)
    }

    /// Stores a message as it is; returns whether it was stored. First closes it to further segments, which then belong to another message.
    async fn store_incomplete(&self, seen: &Reassembly) -> Result<bool> {
        let store = &*self.inner.store;
        let mut tx = store.begin().await?;
        let mut known = tx.lock_reassembly(seen).await?;
        if known.reference != seen.reference {
            return Ok(false);
        }
        known.parts.sealed = true;
        known.due_at = self.ids().clock.now().plus(AGAIN);
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
        parts: ReassemblyState {
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

/// Decodes the segments. Those of one alphabet are joined first: some phones split a character.
fn text(pieces: &[Option<Piece>]) -> String {
    let joins = |a: &Option<Piece>, b: &Option<Piece>| a.as_ref().map(|a| a.alphabet) == b.as_ref().map(|b| b.alphabet);
    let runs = pieces.chunk_by(joins).map(|run| match &run[0] {
        Some(first) => sms::read(first.alphabet, &run.iter().flatten().flat_map(|piece| piece.octets.iter().copied()).collect::<Vec<_>>()),
        None => GAP.to_owned(),
    });
    runs.collect()
}
