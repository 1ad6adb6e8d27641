//! Invitations that nobody finished in time.

use nuncio_domain::invitation::InvitationStatus;
use nuncio_domain::{InvitationId, Result, TenantId};

use super::Invitations;
use super::status;

/// Invitations of one round.
const ROUND: u32 = 100;

impl Invitations<'_> {
    /// Expires open invitations whose time is over, with their events, each in a transaction of its own; returns whether there were any.
    pub async fn expire_due(&self) -> Result<bool> {
        let due = self.inner.store.read().await?.due_invitations(self.ids().clock.now(), ROUND).await?;
        for (tenant, id) in &due {
            // One that cannot be read must not stand in front of the others.
            if let Err(error) = self.expire(*tenant, *id).await {
                tracing::warn!(%id, %error, "a invitation that is due could not be seen to; it is tried again");
            }
        }
        Ok(!due.is_empty())
    }

    /// Writes down that an invitation ended, if it still is open under the lock of its row: of two nodes one tells.
    pub async fn expire(&self, tenant: TenantId, id: InvitationId) -> Result<()> {
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let ended = tx.lock_invitation(tenant, id).await?.filter(|i| i.status.is_open() && i.expires_at <= now);
        let Some(mut invitation) = ended else { return Ok(()) };
        status::change(&mut *tx, tenant, &mut invitation, InvitationStatus::Expired, now).await?;
        Ok(tx.commit().await?)
    }
}
