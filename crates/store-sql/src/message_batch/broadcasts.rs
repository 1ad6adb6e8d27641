//! Changes of broadcast recipients that a batch causes, and the change of their counts.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::{ContactStatus, Counts};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Membership, Message, State};
use uuid::Uuid;

/// Changes of broadcast recipients, and what they add to the counts.
#[derive(Debug, Default)]
pub(crate) struct RecipientUpdates {
    pub(crate) contacts: Vec<RecipientUpdate>,
    pub(crate) counts: BTreeMap<(i64, Uuid), Counts>,
}

/// What the row of a recipient says from now on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecipientUpdate {
    pub(crate) tenant: i64,
    pub(crate) membership: Membership,
    pub(crate) row: RecipientRow,
    pub(crate) message: Uuid,
}

/// What the row of a recipient says of its message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum RecipientRow {
    /// There is none: the recipient is pending.
    Pending,
    /// Its status is that of the message.
    AsMessage,
    /// This, whatever the message says.
    Ended(ContactStatus),
}

impl RecipientRow {
    pub(super) fn of(state: &State) -> Self {
        match ContactStatus::of(state) {
            ContactStatus::Pending => Self::Pending,
            _ => ContactStatus::stored(state).map_or(Self::AsMessage, Self::Ended),
        }
    }
}

impl RecipientUpdate {
    /// The column `message_id`: nil for a recipient who is pending.
    pub(crate) fn message_id(&self) -> Uuid {
        if self.row == RecipientRow::Pending { Uuid::nil() } else { self.message }
    }

    /// The column `outcome`.
    pub(crate) const fn outcome(&self) -> i16 {
        if let RecipientRow::Ended(status) = self.row { status.number() } else { 0 }
    }
}

impl RecipientUpdates {
    /// A message of a broadcast is inserted, whose recipient is claimed.
    pub(crate) fn insert(&mut self, message: &Message) {
        self.add(message.tenant.0, message.id.uuid(), (RecipientRow::AsMessage, Counts::default()), &message.state);
    }

    /// A message is refused whose recipient is claimed already.
    pub(crate) fn release(&mut self, message: &Message) {
        if let Some(membership) = message.state.detail.broadcast {
            self.contacts.push(RecipientUpdate { tenant: message.tenant.0, membership, row: RecipientRow::Pending, message: Uuid::nil() });
        }
    }

    pub(super) fn add(&mut self, tenant: i64, message: Uuid, before: (RecipientRow, Counts), state: &State) {
        let Some(membership) = state.detail.broadcast else { return };
        let (row, counts) = (RecipientRow::of(state), Counts::of(state));
        if row != before.0 {
            self.contacts.push(RecipientUpdate { tenant, membership, row, message });
        }
        if counts != before.1 {
            self.counts.entry((tenant, membership.broadcast.uuid())).or_default().add(&counts.since(&before.1));
        }
    }
}
