//! Expires invitations.

use nuncio_domain::invitation::InvitationStatus;
use nuncio_domain::{InvitationId, Result, TenantId};

use super::Invitations;
use super::status;

/// Invitations per round.
const ROUND: u32 = 100;

impl Invitations<'_> {
    /// Expires open invitations whose time is over, each with its event in a separate transaction; returns whether there were any.
    pub async fn expire_due(&self) -> Result<bool> {
        let due = self.inner.store.read().await?.due_invitations(self.ids().clock.now(), ROUND).await?;
        for (tenant, id) in &due {
            // An invitation that cannot be read must not block the others.
            if let Err(error) = self.expire(*tenant, *id).await {
                tracing::warn!(%id, %error, "failed to expire invitation; will retry");
            }
        }
        Ok(!due.is_empty())
    }

    /// Expires an invitation if it is still open under its row lock, so that only one node publishes it.
    pub async fn expire(&self, tenant: TenantId, id: InvitationId) -> Result<()> {
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let ended = tx.lock_invitation(tenant, id).await?.filter(|i| i.status.is_open() && i.expires_at <= now);
        let Some(mut invitation) = ended else { return Ok(()) };
        status::change(&mut *tx, tenant, &mut invitation, InvitationStatus::Expired, now).await?;
        Ok(tx.commit().await?)
    }
}
