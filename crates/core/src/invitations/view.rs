//! Public representation of invitations.

use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::{InvitationId, Permission, PhoneNumberId, SenderId, TenantId, Timestamp, id::Id as _};
use nuncio_secrets::Row;
use serde::Serialize;
use utoipa::ToSchema;

use super::Invitations;
use crate::base::Caller;

/// The name of the token among the sealed values of its row.
pub(super) const TOKEN: &str = "token";

/// An invitation.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Invitation)]
pub struct InvitationView {
    /// Its identifier.
    pub id: InvitationId,
    /// The link for the client. Anyone who has it can use the invitation. Empty for a key without `invitations:write`, and if its
    /// encryption key is missing.
    pub url: String,
    /// The secret part of the link; empty like `url`.
    pub token: String,
    /// Its status.
    pub status: InvitationStatus,
    /// The client's name.
    #[schema(required)]
    pub client_name: Option<String>,
    /// The client's email address.
    #[schema(required)]
    pub client_email: Option<String>,
    /// The client's phone number in E.164.
    #[schema(required)]
    pub client_phone: Option<String>,
    /// The number the client uses instead of their own.
    #[schema(required)]
    pub phone_number_id: Option<PhoneNumberId>,
    /// The sender created by completing it.
    #[schema(required)]
    pub sender_id: Option<SenderId>,
    /// Allowed countries (ISO 3166-1 alpha-2) of the client's own number; empty means any.
    pub allowed_phone_countries: Vec<String>,
    /// When it expires.
    pub expires_at: Timestamp,
    /// When the client first opened it.
    #[schema(required)]
    pub viewed_at: Option<Timestamp>,
    /// When the client started.
    #[schema(required)]
    pub started_at: Option<Timestamp>,
    /// When the client finished.
    #[schema(required)]
    pub completed_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl InvitationView {
    /// Makes the view at `now`.
    pub(super) fn new(invitation: &Invitation, url: String, token: String, now: Timestamp) -> Self {
        Self {
            id: invitation.id,
            url,
            token,
            status: invitation.status_at(now),
            client_name: invitation.client_name.clone(),
            client_email: invitation.client_email.clone(),
            client_phone: invitation.client_phone.clone(),
            phone_number_id: invitation.number,
            sender_id: invitation.sender,
            allowed_phone_countries: invitation.countries.clone(),
            expires_at: invitation.expires_at,
            viewed_at: invitation.viewed_at,
            started_at: invitation.started_at,
            completed_at: invitation.completed_at,
            created_at: invitation.id.created_at(),
            updated_at: invitation.updated_at,
        }
    }
}

impl Invitations<'_> {
    /// Returns the view with its decrypted token if the caller may create invitations: anyone with the link can create a sender. Without the
    /// encryption key the link is not shown, but still works, since it is looked up by its hash.
    pub(super) fn view(&self, caller: &Caller, invitation: &Invitation) -> InvitationView {
        let may_use = caller.permissions.allows(Permission::InvitationsWrite);
        let token = if may_use { self.token(caller.tenant, invitation) } else { String::new() };
        let url = if token.is_empty() { String::new() } else { format!("{}/invite/{token}", self.inner.public_url) };
        InvitationView::new(invitation, url, token, self.ids().clock.now())
    }

    fn token(&self, tenant: TenantId, invitation: &Invitation) -> String {
        match self.inner.sealer.open(Row::Invitation(tenant, invitation.id), invitation.sealed.expose()) {
            Ok(secrets) => secrets.get(TOKEN).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned(),
            Err(error) => {
                tracing::warn!(invitation.id = %invitation.id, %error, "failed to decrypt the link of an invitation");
                String::new()
            }
        }
    }
}
