//! Messages, and parts of requests too large for a row.

use std::collections::BTreeMap;

use async_trait::async_trait;
use nuncio_domain::message::{Direction, HeldReason, Message, Status};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, Channel, ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp};

use crate::accept::IdempotentOperation;
use crate::error::Result;

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

    /// Returns the message whose receipts name it, or a part of it, by this id of the provider.
    async fn find_message_by_reference(&mut self, tenant: TenantId, connection: ConnectionId, reference: &str)
    -> Result<Option<MessageId>>;

    /// Returns the contacts of these messages, in the same order.
    async fn contacts_of_messages(&mut self, messages: &[Message]) -> Result<Vec<Option<ContactId>>>;

    /// Counts violations of the invariant that an unfinished message waits for exactly one thing, and that its owner is a live node.
    async fn count_unguarded_messages(&mut self) -> Result<i64>;

    /// Looks at up to `limit` idempotency keys that are due at `now`, the longest due first, and deletes them. Keys of messages and broadcasts
    /// that are unfinished, or ended less than [`limits::IDEMPOTENCY_RETENTION`](nuncio_domain::limits::IDEMPOTENCY_RETENTION) ago, stay and are due
    /// again later. Returns how many it looked at: none of them is due at `now` any more.
    async fn purge_idempotency_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64>;
}

/// Parts of requests too large for a row.
#[async_trait]
pub trait SpoolRepo {
    /// Stores a chunk of a large request before its message is accepted.
    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()>;

    /// Deletes the chunks of a request that was not accepted.
    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()>;

    /// Deletes up to `limit` unused spool chunks written at or after `since` and before `before`. Returns how many. The cost is
    /// proportional to what was written in that time.
    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64>;
}
