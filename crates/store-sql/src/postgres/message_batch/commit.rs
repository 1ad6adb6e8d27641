//! Ends the transaction of a batch.

use std::collections::BTreeMap;

use nuncio_store::Result;
use uuid::Uuid;

use super::super::writers::Trouble;
use super::{Session, agenda, broadcasts, flags, log};
use crate::agenda::{AgendaKey, AgendaRow};
use crate::known::{Known, Memory};
use crate::message_batch::{Moves, Named, Writes};

/// What a committed batch adds to the cache.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) known: Vec<((i64, Uuid), Known)>,
    pub(super) references: Vec<(i64, Uuid, String, Named)>,
    rows: Vec<AgendaRow>,
    leaving: BTreeMap<AgendaKey, usize>,
}

impl Outcome {
    pub(super) fn remember(self, memory: &Memory) {
        memory.agenda.committed(&self.leaving, &self.rows);
        memory.put(self.known.into_iter());
        memory.name(self.references.into_iter());
    }
}

/// Writes what a batch adds up to, and commits.
pub(super) async fn commit(session: &Session, memory: &Memory, writes: Writes, moves: &Moves) -> Result<Outcome, Trouble> {
    let Writes { log, agenda, leaving, flags, flags_gone, .. } = writes;
    let (rows, log) = (agenda.into_rows(), log.into_rows());
    let emptied = memory.agenda.emptied(&leaving);
    let s = &session.statements;
    let (moved, set, gone, added, deleted, logged, committed) = tokio::join!(
        broadcasts::write(session, moves),
        flags::write(session, &s.insert_flags, &flags),
        flags::write(session, &s.delete_flags, &flags_gone),
        agenda::insert(session, &rows),
        agenda::delete(session, &emptied),
        log::append(session, &log),
        session.run("COMMIT"),
    );
    // A server that answers a statement with an error rolls back; only a lost answer leaves doubt.
    for written in [moved, set, gone, added, deleted, logged] {
        written.map_err(Trouble::of_commit)?;
    }
    committed.map_err(Trouble::of_commit)?;
    Ok(Outcome { rows, leaving, ..Outcome::default() })
}

/// Ends the transaction of a batch that failed before its commit.
pub(super) async fn roll_back_unless<T>(session: &Session, done: &Result<T, Trouble>) {
    if done.is_err() && !session.is_closed() {
        let _ = session.run("ROLLBACK").await; // without a transaction PostgreSQL only warns
    }
}
