//! Divides what a node has among its environments.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::TenantId;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

/// A semaphore for each environment, with the same number of permits. Those that nobody holds or waits for are forgotten.
#[derive(Debug)]
pub struct Shares {
    permits: usize,
    by_tenant: Mutex<HashMap<TenantId, Arc<Semaphore>>>,
}

impl Shares {
    /// Makes shares of this many permits.
    pub fn new(permits: usize) -> Self {
        Self { permits, by_tenant: Mutex::default() }
    }

    /// Returns the share of an environment.
    pub fn of(&self, tenant: TenantId) -> Arc<Semaphore> {
        let mut shares = self.by_tenant.lock();
        shares.retain(|_, share| Arc::strong_count(share) > 1);
        Arc::clone(shares.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(self.permits))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_kept_while_it_is_used() {
        let shares = Shares::new(1);
        let held = shares.of(TenantId(1)).try_acquire_owned().unwrap();
        assert!(shares.of(TenantId(2)).try_acquire_owned().is_ok());
        assert!(shares.of(TenantId(1)).try_acquire_owned().is_err());
        drop(held);
        assert!(shares.of(TenantId(1)).try_acquire_owned().is_ok());
        assert_eq!(shares.by_tenant.lock().len(), 1, "the other one is forgotten");
    }
}
