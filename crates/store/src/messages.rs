//! Looks up messages, and maintains their agenda and spool.

use std::collections::BTreeMap;

use async_trait::async_trait;
use nuncio_domain::message::{Direction, HeldReason, Message, NodeId, Status, Wait};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, Channel, ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp};

use crate::accept::IdempotentOperation;
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
    /// Each with the kind of its provider.
    pub messages: Vec<(DueMessage, String)>,
    /// Cursor for the next call.
    pub next: AgendaPlace,
}

/// Filter of a message list. An absent field does not filter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MessageFilter {
    /// Statuses; empty means all.
    pub status: Vec<Status>,
    /// Channels; empty means all.
    pub channel: Vec<Channel>,
    /// Reasons for being held; empty means all messages, held or not.
    pub held: Vec<HeldReason>,
    /// The recipient in canonical form.
    pub to: Option<String>,
    pub direction: Option<Direction>,
    /// Our number or address, or the author's of an inbound message.
    pub from: Option<String>,
    pub sender: Option<SenderId>,
    pub contact: Option<ContactId>,
    pub broadcast: Option<BroadcastId>,
    pub idempotency_key: Option<String>,
    /// Entries that `metadata` must have, compared as text.
    pub metadata: BTreeMap<String, String>,
    /// A part of the text, whatever the case of letters from A to Z.
    pub text: Option<String>,
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
    /// Whether it belongs to a broadcast.
    pub bulk: bool,
    /// Bytes of the request that its attempt must load from the spool, rounded up to whole chunks; 0 if the row holds it all.
    pub bytes: usize,
}

#[async_trait]
pub trait MessageRepo {
    /// Returns a message with its whole request, which can be large. Prefer `lookup_messages` where lists suffice.
    async fn lookup_message(&mut self, tenant: TenantId, id: MessageId) -> Result<Option<Message>>;

    /// Returns the existing messages among `ids`, in any order, as lists show them, to bound memory: without HTML and attachment bytes, and
    /// with truncated text if the rest of the request is larger than
    /// [`limits::SPOOL_THRESHOLD_BYTES`](nuncio_domain::limits::SPOOL_THRESHOLD_BYTES).
    async fn lookup_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<Vec<Message>>;

    /// Lists messages as `lookup_messages` returns them, newest first. Indexes serve idempotency key, contact, `to`, and failed messages;
    /// other filters scan at most [`limits::SCAN_ROWS`](nuncio_domain::limits::SCAN_ROWS) rows.
    async fn list_messages(&mut self, tenant: TenantId, filter: &MessageFilter, page: PageRequest) -> Result<Page<Message>>;

    /// Returns the message that used an idempotency key.
    async fn find_message_by_idempotency_key(
        &mut self,
        tenant: TenantId,
        operation: IdempotentOperation,
        key: &str,
    ) -> Result<Option<MessageId>>;

    /// Returns the contacts of these messages, in the same order.
    async fn contacts_of_messages(&mut self, messages: &[Message]) -> Result<Vec<Option<ContactId>>>;

    /// Returns up to `limit` messages of all environments in these shards that are due at `now`, longest due first. Messages of the
    /// connections in `skip` are included only if their validity has ended, so that a provider outage does not block others.
    async fn due_messages(&mut self, shards: &[i16], skip: &[ConnectionId], now: Timestamp, limit: u32) -> Result<Vec<DueMessage>>;

    /// Up to `limit` messages of a tenant that could have been sent before `before` and still wait for their attempt, longest due first.
    async fn overdue_messages(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<Vec<DueMessage>>;

    /// Returns up to `limit` messages whose attempt `node` runs.
    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Vec<DueMessage>>;

    /// Returns every node that owns messages, registered or not.
    async fn owners(&mut self) -> Result<Vec<NodeId>>;

    /// Returns up to `limit` messages of all tenants in a shard that wait for an attempt, soonest due first.
    async fn waiting_messages(&mut self, shard: i16, limit: u32) -> Result<Vec<DueMessage>>;

    /// Scans up to `limit` due rows of the agenda and deletes those whose messages have all moved on. Returns how many were deleted.
    async fn prune_agenda(&mut self, now: Timestamp, limit: u32) -> Result<u64>;

    /// Returns some messages of all tenants in a shard that wait for a receipt, latest deadline first, continuing at the cursor. A page can
    /// be empty and still have a next cursor; `None` at the end of the shard.
    async fn messages_awaiting_receipts(&mut self, shard: i16, before: Option<AgendaPlace>) -> Result<Option<AwaitingReceipts>>;

    /// Returns up to `limit` messages of all environments that are held.
    async fn held_messages(&mut self, limit: u32) -> Result<Vec<DueMessage>>;

    /// Returns whether a sender has messages that wait for an attempt, are being sent or are held; only those created at or after `since`,
    /// if given. Without `since`, scans all unfinished messages of the database.
    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool>;

    /// Counts violations of the invariant that an unfinished message waits for exactly one thing, and that its owner is a live node.
    async fn count_unguarded_messages(&mut self) -> Result<i64>;

    /// Stores a chunk of a large request before its message is accepted.
    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()>;

    /// Deletes the chunks of a request that was not accepted.
    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()>;

    /// Deletes up to `limit` unused spool chunks written at or after `since` and before `before`. Returns how many. The cost is
    /// proportional to what was written in that time.
    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` idempotency keys that have expired at `now`. Returns how many. Keys of messages that are unfinished, or ended
    /// less than [`limits::IDEMPOTENCY_RETENTION`](nuncio_domain::limits::IDEMPOTENCY_RETENTION) ago, stay.
    async fn purge_idempotency_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64>;
}
