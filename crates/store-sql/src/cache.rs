//! Caches messages and provider references, so that the next step of a message needs no read.
//!
//! Entries may be out of date. A write names the revision that it is based on, so a message that another node has changed meanwhile is not
//! written, and is read instead. A cache miss is always safe.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Message, State, Wait};
use nuncio_store::RawReceipt;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::agenda::Counts;

/// Maximum number of cached messages, and of cached references.
const ROWS: usize = 8_192;

/// The message, attempt and part that a provider's id refers to.
pub(crate) type ReferencedPart = (Uuid, i16, i16);

#[derive(Debug, Default)]
pub(crate) struct Cache {
    messages: Mutex<HashMap<(i64, Uuid), CachedRow>>,
    references: Mutex<HashMap<(i64, Uuid, String), ReferencedPart>>,
    /// How many messages the agenda rows guard that this node wrote.
    pub(crate) agenda: Counts,
}

impl Cache {
    /// Caches messages that will soon change again.
    pub(crate) fn put(&self, messages: impl Iterator<Item = ((i64, Uuid), CachedRow)>) {
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

    /// Removes all messages.
    pub(crate) fn clear(&self) {
        self.messages.lock().clear();
    }

    /// Removes and returns a message.
    pub(crate) fn take(&self, key: &(i64, Uuid)) -> Option<CachedRow> {
        self.messages.lock().remove(key)
    }

    /// Caches the references that receipts will name.
    pub(crate) fn put_references(&self, references: impl Iterator<Item = (i64, Uuid, String, ReferencedPart)>) {
        let mut known = self.references.lock();
        for (tenant, connection, reference, named) in references {
            if known.len() >= ROWS {
                known.clear();
            }
            known.insert((tenant, connection, reference), named);
        }
    }

    /// Removes the reference of a receipt.
    pub(crate) fn remove_reference(&self, tenant: i64, receipt: &RawReceipt) {
        self.references.lock().remove(&(tenant, receipt.connection.uuid(), receipt.reference.clone()));
    }

    /// The message that a receipt names, if it is cached.
    pub(crate) fn reference(&self, tenant: i64, receipt: &RawReceipt) -> Option<ReferencedPart> {
        self.references.lock().get(&(tenant, receipt.connection.uuid(), receipt.reference.clone())).copied()
    }
}

/// A message as it was last read or written.
#[derive(Clone, Debug)]
pub(crate) struct CachedRow {
    pub(crate) state: State,
    pub(crate) address: Uuid,
    /// Incremented by each write of the state.
    pub(crate) revision: i64,
    /// The agenda row that guards it.
    pub(crate) agenda: Option<i64>,
    /// Its entries in the event log.
    pub(crate) history: Vec<u8>,
    /// The part that never changes; present when an attempt of it may be started.
    pub(crate) fixed: Option<Arc<Message>>,
}
