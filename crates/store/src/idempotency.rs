//! Idempotency keys of requests that create something other than a message.

use async_trait::async_trait;
use nuncio_domain::{TenantId, Timestamp};
use uuid::Uuid;

use crate::accept::Idempotency;
use crate::error::Result;

/// A request whose key was already used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Repeat {
    /// The resource that the key was used for.
    pub original: Uuid,
    /// Whether the two requests were the same.
    pub same_request: bool,
}

/// Idempotency keys off the hot path.
#[async_trait]
pub trait IdempotencyRepo {
    /// Claims a key for `resource`, until `purge_after`, in the transaction that creates it. On a repeat, the caller must not write anything. A
    /// second transaction that claims the same key waits for the first.
    async fn claim_idempotency_key(
        &mut self,
        tenant: TenantId,
        idempotency: &Idempotency,
        resource: Uuid,
        purge_after: Timestamp,
    ) -> Result<Option<Repeat>>;
}
