//! Limits what a response shows of resources that the caller has no permission to read.

use nuncio_domain::{Permission, event::ResourceKind};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Caller;

/// A resource by its name in responses, and the permission to read it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resource {
    pub(crate) name: &'static str,
    pub(crate) read: Permission,
}

pub(crate) const MESSAGE: Resource = Resource { name: "message", read: Permission::MessagesRead };
pub(crate) const CONTACT: Resource = Resource { name: "contact", read: Permission::ContactsRead };
pub(crate) const CONTACT_CHANNEL: Resource = Resource { name: "channel", read: Permission::ContactsRead };
pub(crate) const SUPPRESSION: Resource = Resource { name: "suppression", read: Permission::ContactsRead };
pub(crate) const BROADCAST: Resource = Resource { name: "broadcast", read: Permission::BroadcastsRead };
pub(crate) const TEMPLATE: Resource = Resource { name: "template", read: Permission::TemplatesRead };
pub(crate) const INVITATION: Resource = Resource { name: "invitation", read: Permission::InvitationsRead };
pub(crate) const SENDER: Resource = Resource { name: "sender", read: Permission::SendersRead };
pub(crate) const PHONE_NUMBER: Resource = Resource { name: "phoneNumber", read: Permission::NumbersRead };
pub(crate) const API_KEY: Resource = Resource { name: "apiKey", read: Permission::KeysRead };
pub(crate) const WEBHOOK: Resource = Resource { name: "webhook", read: Permission::WebhooksRead };

impl From<ResourceKind> for Resource {
    fn from(kind: ResourceKind) -> Self {
        match kind {
            ResourceKind::Message => MESSAGE,
            ResourceKind::Contact => CONTACT,
            ResourceKind::Broadcast => BROADCAST,
            ResourceKind::Template => TEMPLATE,
            ResourceKind::Invitation => INVITATION,
            ResourceKind::Webhook => WEBHOOK,
        }
    }
}

impl Caller {
    /// Returns whether the caller can read resources of this kind.
    pub(crate) fn may_read(&self, resource: Resource) -> bool {
        self.permissions.allows(resource.read)
    }

    /// Returns a resource as this caller can see it: in full, or only its id and status.
    pub(crate) fn view(&self, resource: Resource, whole: &impl Serialize) -> Value {
        let whole = serde_json::to_value(whole).unwrap_or_default();
        if self.may_read(resource) { whole } else { id_and_status(&whole) }
    }
}

/// Returns what every caller can see of a resource: its id, and its status if it has one.
pub(crate) fn id_and_status(whole: &Value) -> Value {
    let members = ["id", "status"].into_iter().filter_map(|name| Some((name.to_owned(), whole.get(name)?.clone())));
    Value::Object(members.collect::<Map<_, _>>())
}
