//! Invitations that nobody finished in time.

use nuncio_domain::invitation::InvitationStatus;
use nuncio_domain::{Ids, InvitationId, Result, TenantId};
use nuncio_store::Store;

use super::status;
use crate::StoreResultExt as _;

/// Invitations of one round.
const ROUND: u32 = 100;

/// Writes down that open invitations ended, with their events, each in a transaction of its own. Answers whether any had ended.
pub async fn expire_due(store: &dyn Store, ids: &Ids) -> Result<bool> {
    let due = store.read().await.or_fail()?.due_invitations(ids.clock.now(), ROUND).await.or_fail()?;
    for (tenant, id) in &due {
        // One that cannot be read must not stand in front of the others.
        if let Err(error) = expire_invitation(store, ids, *tenant, *id).await {
            tracing::warn!(%id, %error, "a invitation that is due could not be seen to; it is tried again");
        }
    }
    Ok(!due.is_empty())
}

/// Writes down that an invitation ended, if it still is open under the lock of its row: of two nodes one tells.
pub async fn expire_invitation(store: &dyn Store, ids: &Ids, tenant: TenantId, id: InvitationId) -> Result<()> {
    let now = ids.clock.now();
    let mut tx = store.begin().await.or_fail()?;
    let ended = tx.lock_invitation(tenant, id).await.or_fail()?.filter(|i| i.status.is_open() && i.expires_at <= now);
    let Some(mut invitation) = ended else { return Ok(()) };
    status::change(&mut *tx, tenant, &mut invitation, InvitationStatus::Expired, now).await?;
    tx.commit().await.or_fail()
}
