//! Erases contacts: personal data is deleted, accounting data stays.
//!
//! One transaction deletes the contact and its addresses, replaces the identifier of their suppressions by a keyed hash, and records each
//! address as erased. A later message to the identifier creates a new contact with the same opt-outs, because the hash is looked up for
//! every unknown recipient. The same transaction removes the contact from invitations and broadcasts. Its messages are then cancelled and
//! erased in steps. What another node accepted meanwhile, or a crash left over, is erased by [`Contacts::finish_erasures`] later.

use std::time::Duration;

use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::InvitationProgress;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::{ContactId, Ids, Recipient, Result, TenantId, Timestamp};
use nuncio_store::{Erasure, Store, Transition, Tx};

use super::{Contacts, lock};
use crate::base::{Caller, Change, UseCase, parse_id};

/// Messages per step.
const STEP: u32 = 100;
/// Steps that a caller waits for; [`Contacts::finish_erasures`] does the rest.
const STEPS: usize = 50;
/// Steps per address and sweep.
const SWEEP: usize = 50;
/// Erasures per sweep.
const ERASURES: u32 = 100;
/// Longer than any accept takes: after it, nothing can be stored for a deleted address.
const SETTLED: Duration = Duration::from_secs(60);

impl Contacts<'_> {
    /// `DELETE /v1/contacts/{id}`.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DeleteContact)?;
        let id: ContactId = parse_id(id, "contact")?;
        let (tenant, now) = (caller.tenant, self.ids().clock.now());
        let mut tx = self.inner.store.begin().await?;
        lock(&mut *tx, tenant, id).await?;
        let addresses = tx.addresses_of_contacts(tenant, &[id]).await?;
        let removed = tx.removed_addresses(tenant, id).await?;
        let all = addresses.into_iter().map(|a| (a.id, a.recipient)).chain(removed);
        let erasures: Vec<_> = all.map(|(address, recipient)| Erasure { tenant, address, recipient }).collect();
        for erasure in &erasures {
            tx.insert_erasure(erasure, now).await?;
            // An identifier that was removed can be somebody else's now.
            if tx.find_address(tenant, &erasure.recipient).await?.is_some_and(|(_, owner)| owner != id) {
                continue;
            }
            tx.erase_parts(tenant, &erasure.recipient).await?;
            let mark = self.marked(tenant, &erasure.recipient);
            tx.rename_suppressions(tenant, &erasure.recipient, &mark.identifier).await?;
            erase_invitations(&mut *tx, tenant, &erasure.recipient, now).await?;
            let written = self.inner.marks.as_written(tenant, &erasure.recipient);
            tx.erase_broadcast_contacts(tenant, &erasure.recipient, &written, now).await?;
        }
        let merged = tx.merged_from(tenant, id).await?;
        tx.delete_contact(tenant, id).await?;
        for gone in merged.into_iter().chain([id]) {
            tx.erase_events(tenant, ResourceKind::Contact, gone.uuid()).await?;
        }
        Change::new("contact", "erase", id).commit(tx, tenant).await?;
        let mut steps = STEPS;
        for erasure in &erasures {
            erase_messages(&*self.inner.store, self.ids(), erasure, &mut steps).await?;
        }
        Ok(())
    }

    /// Finishes erasures: erases messages stored while their address was deleted, then deletes the identifier.
    pub async fn finish_erasures(&self) -> nuncio_store::Result<()> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let before = ids.clock.now().minus(SETTLED);
        let erasures = store.read().await?.list_erasures(before, ERASURES).await?;
        let mut failed = None;
        for erasure in erasures {
            // One that fails must not hold up the others.
            if let Err(error) = finish(store, ids, &erasure).await {
                failed = Some(error);
            }
        }
        failed.map_or(Ok(()), Err)
    }
}

async fn finish(store: &dyn Store, ids: &Ids, erasure: &Erasure) -> nuncio_store::Result<()> {
    let mut steps = SWEEP;
    if !erase_messages(store, ids, erasure, &mut steps).await? {
        return Ok(());
    }
    let mut tx = store.begin().await?;
    tx.delete_erasure(erasure).await?;
    tx.commit().await
}

/// Removes a client from their invitations. An open invitation stays usable, but starts over.
async fn erase_invitations(tx: &mut dyn Tx, tenant: TenantId, client: &Recipient, now: Timestamp) -> nuncio_store::Result<()> {
    for id in tx.invitations_of_client(tenant, client).await? {
        let Some(mut invitation) = tx.lock_invitation(tenant, id).await? else { continue };
        (invitation.client_name, invitation.client_email, invitation.client_phone) = (None, None, None);
        (invitation.progress, invitation.updated_at) = (InvitationProgress::default(), now);
        tx.update_invitation(tenant, &invitation).await?;
        tx.erase_events(tenant, ResourceKind::Invitation, id.uuid()).await?;
    }
    Ok(())
}

/// Erases the messages of an address, unfinished ones first, in at most `steps` steps; returns whether it finished.
async fn erase_messages(store: &dyn Store, ids: &Ids, erasure: &Erasure, steps: &mut usize) -> nuncio_store::Result<bool> {
    let tenant = erasure.tenant;
    let (mut unfinished, mut before) = (true, None);
    loop {
        let messages = store.read().await?.messages_to_erase(erasure, unfinished, before, STEP).await?;
        if messages.is_empty() {
            if !unfinished {
                break;
            }
            (unfinished, before) = (false, None);
            continue;
        }
        before = messages.last().copied();
        let Some(left) = steps.checked_sub(1) else { return Ok(false) };
        *steps = left;
        let ended = messages.iter().map(|id| store.transition(Transition::new(tenant, *id, Step::Erase, ids.clock.now())));
        futures::future::try_join_all(ended).await?;
        let mut tx = store.begin().await?;
        tx.erase_messages(tenant, &messages).await?;
        tx.commit().await?;
    }
    let mut tx = store.begin().await?;
    tx.delete_metrics(tenant, erasure.address).await?;
    tx.commit().await?;
    Ok(true)
}
