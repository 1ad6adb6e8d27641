//! Rows as this node wrote them last, so that the next fact about a message needs no reading.
//!
//! What is remembered may be out of date: the write says which transaction it believes to have written the row, and rows that another
//! one wrote meanwhile stay as they are. Forgetting is always right.

use std::collections::HashMap;

use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{State, Wait};
use nuncio_store::RawReceipt;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::hot::{Loaded, Named, Reference};

/// The most rows that are remembered, and the most of the providers' ids.
const ROWS: usize = 8_192;

/// A row after this node wrote it.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) state: State,
    pub(super) address: Uuid,
    pub(super) idempotency_key: Option<String>,
    /// The transaction that wrote it, as `xmin` tells.
    pub(super) written_by: i64,
}

#[derive(Debug, Default)]
pub(super) struct Recent {
    rows: Mutex<HashMap<(i64, Uuid), Known>>,
    names: Mutex<HashMap<(i64, Uuid, String), Named>>,
}

impl Recent {
    /// Remembers rows that will hear of a result or a receipt soon.
    pub(super) fn put(&self, rows: impl Iterator<Item = ((i64, Uuid), Known)>) {
        let mut known = self.rows.lock();
        // What is part of a broadcast also changes its counts, in a transaction.
        let soon =
            |row: &Known| matches!(row.state.wait, Wait::Owned { .. } | Wait::Receipt { .. }) && row.state.detail.broadcast.is_none();
        for (key, row) in rows.filter(|(_, row)| soon(row)) {
            if known.len() >= ROWS {
                known.clear();
            }
            known.insert(key, row);
        }
    }

    /// Forgets a row, and answers what was known of it.
    pub(super) fn take(&self, key: &(i64, Uuid)) -> Option<Known> {
        self.rows.lock().remove(key)
    }

    /// Remembers what a provider's receipts will name.
    pub(super) fn name<'a>(&self, references: impl Iterator<Item = &'a Reference<'a>>) {
        let mut names = self.names.lock();
        for &Reference { tenant, connection, reference, message, attempt, part } in references {
            if names.len() >= ROWS {
                names.clear();
            }
            names.insert((tenant, connection, reference.to_owned()), (message, attempt, part));
        }
    }

    /// What a receipt names, as far as it is remembered.
    pub(super) fn named(&self, tenant: i64, receipt: &RawReceipt) -> Option<Named> {
        self.names.lock().get(&(tenant, receipt.connection.uuid(), receipt.reference.clone())).copied()
    }
}

impl From<&Loaded> for Known {
    fn from(loaded: &Loaded) -> Self {
        Self { state: loaded.state.clone(), address: loaded.address, idempotency_key: loaded.idempotency_key.clone(), written_by: 0 }
    }
}

impl From<Known> for Loaded {
    fn from(known: Known) -> Self {
        Self::new(known.written_by, known.address, known.state, known.idempotency_key, None, false)
    }
}
