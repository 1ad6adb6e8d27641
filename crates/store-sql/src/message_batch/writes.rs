//! Collects what a transaction writes alongside the messages: states, log entries, agenda rows and flags.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nuncio_domain::AddressId;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Message, State, Wait};
use nuncio_store::Result;
use uuid::Uuid;

use super::flags::{Flag, Flags};
use super::insert::{EncodedMessage, MessageInsert};
use super::transitions::LoadedMessage;
use crate::agenda::{Agenda, AgendaKey};
use crate::cache::CachedRow;
use crate::event_log::{self, EntryRef, LogBatch};
use crate::row::{StateRow, first_sequence};

/// Bytes of a request beyond which the message is not kept for its start.
const KEPT_BYTES: usize = 4 * 1024;

/// A state to be written.
#[derive(Debug)]
pub(crate) struct StateWrite<'a> {
    pub(crate) tenant: i64,
    pub(crate) id: Uuid,
    pub(crate) row: Cow<'a, StateRow>,
    pub(crate) revision: i64,
    pub(crate) agenda: Option<i64>,
    pub(crate) history: Vec<u8>,
}

/// What one transaction writes alongside the messages.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) log: LogBatch,
    pub(crate) agenda: Agenda,
    /// Messages that leave their agenda row.
    pub(crate) leaving: BTreeMap<AgendaKey, usize>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) flags_gone: Vec<Flag>,
    entries: HashMap<(i64, Uuid), EntryRef>,
}

impl Writes {
    /// The first state of a new message.
    pub(crate) fn insert<'a>(&mut self, encoded: &'a EncodedMessage) -> StateWrite<'a> {
        let (tenant, id) = (encoded.fixed.tenant_id, encoded.fixed.id);
        let what = (ResourceKind::Message, id, encoded.sequence);
        let entry = self.log.push(tenant, what, encoded.state.updated_at, &encoded.changes);
        let mut history = Vec::new();
        event_log::append_batch(&mut history, entry.batch);
        let agenda = self.agenda.guard(tenant, id, 1, &encoded.message.state);
        for (kind, _) in Flags::of(&encoded.message.state).each().into_iter().filter(|(_, set)| *set) {
            self.flags.push(Flag { tenant, kind, id });
        }
        StateWrite { tenant, id, row: Cow::Borrowed(&encoded.state), revision: 1, agenda, history }
    }

    /// The next state of a message; must be followed by [`Self::written`] or [`Self::withdraw`].
    pub(crate) fn update(&mut self, (tenant, id): (i64, Uuid), loaded: &LoadedMessage) -> Result<StateWrite<'static>> {
        let CachedRow { state, revision, history, .. } = &loaded.row;
        let row = StateRow::encode(state)?;
        let mut history = history.clone();
        if !loaded.changes.is_empty() {
            let sequence = first_sequence(state.version, &loaded.changes);
            let changes = event_log::without_words(&loaded.changes)?;
            let entry = self.log.push(tenant, (ResourceKind::Message, id, sequence), row.updated_at, &changes);
            event_log::append_batch(&mut history, entry.batch);
            self.entries.insert((tenant, id), entry);
        }
        let revision = revision + 1;
        Ok(StateWrite { tenant, id, revision, agenda: self.agenda.guard(tenant, id, revision, state), row: Cow::Owned(row), history })
    }

    /// Records that a state was written.
    pub(crate) fn written(&mut self, write: &StateWrite<'_>, loaded: &LoadedMessage) {
        let (tenant, id) = (write.tenant, write.id);
        if let Some(agenda) = loaded.row.agenda {
            *self.leaving.entry((tenant, agenda)).or_default() += 1;
        }
        for ((kind, before), (_, after)) in loaded.flags.each().into_iter().zip(Flags::of(&loaded.row.state).each()) {
            match (before, after) {
                (false, true) => self.flags.push(Flag { tenant, kind, id }),
                (true, false) => self.flags_gone.push(Flag { tenant, kind, id }),
                _ => {}
            }
        }
    }

    /// Records that a state was not written, because another node changed it first.
    pub(crate) fn withdraw(&mut self, write: &StateWrite<'_>) {
        self.agenda.withdraw(write.tenant, write.id);
        if let Some(entry) = self.entries.remove(&(write.tenant, write.id)) {
            self.log.withdraw(write.tenant, entry);
        }
    }
}

impl CachedRow {
    /// A new message. Keeps the part that never changes if an attempt has yet to start and the request is small.
    pub(crate) fn inserted(new: &MessageInsert<'_>, write: StateWrite<'_>) -> Self {
        let EncodedMessage { message, fixed, .. } = &*new.encoded;
        let is_kept = matches!(message.state.wait, Wait::Attempt { .. }) && fixed.spooled == 0 && fixed.request.len() <= KEPT_BYTES;
        let state = message.state.clone();
        let whole = || Arc::new(Message { address: AddressId::from_uuid(new.address), ..message.clone() });
        Self::after(write, state, new.address, is_kept.then(whole))
    }

    /// A message as `write` wrote it.
    pub(crate) fn after(write: StateWrite<'_>, state: State, address: Uuid, fixed: Option<Arc<Message>>) -> Self {
        Self { state, address, revision: write.revision, agenda: write.agenda, history: write.history, fixed }
    }
}
