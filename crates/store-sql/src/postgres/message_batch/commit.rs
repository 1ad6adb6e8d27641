//! Commits a batch, with what its items share: the event log, the agenda, flags and counts of broadcasts.

use std::collections::BTreeMap;

use nuncio_store::Transitioned;
use uuid::Uuid;

use super::super::batch_error::BatchError;
use super::{Session, agenda, broadcasts, log};
use crate::agenda::{AgendaKey, AgendaRow};
use crate::cache::{Cache, CachedRow};
use crate::message_batch::{AcceptOutcome, RecipientUpdates, ReferencedPart, Writes};

/// The outcomes of a committed batch.
pub(super) type Written = (Vec<AcceptOutcome>, Vec<Transitioned>, CacheUpdates);

/// What a committed batch adds to the cache.
#[derive(Debug, Default)]
pub(super) struct CacheUpdates {
    pub(super) messages: Vec<((i64, Uuid), CachedRow)>,
    pub(super) references: Vec<(i64, Uuid, String, ReferencedPart)>,
    rows: Vec<AgendaRow>,
    leaving: BTreeMap<AgendaKey, usize>,
}

impl CacheUpdates {
    pub(super) fn remember(self, cache: &Cache) {
        cache.agenda.committed(&self.leaving, &self.rows);
        cache.put(self.messages.into_iter());
        cache.put_references(self.references.into_iter());
    }
}

/// Writes what a batch adds up to, and commits.
pub(super) async fn commit(
    session: &Session,
    cache: &Cache,
    writes: Writes,
    updates: &RecipientUpdates,
) -> Result<CacheUpdates, BatchError> {
    let Writes { log, agenda, leaving, flags, flags_gone, .. } = writes;
    let (rows, log) = (agenda.into_rows(), log.into_rows());
    let emptied = cache.agenda.emptied(&leaving);
    let s = &session.statements;
    let (updated, set, gone, added, deleted, logged, committed) = tokio::join!(
        broadcasts::write(session, updates),
        agenda::write_flags(session, &s.insert_flags, &flags),
        agenda::write_flags(session, &s.delete_flags, &flags_gone),
        agenda::insert(session, &rows),
        agenda::delete(session, &emptied),
        log::append(session, &log),
        session.run("COMMIT"),
    );
    // A server that answers a statement with an error rolls back; only a lost answer leaves doubt.
    for written in [updated, set, gone, added, deleted, logged] {
        written.map_err(BatchError::of_commit)?;
    }
    committed.map_err(BatchError::of_commit)?;
    Ok(CacheUpdates { rows, leaving, ..CacheUpdates::default() })
}
