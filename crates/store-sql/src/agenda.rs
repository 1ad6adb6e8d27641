//! Agenda: one row per batch that says which unfinished messages to look at again, and when or after whose death.
//!
//! An agenda row is a hint. What a message waits for is decided by its row in `states`, which also names the agenda row that guards it.
//! A row whose messages have all moved on is stale and harmless; a message without a row would be stranded.

use std::collections::{BTreeMap, HashMap};

use nuncio_domain::id::Id as _;
use nuncio_domain::message::{State, Wait};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::row::{Result, corrupt, fingerprint};

/// Messages of one row. The scanner expands a row at once.
const MEMBERS: usize = 256;
/// Messages that wait for an attempt share a row if they are due within this many milliseconds.
const SOON: i64 = 1_000;
/// The same for deadlines of receipts and of holds, which are hours away.
const LATER: i64 = 60_000;
/// Rows whose members are counted, at most. A row that is not counted is deleted by the scanner when it is due, and if it has an owner, by that.
const COUNTED: usize = 65_536;

/// The key of an agenda row: its tenant and its identifier.
pub(crate) type AgendaKey = (i64, i64);

/// What the messages of a row have in common.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Group {
    /// An attempt that this node is making.
    Owned(i64),
    /// An attempt by this connection, in this span of time.
    Attempt { connection: Uuid, due: i64, bulk: bool, fallback: Option<i64> },
    /// A deadline, in this span of time.
    Deadline(i64),
}

/// A row to be written.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct AgendaRow {
    pub(crate) tenant: i64,
    pub(crate) id: i64,
    pub(crate) owner: Option<i64>,
    /// The earliest moment at which one of the messages is due.
    pub(crate) due_at: Option<i64>,
    /// The connection of the next attempt of all messages, if they wait for one.
    pub(crate) connection: Option<Uuid>,
    /// Whether they are bulk messages that wait for an attempt.
    pub(crate) bulk: bool,
    /// The earliest moment at which one of them is decided about even if no attempt can start.
    pub(crate) decide_at: i64,
    pub(crate) members: Vec<Uuid>,
}

impl AgendaRow {
    /// 0 to 63; live nodes divide the shards among themselves.
    pub(crate) fn shard(&self) -> i16 {
        (self.id & 63) as i16
    }

    /// The identifiers of the messages, 16 bytes each.
    pub(crate) fn ids(&self) -> Vec<u8> {
        self.members.iter().flat_map(Uuid::as_bytes).copied().collect()
    }
}

/// Reads the identifiers of a row.
pub(crate) fn members(ids: &[u8]) -> Result<Vec<Uuid>> {
    let (ids, rest) = ids.as_chunks::<16>();
    if rest.is_empty() { Ok(ids.iter().map(|id| Uuid::from_bytes(*id)).collect()) } else { Err(corrupt("agenda", "ids of odd length")) }
}

/// The agenda rows of one batch.
#[derive(Debug, Default)]
pub(crate) struct Agenda {
    rows: Vec<AgendaRow>,
    open: BTreeMap<(i64, Group), usize>,
}

impl Agenda {
    /// Puts a message on the agenda; returns the row that guards it from now on, none if the message is final. `revision` is the one
    /// that the message is written with.
    pub(crate) fn guard(&mut self, tenant: i64, id: Uuid, revision: i64, state: &State) -> Option<i64> {
        let (due_at, decide_at) = (state.due_at().map(|due| due.millis()), state.decide_at().millis());
        let group = match state.wait {
            Wait::Nothing => return None,
            Wait::Owned { node } => Group::Owned(node.0),
            Wait::Attempt { due_at } => Group::Attempt {
                connection: state.route.connection.uuid(),
                due: due_at.millis() / SOON,
                bulk: state.detail.broadcast.is_some(),
                fallback: state.detail.fallback.as_ref().map(|_| decide_at / SOON),
            },
            Wait::Receipt { deadline } | Wait::Held { deadline, .. } => Group::Deadline(deadline.millis() / LATER),
        };
        let at = match self.open.get(&(tenant, group)).filter(|at| self.rows[**at].members.len() < MEMBERS) {
            Some(at) => *at,
            None => {
                self.open.insert((tenant, group), self.rows.len());
                self.rows.push(AgendaRow {
                    tenant,
                    id: fingerprint(b"agenda", id, revision),
                    owner: if let Group::Owned(node) = group { Some(node) } else { None },
                    due_at,
                    connection: if let Group::Attempt { connection, .. } = group { Some(connection) } else { None },
                    bulk: matches!(group, Group::Attempt { bulk: true, .. }),
                    decide_at,
                    members: Vec::new(),
                });
                self.rows.len() - 1
            }
        };
        let row = &mut self.rows[at];
        row.due_at = row.due_at.min(due_at);
        row.decide_at = row.decide_at.min(decide_at);
        row.members.push(id);
        Some(row.id)
    }

    /// Takes back a message that was not written.
    pub(crate) fn withdraw(&mut self, tenant: i64, id: Uuid) {
        self.rows.iter_mut().filter(|row| row.tenant == tenant).for_each(|row| row.members.retain(|member| *member != id));
    }

    /// The rows to write.
    pub(crate) fn into_rows(self) -> Vec<AgendaRow> {
        self.rows.into_iter().filter(|row| !row.members.is_empty()).collect()
    }
}

/// How many messages the rows that this node wrote still guard, so that a row is deleted with its last message.
#[derive(Debug, Default)]
pub(crate) struct Counts(Mutex<HashMap<AgendaKey, Counted>>);

#[derive(Debug)]
struct Counted {
    left: usize,
    /// Whether the row has an owner. Such rows are never due: without their count, they are deleted late.
    owned: bool,
}

impl Counts {
    /// Of rows that lose so many messages, those that guard no more.
    pub(crate) fn emptied(&self, leaving: &BTreeMap<AgendaKey, usize>) -> Vec<AgendaKey> {
        let counts = self.0.lock();
        leaving.iter().filter(|(key, gone)| counts.get(key).is_some_and(|row| row.left <= **gone)).map(|(key, _)| *key).collect()
    }

    /// Counts what a transaction has committed.
    pub(crate) fn committed(&self, leaving: &BTreeMap<AgendaKey, usize>, new: &[AgendaRow]) {
        let mut counts = self.0.lock();
        for (key, gone) in leaving {
            match counts.get_mut(key) {
                Some(row) if row.left > *gone => row.left -= gone,
                _ => drop(counts.remove(key)),
            }
        }
        for row in new {
            if counts.len() >= COUNTED {
                counts.retain(|_, row| row.owned);
            }
            // Rows of this owner that other nodes emptied.
            if counts.len() >= COUNTED {
                counts.clear();
            }
            counts.insert((row.tenant, row.id), Counted { left: row.members.len(), owned: row.owner.is_some() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: i64, owner: Option<i64>) -> AgendaRow {
        let members = vec![Uuid::from_u128(id as u128)];
        AgendaRow { tenant: 1, id, owner, due_at: None, connection: None, bulk: false, decide_at: 0, members }
    }

    #[test]
    fn rows_of_an_owner_stay_counted_whatever_comes_after_them() {
        let counts = Counts::default();
        counts.committed(&BTreeMap::new(), &[row(-1, Some(7)), row(-2, None)]);
        let others: Vec<_> = (0..COUNTED as i64).map(|id| row(id, None)).collect();
        counts.committed(&BTreeMap::new(), &others);
        assert_eq!(counts.emptied(&BTreeMap::from([((1, -1), 1), ((1, -2), 1)])), [(1, -1)]);
        assert!(counts.0.lock().len() <= COUNTED);
    }
}
