//! Changes of broadcast recipients that a batch causes, and the change of their counts.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::{ContactStatus, Counts, Part};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::State;
use nuncio_domain::message::Message;
use uuid::Uuid;

/// Changes of broadcast recipients, and what they add to the counts.
#[derive(Debug, Default)]
pub(crate) struct RecipientUpdates {
    pub(crate) contacts: Vec<RecipientUpdate>,
    pub(crate) counts: BTreeMap<(i64, Uuid), Counts>,
}

/// The new status of a recipient.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecipientUpdate {
    pub(crate) tenant: i64,
    pub(crate) part: Part,
    pub(crate) status: ContactStatus,
    /// None for a recipient who is pending again.
    pub(crate) message: Option<Uuid>,
}

impl RecipientUpdates {
    /// A message of a broadcast was inserted.
    pub(crate) fn insert(&mut self, message: &Message) {
        self.add(message.tenant.0, message.id.uuid(), (ContactStatus::Pending, Counts::default()), &message.state);
    }

    pub(super) fn add(&mut self, tenant: i64, message: Uuid, before: (ContactStatus, Counts), state: &State) {
        let Some(part) = state.detail.broadcast else { return };
        let (status, counts) = (ContactStatus::of(state), Counts::of(state));
        if status != before.0 {
            let message = (status != ContactStatus::Pending).then_some(message);
            self.contacts.push(RecipientUpdate { tenant, part, status, message });
        }
        if counts != before.1 {
            self.counts.entry((tenant, part.broadcast.uuid())).or_default().add(&counts.since(&before.1));
        }
    }
}
