//! Collects what a transaction writes alongside the messages: states, log entries, agenda rows and flags.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use nuncio_domain::event::ResourceKind;
use nuncio_domain::lifecycle::{State, Wait};
use nuncio_domain::message::Status;
use nuncio_store::Result;
use uuid::Uuid;

use super::insert::EncodedMessage;
use super::transitions::LoadedMessage;
use crate::agenda::{Agenda, AgendaKey};
use crate::cache::CachedRow;
use crate::event_log::{self, EntryRef, LogBatch};
use crate::row::{StateRow, first_sequence};

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
        event_log::append(&mut history, entry);
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
            event_log::append(&mut history, entry);
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

/// A message that enters or leaves the list of failed or of held messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flag {
    pub(crate) tenant: i64,
    pub(crate) kind: i16,
    pub(crate) id: Uuid,
}

/// Whether a message is in the lists of failed and of held messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    failed: bool,
    held: bool,
}

impl Flags {
    pub(super) fn of(state: &State) -> Self {
        Self { failed: state.status == Status::Failed, held: matches!(state.wait, Wait::Held { .. }) }
    }

    /// The flags as they are stored, each with whether it is set.
    fn each(self) -> [(i16, bool); 2] {
        [(FAILED, self.failed), (HELD, self.held)]
    }
}

/// Messages whose status is `failed`, as `flagged` stores it.
const FAILED: i16 = 1;
/// Messages that are held.
const HELD: i16 = 2;
