//! Deleting what is older than it has to be kept, a step at a time.

use async_trait::async_trait;
use nuncio_domain::{ConnectionId, TenantId, Timestamp};

use crate::error::Result;

/// Where a walk through the ids of providers has come to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReferencePlace {
    /// The connection.
    pub connection: ConnectionId,
    /// The provider's id.
    pub reference: String,
}

/// What a table takes on disk, with its indexes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSize {
    /// The table.
    pub table: String,
    /// Bytes, free space inside its pages included.
    pub bytes: i64,
}

/// Deletes what is older than it has to be kept. Each step is a small part, so that others wait only briefly.
#[async_trait]
pub trait RetentionRepo {
    /// Deletes up to `limit` messages of a tenant that were made before `before`, are final, and have not changed since, with all that is
    /// kept of them. Returns how many.
    async fn forget_messages(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` rows of a tenant's log that were written before `before`, as far as clocks agree. What webhooks are yet to be
    /// told stays. Returns how many.
    async fn forget_log(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` deliveries, of events before `before`, that are not to be tried again. Returns how many.
    async fn forget_deliveries(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` receipts of unknown messages that came before `before` and that nobody looks for any more. Returns how many.
    async fn forget_strays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Looks at up to `limit` of the ids that providers gave, behind `after`, and deletes those of messages made before `before` that are no
    /// longer kept. Returns where the next look begins; `None` at the end.
    async fn forget_references(
        &mut self,
        tenant: TenantId,
        after: Option<ReferencePlace>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<ReferencePlace>>;

    /// What each table takes, the largest first. SQLite looks at every page of the file.
    async fn table_sizes(&mut self) -> Result<Vec<TableSize>>;
}
