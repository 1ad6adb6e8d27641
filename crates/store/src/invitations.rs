//! Invitations.

use async_trait::async_trait;
use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{InvitationId, PhoneNumberId, Recipient, TenantId, Timestamp};

use crate::error::Result;

/// Invitations.
#[async_trait]
pub trait InvitationRepo {
    /// Writes a new invitation.
    async fn insert_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()>;

    /// One invitation.
    async fn find_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>>;

    /// Whose invitation the token with this hash belongs to.
    async fn find_invitation_by_token(&mut self, hash: &[u8; 32]) -> Result<Option<(TenantId, InvitationId)>>;

    /// One invitation that nobody else changes or locks before the transaction ends.
    async fn lock_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>>;

    /// Writes everything of an invitation that can change.
    async fn update_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()>;

    /// Invitations that have any of these statuses at `now`; empty for all.
    async fn list_invitations(
        &mut self,
        tenant: TenantId,
        statuses: &[InvitationStatus],
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Page<Invitation>>;

    /// Open invitations of all worlds that ended, the longest ended first.
    async fn due_invitations(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, InvitationId)>>;

    /// Invitations of a client with this phone number or email address, oldest first.
    async fn invitations_of_client(&mut self, tenant: TenantId, client: &Recipient) -> Result<Vec<InvitationId>>;

    /// The open invitation that a number is set aside for.
    async fn invitation_of_number(&mut self, tenant: TenantId, number: PhoneNumberId, now: Timestamp) -> Result<Option<InvitationId>>;
}
