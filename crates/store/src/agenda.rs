//! Unfinished messages, and what they wait for.

use async_trait::async_trait;
use nuncio_domain::message::{NodeId, Wait};
use nuncio_domain::{ConnectionId, MessageId, SenderId, TenantId, Timestamp};

use crate::error::Result;

/// A cursor in the agenda.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgendaPlace {
    /// When the row's messages are due.
    pub due_at: Timestamp,
    pub tenant: TenantId,
    pub row: i64,
}

/// Messages waiting for a receipt.
#[derive(Clone, PartialEq, Debug)]
pub struct AwaitingReceipts {
    pub messages: Vec<AwaitingReceipt>,
    /// Cursor for the next call.
    pub next: AgendaPlace,
}

/// A message waiting for a receipt.
#[derive(Clone, PartialEq, Debug)]
pub struct AwaitingReceipt {
    pub message: DueMessage,
    /// Kind of its provider.
    pub provider: String,
    pub has_fallback: bool,
}

/// A message that is due for processing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueMessage {
    pub tenant: TenantId,
    pub id: MessageId,
    pub fence: i64,
    /// Connection of the next attempt.
    pub connection: ConnectionId,
    /// What it waits for; `None` if a newer version wrote what this one cannot parse.
    pub wait: Option<Wait>,
    pub expires_at: Timestamp,
    /// Whether its fallback follows now, unless an attempt can start.
    pub fallback_is_due: bool,
    /// Whether it belongs to a broadcast.
    pub bulk: bool,
    /// Bytes of the request that its attempt must load from the spool, rounded up to whole chunks; 0 if the row holds it all.
    pub bytes: usize,
}

/// Environment and identifier of an agenda row.
pub type AgendaKey = (TenantId, i64);

/// What a look at agenda rows found.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// Due messages, longest due first; of a node, in any order.
    pub messages: Vec<DueMessage>,
    /// Rows whose messages have all moved on.
    pub stale: Vec<AgendaKey>,
}

/// Connections whose due messages a look leaves out.
#[derive(Clone, Debug, Default)]
pub struct Skip {
    pub all: Vec<ConnectionId>,
    /// Only their bulk messages.
    pub bulk: Vec<ConnectionId>,
}

/// Unfinished messages.
#[async_trait]
pub trait AgendaRepo {
    /// Returns up to `limit` messages of all environments in these shards that are due at `now`, longest due first, except those in
    /// `skip`, so that a provider outage does not block others. Of these, it adds up to `limit` whose validity has ended or whose fallback is
    /// due. Looks at a bounded number of rows: if it returns only stale ones, delete them and call it again.
    async fn due_messages(&mut self, shards: &[i16], skip: &Skip, now: Timestamp, limit: u32) -> Result<Due>;

    /// Deletes stale rows of the agenda. A row never gets new messages, so a stale one stays stale.
    async fn delete_agenda_rows(&mut self, rows: &[AgendaKey]) -> Result<()>;

    /// Up to `limit` messages of a tenant that could have been sent before `before` and still wait for their attempt, longest due first.
    async fn overdue_messages(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<Vec<DueMessage>>;

    /// Returns up to `limit` messages whose attempt `node` runs, and the stale rows that it reads on the way.
    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Due>;

    /// Returns every node that owns messages, registered or not.
    async fn owners(&mut self) -> Result<Vec<NodeId>>;

    /// Returns up to `limit` messages of all tenants in a shard that wait for an attempt, soonest due first.
    async fn waiting_messages(&mut self, shard: i16, limit: u32) -> Result<Vec<DueMessage>>;

    /// Returns some messages of all tenants in a shard that wait for a receipt, latest deadline first, continuing at the cursor. A page can
    /// be empty and still have a next cursor; `None` at the end of the shard.
    async fn messages_awaiting_receipts(&mut self, shard: i16, before: Option<AgendaPlace>) -> Result<Option<AwaitingReceipts>>;

    /// Returns up to `limit` messages of all environments that are held, ordered by tenant and id, continuing after the given one.
    async fn held_messages(&mut self, after: Option<(TenantId, MessageId)>, limit: u32) -> Result<Vec<DueMessage>>;

    /// Returns whether a sender has messages that wait for an attempt, are being sent or are held; only those created at or after `since`,
    /// if given. Without `since`, scans all unfinished messages of the database.
    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool>;
}
