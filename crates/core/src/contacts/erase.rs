//! Erasing a person: personal data goes everywhere, the books stay.
//!
//! One transaction takes contact and addresses away, gives their suppressions a mark in place of the identifier, and notes each address
//! as erased. From then on a message to the identifier makes a new contact, whose opt-outs hold again: the mark is looked up when a
//! recipient is not known, and nowhere else. The same transaction takes the person out of invitations and of recipients of broadcasts.
//! Messages are then cancelled and emptied in steps. What another node was accepting at that
//! moment, and what a crash left over, is found by [`Contacts::finish_erasures`] a while later.

use std::time::Duration;

use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::Walk;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::{ContactId, Ids, Permission, Recipient, Result, TenantId, Timestamp};
use nuncio_store::{Erasure, Store, Transition, Tx};

use super::Contacts;
use super::lock;
use crate::base::{Caller, parse_id};

/// Messages of one step.
const STEP: u32 = 100;
/// Steps that a caller waits for; the rest is left to [`Contacts::finish_erasures`].
const STEPS: usize = 50;
/// Steps of one sweep, which must not keep dispatch from its work for long.
const SWEEP: usize = 10;
/// Erasures of one sweep.
const ERASURES: u32 = 100;
/// No accept takes as long as this: afterwards nothing more can come in for an address that is gone.
const SETTLED: Duration = Duration::from_secs(60);

impl Contacts<'_> {
    /// `DELETE /v1/contacts/{id}`.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(Permission::ContactsWrite)?;
        let id: ContactId = parse_id(id, "contact")?;
        let (tenant, now) = (caller.tenant, self.ids().clock.now());
        let mut tx = self.inner.store.begin().await?;
        lock(&mut *tx, tenant, id).await?;
        let addresses = tx.addresses_of_contacts(tenant, &[id]).await?;
        let erasures: Vec<_> = addresses.into_iter().map(|a| Erasure { tenant, address: a.id, recipient: a.recipient }).collect();
        for erasure in &erasures {
            tx.insert_erasure(erasure, now).await?;
            let mark = self.marked(tenant, &erasure.recipient);
            tx.rename_suppressions(tenant, &erasure.recipient, &mark.identifier).await?;
            erase_invitations(&mut *tx, tenant, &erasure.recipient, now).await?;
            tx.erase_broadcast_contacts(tenant, &erasure.recipient, &mark.identifier, now).await?;
        }
        let merged = tx.merged_from(tenant, id).await?;
        tx.delete_contact(tenant, id).await?;
        for id in merged.into_iter().chain([id]) {
            tx.erase_events(tenant, ResourceKind::Contact, id.uuid()).await?;
        }
        tx.commit().await?;
        let mut steps = STEPS;
        for erasure in &erasures {
            erase_messages(&*self.inner.store, self.ids(), erasure, &mut steps).await?;
        }
        Ok(())
    }

    /// Finishes erasures: empties the messages that came in while their address went, and forgets the identifier.
    pub async fn finish_erasures(&self) -> nuncio_store::Result<()> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let before = ids.clock.now().minus(SETTLED);
        let erasures = store.read().await?.list_erasures(before, ERASURES).await?;
        let mut steps = SWEEP;
        for erasure in erasures {
            if !erase_messages(store, ids, &erasure, &mut steps).await? {
                break;
            }
            let mut tx = store.begin().await?;
            tx.delete_erasure(&erasure).await?;
            tx.commit().await?;
        }
        Ok(())
    }
}

/// Takes somebody out of the invitations that they got. An open one can still be used: its guest begins anew.
async fn erase_invitations(tx: &mut dyn Tx, tenant: TenantId, client: &Recipient, now: Timestamp) -> nuncio_store::Result<()> {
    for id in tx.invitations_of_client(tenant, client).await? {
        let Some(mut invitation) = tx.lock_invitation(tenant, id).await? else { continue };
        (invitation.client_name, invitation.client_email, invitation.client_phone) = (None, None, None);
        (invitation.walk, invitation.updated_at) = (Walk::default(), now);
        tx.update_invitation(tenant, &invitation).await?;
        tx.erase_events(tenant, ResourceKind::Invitation, id.uuid()).await?;
    }
    Ok(())
}

/// Empties the messages of an address, unfinished ones first, in as many steps as are left; answers whether it was done with them.
async fn erase_messages(store: &dyn Store, ids: &Ids, erasure: &Erasure, steps: &mut usize) -> nuncio_store::Result<bool> {
    let tenant = erasure.tenant;
    loop {
        let messages = store.read().await?.messages_to_erase(erasure, STEP).await?;
        if messages.is_empty() {
            break;
        }
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
