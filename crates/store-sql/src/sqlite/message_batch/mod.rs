//! Writes new messages, transitions, metrics and delivery results in batches.

mod accept;
mod broadcasts;
mod commit;
mod delivery_log;
mod keys;
mod ledger;
mod load;
mod messages;
mod recipients;
mod references;
mod transition;

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use rusqlite::{Connection, OptionalExtension as _, Params, Row, Statement};
use uuid::Uuid;

pub(super) use accept::accept;
pub(super) use commit::Batch;
pub(super) use delivery_log::{add_metrics, log_deliveries};
pub(super) use transition::transition;

fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}

/// The statements of the writer. Each is prepared at its first use, and kept.
pub(super) struct Statements<'c> {
    conn: &'c Connection,
    /// By where their text is, which is quicker to look up than the text.
    prepared: HashMap<*const str, Statement<'c>>,
}

impl<'c> Statements<'c> {
    pub(super) fn new(conn: &'c Connection) -> Self {
        Self { conn, prepared: HashMap::new() }
    }

    fn get(&mut self, text: &'static str) -> rusqlite::Result<&mut Statement<'c>> {
        match self.prepared.entry(text) {
            Entry::Occupied(entry) => Ok(entry.into_mut()),
            Entry::Vacant(entry) => Ok(entry.insert(self.conn.prepare(text)?)),
        }
    }

    /// Runs a statement; returns the number of rows written.
    fn execute(&mut self, text: &'static str, params: impl Params) -> rusqlite::Result<usize> {
        self.get(text)?.execute(params)
    }

    /// Whether a query finds a row.
    fn exists(&mut self, text: &'static str, params: impl Params) -> rusqlite::Result<bool> {
        self.get(text)?.exists(params)
    }

    /// The first row of a query, if there is one.
    fn find<T>(
        &mut self,
        text: &'static str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.get(text)?.query_row(params, read).optional()
    }
}
