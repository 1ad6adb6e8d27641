//! Status changes, each with its event.

use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::{Result, TenantId, Timestamp};
use nuncio_store::{NewEvent, Occurrence, Tx};
use serde_json::{Map, Value};

use super::view::InvitationView;

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
