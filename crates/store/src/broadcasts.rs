//! Broadcasts and their recipients.
//!
//! Messages of a broadcast use [`crate::Store::accept`] and [`crate::Store::transition`] like all others. Both update the recipient and the
//! broadcast's counts in the same transaction.

use async_trait::async_trait;
use nuncio_domain::broadcast::{Broadcast, BroadcastContact, ContactStatus, Status, Variables};
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::message::Failure;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastContactId, BroadcastId, MessageId, Recipient, SenderId, TenantId, Timestamp};

use crate::error::Result;

/// A recipient to add.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewBroadcastContact {
    pub id: BroadcastContactId,
    pub recipient: Recipient,
    /// Values of template variables.
    pub variables: Variables,
}

/// Recipients found by a scan of a bounded number of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecipientScan<T> {
    pub found: Vec<T>,
    /// The recipient to continue after; `None` once all were scanned.
    pub next: Option<BroadcastContactId>,
}

/// Progress of an import of recipients, summed over its parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportProgress {
    /// Rows read.
    pub rows: u64,
    /// Recipients added.
    pub added: u64,
    /// Rows whose recipient was already in the broadcast.
    pub duplicates: u64,
    /// Invalid rows.
    pub invalid: u64,
}

/// A broadcast that is due for processing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueBroadcast {
    pub tenant: TenantId,
    pub id: BroadcastId,
    /// Incremented each time a node claims it.
    pub fence: i64,
    pub due_at: Timestamp,
    /// The last recipient processed; `None` before the first.
    pub cursor: Option<BroadcastContactId>,
    /// Whether there was money or storage for none in the last round.
    pub starved: bool,
}

/// A tracked link of a broadcast.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BroadcastLink {
    /// Identifies the link in its environment; not negative.
    pub key: i64,
    /// Target URL.
    pub url: String,
}

/// A recipient who follows a link of a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct BroadcastClick {
    pub tenant: TenantId,
    pub broadcast: BroadcastId,
    /// Key of the link.
    pub link: i64,
    /// Last eight bytes of the recipient's id.
    pub recipient: i64,
}

/// Clicks on a link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkClicks {
    /// Target URL.
    pub url: String,
    /// Number of recipients who opened it.
    pub recipients: u64,
    /// Number of times it was opened.
    pub clicks: u64,
}

#[async_trait]
pub trait BroadcastRepo {
    /// Stores a broadcast without recipients.
    async fn insert_broadcast(&mut self, broadcast: &Broadcast) -> Result<()>;

    /// Returns a broadcast with its counts.
    async fn find_broadcast(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Option<Broadcast>>;

    /// Lists broadcasts in any of these statuses (empty for all), newest first, without HTML.
    async fn list_broadcasts(&mut self, tenant: TenantId, status: &[Status], page: PageRequest) -> Result<Page<Broadcast>>;

    /// Updates everything except total and counts if the version is still `seen`; otherwise returns `false`.
    async fn update_broadcast(&mut self, broadcast: &Broadcast, seen: i64) -> Result<bool>;

    /// Deletes up to `limit` recipients of a draft, and the progress of its imports once it has none. Returns whether it has none left, or
    /// `None` if it is no longer a draft.
    async fn delete_broadcast_contacts(&mut self, tenant: TenantId, id: BroadcastId, limit: u32) -> Result<Option<bool>>;

    /// Deletes up to `limit` recipients of a draft, and the draft itself once it has none. Returns whether the draft is deleted, or `None`
    /// if it is no longer a draft.
    async fn delete_draft_broadcast(&mut self, tenant: TenantId, id: BroadcastId, limit: u32) -> Result<Option<bool>>;

    /// Returns up to `limit` broadcasts of all environments, and up to `of_one` of each, that are due at `now`, longest due first.
    async fn due_broadcasts(&mut self, now: Timestamp, limit: u32, of_one: u32) -> Result<Vec<DueBroadcast>>;

    /// Claims a broadcast if its fence is still that of `due`: increments the fence, and stores the cursor of `due` and the next due time.
    /// `false` if another node has claimed it.
    async fn claim_broadcast(&mut self, due: &DueBroadcast, due_at: Option<Timestamp>) -> Result<bool>;
}

/// Recipients of broadcasts, and their imports.
#[async_trait]
pub trait BroadcastRecipientRepo {
    /// Adds recipients to a draft, except those it already has. Returns how many were added, or `None` if it is no longer a draft.
    async fn insert_broadcast_contacts(&mut self, tenant: TenantId, id: BroadcastId, new: &[NewBroadcastContact]) -> Result<Option<u64>>;

    /// Returns the progress of the named import; `None` if it was never started.
    async fn find_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str) -> Result<Option<ImportProgress>>;

    /// Stores the progress of an import.
    async fn put_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str, progress: &ImportProgress) -> Result<()>;

    /// Returns how many recipients of a broadcast are suppressed, for `sender` or for all senders.
    async fn count_suppressed_contacts(&mut self, tenant: TenantId, id: BroadcastId, sender: SenderId) -> Result<u64>;

    /// Returns suppressions of a broadcast's recipients created since then, for `sender` or for all senders, by reason.
    async fn suppressed_since(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        sender: SenderId,
        since: Timestamp,
    ) -> Result<Vec<(SuppressionReason, u64)>>;

    /// Lists recipients in any of these statuses (empty for all), newest first. For failed and skipped ones, reads no others.
    async fn list_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        status: &[ContactStatus],
        page: PageRequest,
    ) -> Result<Page<BroadcastContact>>;

    /// Returns the recipient with this address.
    async fn find_broadcast_recipient(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        recipient: &Recipient,
    ) -> Result<Option<BroadcastContact>>;

    /// Removes a recipient of a draft; `false` if there is none, `None` if it is no longer a draft.
    async fn delete_broadcast_contact(&mut self, tenant: TenantId, id: BroadcastId, contact: BroadcastContactId) -> Result<Option<bool>>;

    async fn find_broadcast_contact(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        contact: BroadcastContactId,
    ) -> Result<Option<NewBroadcastContact>>;

    /// Returns up to `limit` recipients after `after` without a message, oldest first. Scans at most
    /// [`SCAN_ROWS`](nuncio_domain::limits::SCAN_ROWS) rows.
    async fn pending_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<RecipientScan<NewBroadcastContact>>;

    /// Ends recipients without a message while the broadcast is sending: as failed, or without a failure as skipped. Returns for how many both
    /// held.
    async fn end_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        ended: &[(BroadcastContactId, Option<Failure>)],
        now: Timestamp,
    ) -> Result<u64>;

    /// Returns the messages of the next `limit` recipients after `after` that no provider has accepted and for which no call is in flight.
    async fn unsent_broadcast_messages(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<RecipientScan<MessageId>>;
}

/// Tracked links.
#[async_trait]
pub trait BroadcastLinkRepo {
    /// Stores links of a broadcast; existing ones stay.
    async fn put_broadcast_links(&mut self, tenant: TenantId, id: BroadcastId, links: &[BroadcastLink]) -> Result<()>;

    /// Returns the broadcast and the target of a link.
    async fn find_broadcast_link(&mut self, tenant: TenantId, key: i64) -> Result<Option<(BroadcastId, String)>>;

    /// Adds clicks, the first of which was at `first_at`.
    async fn count_broadcast_clicks(&mut self, click: BroadcastClick, clicks: u64, first_at: Timestamp) -> Result<()>;

    /// Returns the clicks on each link of a broadcast, most clicked first.
    async fn broadcast_clicks(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Vec<LinkClicks>>;
}
