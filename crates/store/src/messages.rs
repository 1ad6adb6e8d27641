//! Reading messages.

use std::collections::BTreeMap;

use async_trait::async_trait;
use nuncio_domain::lifecycle::{NodeId, Wait};
use nuncio_domain::message::{Direction, Message, Status};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastId, Channel, ConnectionId, ContactId, MessageId, SenderId, TenantId, Timestamp};

use crate::accept::Operation;
use crate::error::Result;

/// Where a walk through the agenda has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AgendaPlace {
    /// When the messages of the row are due.
    pub due_at: Timestamp,
    /// The tenant of the row.
    pub tenant: TenantId,
    /// The row.
    pub row: i64,
}

/// Messages that wait for a receipt.
#[derive(Clone, PartialEq, Debug)]
pub struct AwaitingReceipts {
    /// Each with the kind of its provider.
    pub messages: Vec<(DueMessage, String)>,
    /// Where the next look begins.
    pub next: AgendaPlace,
}

/// Which messages a list holds. An absent field does not filter.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MessageFilter {
    /// Any of these statuses; empty for all.
    pub status: Vec<Status>,
    /// Any of these channels; empty for all.
    pub channel: Vec<Channel>,
    /// The recipient in canonical form.
    pub to: Option<String>,
    /// The direction.
    pub direction: Option<Direction>,
    /// What it was sent from: our number or address, or the writer's of an inbound message.
    pub from: Option<String>,
    /// The sender.
    pub sender: Option<SenderId>,
    /// To or from this contact.
    pub contact: Option<ContactId>,
    /// Part of this broadcast.
    pub broadcast: Option<BroadcastId>,
    /// The message that was sent with this idempotency key.
    pub idempotency_key: Option<String>,
    /// All these entries in `metadata`, compared as text.
    pub metadata: BTreeMap<String, String>,
}

/// A message that somebody must look at.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DueMessage {
    /// The world.
    pub tenant: TenantId,
    /// The message.
    pub id: MessageId,
    /// Its fence.
    pub fence: i64,
    /// The connection of its next attempt.
    pub connection: ConnectionId,
    /// What it waits for, unless a newer version wrote what this one cannot read.
    pub wait: Option<Wait>,
    /// When its validity ends.
    pub expires_at: Timestamp,
    /// Whether it is part of a broadcast.
    pub bulk: bool,
    /// How many bytes its attempt has to load of a request that does not fit its row, rounded up to whole chunks; 0 for one that fits.
    pub bytes: usize,
}

/// Messages.
#[async_trait]
pub trait MessageRepo {
    /// One message, whole. May be as large as a request; where lists would do, `lookup_messages` does.
    async fn lookup_message(&mut self, tenant: TenantId, id: MessageId) -> Result<Option<Message>>;

    /// The messages among `ids` that there are, in any order, as lists have them: many large ones would fill the memory. They have
    /// neither HTML nor the bytes of attachments, and where the rest of the request is larger than
    /// [`limits::SPOOL_THRESHOLD_BYTES`](nuncio_domain::limits::SPOOL_THRESHOLD_BYTES) their text is cut.
    async fn lookup_messages(&mut self, tenant: TenantId, ids: &[MessageId]) -> Result<Vec<Message>>;

    /// Messages as `lookup_messages` has them, newest first. Indexes serve idempotency key, contact, `to`, and the failed ones; of the rest
    /// [`limits::SCAN_ROWS`](nuncio_domain::limits::SCAN_ROWS) rows are looked at.
    async fn list_messages(&mut self, tenant: TenantId, filter: &MessageFilter, page: PageRequest) -> Result<Page<Message>>;

    /// The message that used an idempotency key.
    async fn find_message_by_idempotency_key(&mut self, tenant: TenantId, operation: Operation, key: &str) -> Result<Option<MessageId>>;

    /// The contacts behind these messages' addresses, in the same order.
    async fn contacts_of_messages(&mut self, messages: &[Message]) -> Result<Vec<Option<ContactId>>>;

    /// Up to `limit` messages of all worlds in these shards that are due at `now`, longest due first, but for those of the
    /// connections in `skip` whose validity has not ended: what waits for a provider that is down must not stand in front of what others
    /// wait for.
    async fn due_messages(&mut self, shards: &[i16], skip: &[ConnectionId], now: Timestamp, limit: u32) -> Result<Vec<DueMessage>>;

    /// Up to `limit` messages whose attempt `node` is making.
    async fn messages_owned_by(&mut self, node: NodeId, limit: u32) -> Result<Vec<DueMessage>>;

    /// Every node that makes attempts, whether it is known or not.
    async fn owners(&mut self) -> Result<Vec<NodeId>>;

    /// Up to `limit` messages of all tenants in a shard that wait for an attempt, soonest due first.
    async fn waiting_messages(&mut self, shard: i16, limit: u32) -> Result<Vec<DueMessage>>;

    /// Looks at up to `limit` rows of the agenda that are due, and deletes those whose messages have all moved on. Returns how many.
    async fn prune_agenda(&mut self, now: Timestamp, limit: u32) -> Result<u64>;

    /// Some messages of all tenants in a shard that wait for a receipt: those whose deadline is the latest first, beyond the place that a
    /// look before ended at. A look may find none and yet have a next; `None` at the end of the shard.
    async fn messages_awaiting_receipts(&mut self, shard: i16, before: Option<AgendaPlace>) -> Result<Option<AwaitingReceipts>>;

    /// Up to `limit` messages of all worlds that wait for a person.
    async fn held_messages(&mut self, limit: u32) -> Result<Vec<DueMessage>>;

    /// Whether a sender has messages that wait for an attempt, are being sent or are held; of those made at or after `since`, if given.
    /// Without it, all unfinished messages of the database are looked through.
    async fn has_queued_messages(&mut self, tenant: TenantId, sender: SenderId, since: Option<Timestamp>) -> Result<bool>;

    /// How many messages break the rule that an unfinished one waits for exactly one thing, with a live node behind each owner.
    async fn count_unguarded_messages(&mut self) -> Result<i64>;

    /// Writes one chunk of a large request, before the message itself is accepted.
    async fn insert_spool_chunk(&mut self, tenant: TenantId, id: MessageId, index: i32, data: &[u8], now: Timestamp) -> Result<()>;

    /// Deletes the chunks of a request that was not accepted.
    async fn delete_spool(&mut self, tenant: TenantId, id: MessageId) -> Result<()>;

    /// Deletes up to `limit` spool chunks that were written at or after `since` and before `before`, and that no message uses. Returns how
    /// many. Costs as much as was written in that time.
    async fn purge_orphaned_spool(&mut self, since: Timestamp, before: Timestamp, limit: u32) -> Result<u64>;

    /// Deletes up to `limit` idempotency keys whose time is over at `now`. Returns how many. Keys of unfinished messages, and of those that
    /// ended less than [`limits::IDEMPOTENCY_RETENTION`](nuncio_domain::limits::IDEMPOTENCY_RETENTION) ago, stay.
    async fn purge_idempotency_keys(&mut self, now: Timestamp, limit: u32) -> Result<u64>;
}
