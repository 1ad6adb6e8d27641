//! Idempotency keys of requests that make something off the hot path.

use async_trait::async_trait;
use nuncio_domain::{TenantId, Timestamp};
use uuid::Uuid;

use crate::accept::Idempotency;
use crate::error::Result;

/// Whose an idempotency key is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyClaim {
    /// The caller's: the resource may be made, in the same transaction.
    Won,
    /// Somebody was faster, or the request is a repeat. Nothing may be written.
    Lost {
        /// The resource that was made with it.
        original: Uuid,
        /// Whether the two requests were the same.
        same_request: bool,
    },
}

/// Idempotency keys.
#[async_trait]
pub trait IdempotencyRepo {
    /// Takes a key for `resource`, until `purge_after`. Of two transactions that want the same key the second waits for the first.
    async fn claim_idempotency_key(
        &mut self,
        tenant: TenantId,
        idempotency: &Idempotency,
        resource: Uuid,
        purge_after: Timestamp,
    ) -> Result<KeyClaim>;
}
