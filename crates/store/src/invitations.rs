use async_trait::async_trait;
use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{InvitationId, PhoneNumberId, Recipient, TenantId, Timestamp};

use crate::error::Result;

#[async_trait]
pub trait InvitationRepo {
    async fn insert_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()>;

    async fn find_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>>;

    /// Returns the invitation of the token with this hash, and its tenant.
    async fn find_invitation_by_token(&mut self, hash: &[u8; 32]) -> Result<Option<(TenantId, InvitationId)>>;

    /// Returns an invitation, locked until the end of the transaction.
    async fn lock_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>>;

    /// Updates the mutable fields of an invitation.
    async fn update_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()>;

    /// Lists invitations with any of these statuses at `now`; empty means all.
    async fn list_invitations(
        &mut self,
        tenant: TenantId,
        statuses: &[InvitationStatus],
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Page<Invitation>>;

    /// Returns open invitations of all environments that have expired, longest expired first.
    async fn due_invitations(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, InvitationId)>>;

    /// Returns invitations of a client with this phone number or email address, oldest first.
    async fn invitations_of_client(&mut self, tenant: TenantId, client: &Recipient) -> Result<Vec<InvitationId>>;

    /// Returns the open invitation that a number is reserved for.
    async fn invitation_of_number(&mut self, tenant: TenantId, number: PhoneNumberId, now: Timestamp) -> Result<Option<InvitationId>>;
}
