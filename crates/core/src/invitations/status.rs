//! Status changes, each with its event, such as the end of the time of an invitation.

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::{InvitationId, Result, TenantId, Timestamp, id::Id as _};
use nuncio_store::{NewEvent, Occurrence, Tx};
use serde_json::{Map, Value};

use super::{Invitations, view::InvitationView};

/// Invitations per round.
const ROUND: u32 = 100;

/// Changes the status of a locked invitation and stores it with its event.
pub(super) async fn change(
    tx: &mut dyn Tx,
    tenant: TenantId,
    invitation: &mut Invitation,
    to: InvitationStatus,
    now: Timestamp,
) -> Result<()> {
    let previous = invitation.status;
    invitation.status = to;
    invitation.version += 1;
    invitation.updated_at = now;
    tx.update_invitation(tenant, invitation).await?;
    let event = NewEvent {
        kind: ResourceKind::Invitation,
        resource: invitation.id.uuid(),
        sequence: invitation.version,
        occurrences: vec![Occurrence {
            kind: EventType::InvitationStatusChanged,
            sender: None,
            data: event_data(invitation, previous, now),
        }],
    };
    Ok(tx.insert_event(tenant, &event, now).await?)
}

/// Returns the event's data: the invitation without its link. The log is not encrypted, and its readers must not be able to use the
/// invitation.
fn event_data(invitation: &Invitation, previous: InvitationStatus, now: Timestamp) -> Map<String, Value> {
    let view = InvitationView::new(invitation, String::new(), String::new(), now);
    let mut view = serde_json::to_value(view).unwrap_or_default();
    if let Value::Object(members) = &mut view {
        members.remove("url");
        members.remove("token");
    }
    Map::from_iter([("invitation".to_owned(), view), ("previousStatus".to_owned(), previous.as_str().into())])
}

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
        change(&mut *tx, tenant, &mut invitation, InvitationStatus::Expired, now).await?;
        Ok(tx.commit().await?)
    }
}
