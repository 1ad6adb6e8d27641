//! Writes and reads the ids of resources that have events.

use nuncio_domain::{BroadcastId, ContactId, FieldError, InvitationId, MessageId, TemplateId, event::ResourceKind, id::Id as _};
use uuid::Uuid;

/// Returns the public id of an event's resource; `None` if it has none.
pub(super) fn resource_id(kind: ResourceKind, resource: Uuid) -> Option<String> {
    Some(match kind {
        ResourceKind::Message => MessageId::from_uuid(resource).to_string(),
        ResourceKind::Contact => ContactId::from_uuid(resource).to_string(),
        ResourceKind::Broadcast => BroadcastId::from_uuid(resource).to_string(),
        ResourceKind::Template => TemplateId::from_uuid(resource).to_string(),
        ResourceKind::Invitation => InvitationId::from_uuid(resource).to_string(),
        ResourceKind::Webhook => return None,
    })
}

fn read_resource_id(text: &str) -> Option<Uuid> {
    Some(match text.split('_').next()? {
        MessageId::PREFIX => text.parse::<MessageId>().ok()?.uuid(),
        ContactId::PREFIX => text.parse::<ContactId>().ok()?.uuid(),
        BroadcastId::PREFIX => text.parse::<BroadcastId>().ok()?.uuid(),
        TemplateId::PREFIX => text.parse::<TemplateId>().ok()?.uuid(),
        InvitationId::PREFIX => text.parse::<InvitationId>().ok()?.uuid(),
        _ => return None,
    })
}

/// Parses `resourceId` of a query.
pub(super) fn asked_resource(text: Option<&str>, errors: &mut Vec<FieldError>) -> Option<Uuid> {
    let text = text?;
    let found = read_resource_id(text);
    if found.is_none() {
        let shown: String = text.chars().take(64).collect();
        let message = format!("is {shown:?}; must be the id of a message, contact, broadcast, template or invitation, such as msg_…");
        errors.push(FieldError::new("query.resourceId", message));
    }
    found
}
