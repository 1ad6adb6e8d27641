//! Signals the readers of event logs on this node.
//!
//! Signals are an optimisation: readers check their logs at intervals anyway.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nuncio_domain::TenantId;
use parking_lot::RwLock;
use tokio::sync::Notify;

/// Changes in the log of a tenant since its reader last checked. A new reader always checks first.
#[derive(Debug)]
pub struct LogFlags {
    grown: AtomicBool,
    deliveries: AtomicBool,
}

impl LogFlags {
    /// Returns and clears whether the log has grown.
    pub fn take_grown(&self) -> bool {
        self.grown.swap(false, Ordering::AcqRel)
    }

    /// Notes that the log has grown.
    pub fn set_grown(&self) {
        self.grown.store(true, Ordering::Release);
    }

    /// Returns and clears whether deliveries may have become due.
    pub fn take_deliveries(&self) -> bool {
        self.deliveries.swap(false, Ordering::AcqRel)
    }
}

impl Default for LogFlags {
    fn default() -> Self {
        Self { grown: AtomicBool::new(true), deliveries: AtomicBool::new(false) }
    }
}

/// The logs read on this node, with their signals.
#[derive(Debug, Default)]
pub struct LogSignals {
    readers: RwLock<HashMap<TenantId, Arc<LogFlags>>>,
    webhooks: AtomicBool,
    wake: Notify,
}

impl LogSignals {
    /// Registers the reader of a log.
    pub fn register(&self, tenant: TenantId) -> Arc<LogFlags> {
        let flags = Arc::new(LogFlags::default());
        self.readers.write().insert(tenant, Arc::clone(&flags));
        flags
    }

    /// Removes the reader of a log.
    pub fn remove(&self, tenant: TenantId) {
        self.readers.write().remove(&tenant);
    }

    /// Signals that the log of `tenant` has grown.
    pub fn grown(&self, tenant: TenantId) {
        self.signal(tenant, |_| {});
    }

    /// Signals that the log of `tenant` has grown, or that one of its deliveries is due.
    pub fn changed(&self, tenant: TenantId) {
        self.signal(tenant, |flags| flags.deliveries.store(true, Ordering::Release));
    }

    fn signal(&self, tenant: TenantId, also: impl FnOnce(&LogFlags)) {
        if let Some(flags) = self.readers.read().get(&tenant) {
            flags.set_grown();
            also(flags);
            self.wake.notify_one();
        }
    }

    /// Signals that webhooks were set up, changed or removed.
    pub fn webhooks_changed(&self) {
        self.webhooks.store(true, Ordering::Release);
        self.wake.notify_one();
    }

    /// Returns and clears whether webhooks were set up, changed or deleted.
    pub fn take_webhooks_changed(&self) -> bool {
        self.webhooks.swap(false, Ordering::AcqRel)
    }

    /// Wakes the readers without a specific reason.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// Waits for the next signal.
    pub async fn signalled(&self) {
        self.wake.notified().await;
    }
}
