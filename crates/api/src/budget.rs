//! Limits the memory used by requests and responses.
//!
//! A body byte is counted several times, because parsing copies it, and before it is buffered. A lease lasts until the response is written.
//! No owner can take the whole budget: the less is free, the smaller each owner's share, so that a new owner always finds room.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use nuncio_domain::{Error, TenantId};
use parking_lot::Mutex;

use crate::error::ApiError;

/// Copies of a body or a large message while it is read: raw or stored, parsed, and converted.
pub(crate) const COPIES: usize = 3;
/// Copies of a response: as built, and as sent.
pub(crate) const ANSWER_COPIES: usize = 2;
/// Bytes for a request before its body: head, task and buffers.
pub(crate) const OVERHEAD: usize = 8 * 1024;
/// Maximum size of a small lease, in bytes.
const SMALL: usize = 64 * 1024;
/// Maximum bytes of an owner, as a multiple of what is left free: for small leases, and for large ones. A single owner gets 8/9 and 2/3 of
/// the budget.
const SHARES: (usize, usize) = (8, 2);

/// Whom memory is charged to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Owner {
    Tenant(TenantId),
    /// The IP address of any other client.
    Address(IpAddr),
}

/// Bytes shared by all requests.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    total: usize,
    held: Mutex<Held>,
}

#[derive(Debug, Default)]
struct Held {
    all: usize,
    by: HashMap<Owner, usize>,
}

/// Bytes held by a request, released when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Lease(Arc<Holder>);

#[derive(Debug)]
struct Holder {
    budget: Budget,
    owner: Owner,
    bytes: Mutex<usize>,
}

impl Budget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Shared { total: bytes, held: Mutex::default() }))
    }

    /// Returns an empty lease.
    pub(crate) fn lease(&self, owner: Owner) -> Lease {
        Lease(Arc::new(Holder { budget: self.clone(), owner, bytes: Mutex::new(0) }))
    }

    /// Resizes a lease of `owner`. Returns `false` if there is no room to grow, unless `force`.
    fn change(&self, owner: Owner, before: usize, after: usize, force: bool) -> bool {
        if before == after {
            return true;
        }
        let mut held = self.0.held.lock();
        let of_owner = held.by.get(&owner).copied().unwrap_or_default();
        let (all, own) = (held.all.saturating_sub(before).saturating_add(after), of_owner.saturating_sub(before).saturating_add(after));
        if after > before && !force {
            let share = if after <= SMALL { SHARES.0 } else { SHARES.1 };
            let Some(free) = self.0.total.checked_sub(all) else { return false };
            if own > free.saturating_mul(share) {
                return false;
            }
        }
        held.all = all;
        if own == 0 {
            held.by.remove(&owner);
        } else {
            held.by.insert(owner, own);
        }
        true
    }
}

impl Lease {
    /// Grows by `bytes`; without room, fails with 503 and changes nothing.
    pub(crate) fn grow(&self, bytes: usize) -> Result<(), Error> {
        let mut held = self.0.bytes.lock();
        let after = held.saturating_add(bytes);
        if self.0.budget.change(self.0.owner, *held, after, false) {
            *held = after;
            return Ok(());
        }
        Err(no_room())
    }

    /// Grows by what reading a message of `bytes` takes; without room, returns `false` and changes nothing.
    pub(crate) fn grow_to_read(&self, bytes: u64) -> bool {
        self.grow(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_mul(COPIES)).is_ok()
    }

    /// Sets the size; fails with 503 if there is no room to grow, unless `force`.
    pub(crate) fn settle(&self, bytes: usize, force: bool) -> Result<(), Error> {
        let mut held = self.0.bytes.lock();
        if self.0.budget.change(self.0.owner, *held, bytes, force) {
            *held = bytes;
            return Ok(());
        }
        Err(no_room())
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.budget.change(self.owner, *self.bytes.get_mut(), 0, true);
    }
}

/// Extracts the lease that the middleware attached to the request.
impl<S: Sync> FromRequestParts<S> for Lease {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| Error::internal("the request did not pass the middleware").into())
    }
}

/// `503 unavailable`: no memory for the request.
pub(crate) fn no_room() -> Error {
    Error::unavailable("too many large requests are in flight; try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Owner = Owner::Tenant(TenantId(1));
    const TWO: Owner = Owner::Tenant(TenantId(2));

    #[test]
    fn what_a_request_held_comes_back() {
        let budget = Budget::new(900);
        let first = budget.lease(ONE);
        assert!(first.grow(300).is_ok() && first.grow(500).is_ok());
        assert!(first.grow(1).is_err(), "eight ninths");
        let second = budget.lease(TWO);
        assert!(second.grow(80).is_ok());
        assert!(second.grow(10).is_err());
        let clone = first.clone();
        drop(first);
        assert!(second.grow(10).is_err(), "a clone holds as much");
        drop(clone);
        assert!(second.grow(700).is_ok());
        second.settle(10, false).expect("less is always possible");
        second.settle(2_000, true).expect("forced");
        assert!(budget.lease(ONE).grow(1).is_err());
        drop(second);
        let held = budget.0.held.lock();
        assert!(held.all == 0 && held.by.is_empty());
    }

    #[test]
    fn nobody_gets_everything() {
        let budget = Budget::new(256 * 1024 * 1024);
        let large = budget.lease(ONE);
        assert!(large.grow_to_read(nuncio_domain::limits::MESSAGE_BODY_BYTES as u64), "the largest message fits where nothing else is");
        assert!(!budget.lease(ONE).grow_to_read(10_000_000), "the same world again");
        assert!(budget.lease(ONE).grow(SMALL).is_ok(), "its small requests go on");
        assert!(budget.lease(TWO).grow_to_read(10_000_000), "another world");
        // However many greedy owners there are, a new one finds some room.
        let mut all = Vec::new();
        for n in 10..14 {
            let lease = budget.lease(Owner::Tenant(TenantId(n)));
            assert!(lease.grow(SMALL).is_ok(), "{n}");
            while lease.grow(SMALL).is_ok() {}
            all.push(lease);
        }
    }
}
