//! Limits how many posts are in flight: each has a socket, and the files that a process can open are for all projects.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use nuncio_domain::TenantId;
use parking_lot::Mutex;

/// Maximum posts in flight on a node.
const ALL: usize = 256;
/// Maximum posts in flight of one environment, so that slow endpoints of one leave room for others.
const SHARE: usize = 64;

/// The permits of a node.
#[derive(Debug, Default)]
pub(super) struct Permits(Mutex<Taken>);

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_tenant: HashMap<TenantId, usize>,
    /// Environments that were refused although they have not used up their share, longest waiting first.
    waiting: VecDeque<TenantId>,
}

/// The right to make one post. Released when dropped.
#[derive(Debug)]
pub(super) struct Permit {
    permits: Arc<Permits>,
    tenant: TenantId,
}

impl Permits {
    /// Returns a permit if one is free. If only those of the node are used up, the environment waits for its turn.
    pub(super) fn take(self: &Arc<Self>, tenant: TenantId) -> Option<Permit> {
        let mut taken = self.0.lock();
        if taken.left(tenant) == 0 {
            return None;
        }
        if taken.all >= ALL {
            if !taken.waiting.contains(&tenant) {
                taken.waiting.push_back(tenant);
            }
            return None;
        }
        taken.all += 1;
        *taken.by_tenant.entry(tenant).or_default() += 1;
        Some(Permit { permits: Arc::clone(self), tenant })
    }

    /// Returns how many more posts the environment can have in flight.
    pub(super) fn left(&self, tenant: TenantId) -> usize {
        self.0.lock().left(tenant)
    }

    /// Returns the environment whose turn it is, if a permit is free.
    pub(super) fn next_waiting(&self) -> Option<TenantId> {
        let mut taken = self.0.lock();
        if taken.all < ALL { taken.waiting.pop_front() } else { None }
    }
}

impl Taken {
    fn left(&self, tenant: TenantId) -> usize {
        SHARE.saturating_sub(self.by_tenant.get(&tenant).copied().unwrap_or_default())
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.permits.0.lock();
        taken.all -= 1;
        if let Some(count) = taken.by_tenant.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                taken.by_tenant.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_take_turns_when_all_permits_are_used_up() {
        let permits = Arc::new(Permits::default());
        let take = |tenant| permits.take(TenantId(tenant));
        let mut held: Vec<Permit> = (0..4).flat_map(|tenant| std::iter::repeat_n(tenant, SHARE)).filter_map(take).collect();
        assert_eq!((held.len(), take(0).is_none(), permits.left(TenantId(0))), (ALL, true, 0));
        assert!(take(4).is_none() && take(5).is_none() && take(4).is_none());
        assert_eq!(permits.next_waiting(), None, "none is free");

        held.truncate(ALL - 3);
        assert_eq!([(); 3].map(|()| permits.next_waiting()), [Some(TenantId(4)), Some(TenantId(5)), None]);
        assert!(take(4).is_some());
    }
}
