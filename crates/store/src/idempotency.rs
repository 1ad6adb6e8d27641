//! Idempotency keys of requests that create something other than a message.

use async_trait::async_trait;
use nuncio_domain::{TenantId, Timestamp};
use uuid::Uuid;

use crate::accept::Idempotency;
use crate::error::Result;

/// Result of claiming an idempotency key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyClaim {
    /// The key was free: the caller creates the resource in the same transaction.
    Won,
    /// Another request has the key, or the request is a repeat. The caller writes nothing.
    Lost {
        /// The resource that was created with the key.
        original: Uuid,
        /// Whether the two requests were the same.
        same_request: bool,
    },
}

/// Idempotency keys off the hot path.
#[async_trait]
pub trait IdempotencyRepo {
    /// Claims a key for `resource`, until `purge_after`. A second transaction that claims the same key waits for the first.
    async fn claim_idempotency_key(
        &mut self,
        tenant: TenantId,
        idempotency: &Idempotency,
        resource: Uuid,
        purge_after: Timestamp,
    ) -> Result<KeyClaim>;
}
