//! Deletes data past its retention, in small steps.

use async_trait::async_trait;
use nuncio_domain::{ConnectionId, MessageId, TenantId, Timestamp};

use crate::error::Result;

/// A cursor in the providers' ids.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReferencePlace {
    pub connection: ConnectionId,
    pub reference: String,
}

/// The providers' ids of messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProviderIds {
    /// Ids that receipts of outbound messages refer to.
    Outbound,
    /// Ids by which each inbound message is received once.
    Inbound,
}

/// Disk usage of a table, indexes included.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSize {
    pub table: String,
    /// Bytes, including free space in its pages.
    pub bytes: i64,
}

/// Deletes data past its retention. Each step is small, so that others wait only briefly.
#[async_trait]
pub trait RetentionRepo {
    /// Looks at up to `limit` messages of a tenant behind `after` that were created before `before`, and deletes those that are final and
    /// have not changed since, with all related data. Returns the cursor for the next call; `None` at the end.
    async fn forget_messages(
        &mut self,
        tenant: TenantId,
        after: Option<MessageId>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<MessageId>>;

    /// Deletes up to `limit` rows of a tenant's log written before `before`, as far as clocks agree. Keeps what webhooks have not processed
    /// yet. Returns how many.
    async fn forget_log(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` deliveries of events before `before` that will not be retried. Returns how many.
    async fn forget_deliveries(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` stray receipts that arrived before `before` and have no further lookup. Returns how many.
    async fn forget_strays(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64>;

    /// Scans up to `limit` of a tenant's provider ids behind `after` and deletes those of messages created before `before` that no longer
    /// exist. Returns the cursor for the next call; `None` at the end.
    async fn forget_provider_ids(
        &mut self,
        ids: ProviderIds,
        tenant: TenantId,
        after: Option<ReferencePlace>,
        before: Timestamp,
        limit: u32,
    ) -> Result<Option<ReferencePlace>>;

    /// Returns the disk usage of each table, largest first. On SQLite this reads every page of the file.
    async fn table_sizes(&mut self) -> Result<Vec<TableSize>>;
}
