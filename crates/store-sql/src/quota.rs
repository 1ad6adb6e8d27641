//! Storage that a batch of new messages uses of quotas. Free for tenants without a quota.

use std::collections::BTreeMap;

use nuncio_store::{Accepted, Storage};

use crate::message_batch::Prepared;

/// The quotas of the tenants of a batch.
#[derive(Debug, Default)]
pub(crate) struct Quotas(BTreeMap<i64, (Storage, i64)>);

impl Quotas {
    pub(crate) fn know(&mut self, tenant: i64, max_bytes: Option<i64>, stored_bytes: Option<i64>) {
        if let Some((max_bytes, stored_bytes)) = max_bytes.zip(stored_bytes) {
            self.0.entry(tenant).or_insert((Storage { max_bytes, stored_bytes }, 0));
        }
    }

    /// The answer to a new message that exceeds the quota.
    pub(crate) fn refuse(&self, prepared: &Prepared) -> Option<Accepted> {
        let (storage, added) = self.0.get(&prepared.item.message.tenant.0)?;
        let full = storage.stored_bytes + added + prepared.stored > storage.max_bytes;
        full.then_some(Accepted::Full { storage: *storage, required: prepared.stored })
    }

    /// Counts a new message.
    pub(crate) fn keep(&mut self, prepared: &Prepared) {
        if let Some((_, added)) = self.0.get_mut(&prepared.item.message.tenant.0) {
            *added += prepared.stored;
        }
    }

    /// What to add, sorted by tenant.
    pub(crate) fn added(&self) -> Vec<(i64, i64)> {
        self.0.iter().filter(|(_, (_, added))| *added > 0).map(|(tenant, (_, added))| (*tenant, *added)).collect()
    }
}
