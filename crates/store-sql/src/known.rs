//! What this node remembers of messages and of providers' references, so that the next step of a message needs no read.
//!
//! What is remembered may be out of date. A write names the revision that it rests on, so a message that another node changed meanwhile
//! is not written, and is read instead. Forgetting is always safe.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::AddressId;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{State, Wait};
use nuncio_domain::message::Message;
use nuncio_store::RawReceipt;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::agenda::Counts;
use crate::message_batch::{Birth, Born, Named, StateWrite};

/// The most messages that are remembered, and the most references.
const ROWS: usize = 8_192;
/// Bytes of a request beyond which the message is not kept for its start.
pub(crate) const KEPT_BYTES: usize = 4 * 1024;

/// The memory of one node.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    messages: Mutex<HashMap<(i64, Uuid), Known>>,
    names: Mutex<HashMap<(i64, Uuid, String), Named>>,
    /// How many messages the agenda rows guard that this node wrote.
    pub(crate) agenda: Counts,
}

impl Memory {
    /// Remembers messages that will soon change again.
    pub(crate) fn put(&self, messages: impl Iterator<Item = ((i64, Uuid), Known)>) {
        let mut known = self.messages.lock();
        for (key, mut message) in messages {
            match message.state.wait {
                Wait::Nothing | Wait::Held { .. } => continue,
                Wait::Owned { .. } | Wait::Receipt { .. } => message.fixed = None,
                Wait::Attempt { .. } if message.fixed.is_none() => continue,
                Wait::Attempt { .. } => {}
            }
            if known.len() >= ROWS {
                known.clear();
            }
            known.insert(key, message);
        }
    }

    /// Forgets all messages.
    pub(crate) fn clear(&self) {
        self.messages.lock().clear();
    }

    /// Forgets a message, and returns what was known of it.
    pub(crate) fn take(&self, key: &(i64, Uuid)) -> Option<Known> {
        self.messages.lock().remove(key)
    }

    /// Remembers what a provider's receipts will name.
    pub(crate) fn name(&self, references: impl Iterator<Item = (i64, Uuid, String, Named)>) {
        let mut names = self.names.lock();
        for (tenant, connection, reference, named) in references {
            if names.len() >= ROWS {
                names.clear();
            }
            names.insert((tenant, connection, reference), named);
        }
    }

    /// Forgets what a receipt names.
    pub(crate) fn unname(&self, tenant: i64, receipt: &RawReceipt) {
        self.names.lock().remove(&(tenant, receipt.connection.uuid(), receipt.reference.clone()));
    }

    /// What a receipt names, as far as it is remembered.
    pub(crate) fn named(&self, tenant: i64, receipt: &RawReceipt) -> Option<Named> {
        self.names.lock().get(&(tenant, receipt.connection.uuid(), receipt.reference.clone())).copied()
    }
}

/// What is known of a message.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) state: State,
    pub(crate) address: Uuid,
    /// Raised by each write of the state.
    pub(crate) revision: i64,
    /// The agenda row that guards it.
    pub(crate) agenda: Option<i64>,
    /// Its entries in the event log.
    pub(crate) history: Vec<u8>,
    /// The part that never changes; present when an attempt of it may be started.
    pub(crate) fixed: Option<Arc<Message>>,
}

impl Known {
    /// A new message as it is remembered. What never changes of it is kept if an attempt is yet to be started, and it is small.
    pub(crate) fn born(birth: &Birth<'_>, write: StateWrite<'_>) -> Self {
        let Born { message, fixed, .. } = &*birth.born;
        let is_kept = matches!(message.state.wait, Wait::Attempt { .. }) && fixed.spooled == 0 && fixed.request.len() <= KEPT_BYTES;
        let state = message.state.clone();
        let whole = || Arc::new(Message { address: AddressId::from_uuid(birth.address), ..message.clone() });
        Self::after(write, state, birth.address, is_kept.then(whole))
    }

    /// A message as `write` wrote it.
    pub(crate) fn after(write: StateWrite<'_>, state: State, address: Uuid, fixed: Option<Arc<Message>>) -> Self {
        Self { state, address, revision: write.revision, agenda: write.agenda, history: write.history, fixed }
    }
}
