//! Collects what a transaction writes alongside the messages: states, log entries, agenda rows and flags.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use nuncio_domain::event::ResourceKind;
use nuncio_domain::lifecycle::{State, Wait};
use nuncio_domain::message::Status;
use nuncio_store::Result;
use uuid::Uuid;

use super::insert::Born;
use super::transitions::Loaded;
use crate::agenda::{Agenda, AgendaKey};
use crate::event_log::{self, EntryRef, LogBatch};
use crate::known::Known;
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

/// What one transaction writes beside the messages themselves.
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
    pub(crate) fn born<'a>(&mut self, born: &'a Born) -> StateWrite<'a> {
        let (tenant, id) = (born.fixed.tenant_id, born.fixed.id);
        let what = (ResourceKind::Message, id, born.sequence);
        let entry = self.log.push(tenant, what, born.state.updated_at, &born.changes);
        let mut history = Vec::new();
        event_log::append(&mut history, entry);
        let agenda = self.agenda.guard(tenant, id, 1, &born.message.state);
        for (kind, _) in Flags::of(&born.message.state).each().into_iter().filter(|(_, set)| *set) {
            self.flags.push(Flag { tenant, kind, id });
        }
        StateWrite { tenant, id, row: Cow::Borrowed(&born.state), revision: 1, agenda, history }
    }

    /// The next state of a message, which [`Self::written`] or [`Self::withdraw`] must be told about.
    pub(crate) fn update(&mut self, (tenant, id): (i64, Uuid), loaded: &Loaded) -> Result<StateWrite<'static>> {
        let Known { state, revision, history, .. } = &loaded.known;
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

    /// A state was written: what follows from it.
    pub(crate) fn written(&mut self, write: &StateWrite<'_>, loaded: &Loaded) {
        let (tenant, id) = (write.tenant, write.id);
        if let Some(agenda) = loaded.known.agenda {
            *self.leaving.entry((tenant, agenda)).or_default() += 1;
        }
        for ((kind, before), (_, after)) in loaded.flags.each().into_iter().zip(Flags::of(&loaded.known.state).each()) {
            match (before, after) {
                (false, true) => self.flags.push(Flag { tenant, kind, id }),
                (true, false) => self.flags_gone.push(Flag { tenant, kind, id }),
                _ => {}
            }
        }
    }

    /// A state was not written, since another node changed it first.
    pub(crate) fn withdraw(&mut self, write: &StateWrite<'_>) {
        self.agenda.withdraw(write.tenant, write.id);
        if let Some(entry) = self.entries.remove(&(write.tenant, write.id)) {
            self.log.withdraw(write.tenant, entry);
        }
    }
}

/// A message that enters or leaves a list of rare ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flag {
    pub(crate) tenant: i64,
    pub(crate) kind: i16,
    pub(crate) id: Uuid,
}

/// Lists of rare messages that one of them is in.
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
