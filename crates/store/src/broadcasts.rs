//! Broadcasts and their recipients.
//!
//! A message of a broadcast is accepted and moves like any other, by [`crate::Store::accept`] and [`crate::Store::transition`]. Both
//! write in the same transaction what it means for its recipient and for the counts of the broadcast.

use async_trait::async_trait;
use nuncio_domain::broadcast::{Broadcast, BroadcastContact, ContactStatus, Status, Variables};
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::message::Failure;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{BroadcastContactId, BroadcastId, MessageId, Recipient, SenderId, TenantId, Timestamp};

use crate::error::Result;

/// A recipient as it is added.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NewBroadcastContact {
    /// Its identifier.
    pub id: BroadcastContactId,
    /// The recipient.
    pub recipient: Recipient,
    /// Values of template variables for them.
    pub variables: Variables,
}

/// Recipients that were found by looking at a bounded number of rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecipientScan<T> {
    /// What was found, in the order of the recipients.
    pub found: Vec<T>,
    /// The recipient after whom the search goes on; `None` when all were looked at.
    pub next: Option<BroadcastContactId>,
}

/// How far an import of recipients has come. Sums over all its parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ImportProgress {
    /// Rows that were read.
    pub rows: u64,
    /// Recipients that were added.
    pub added: u64,
    /// Rows whose recipient the broadcast had already.
    pub duplicates: u64,
    /// Rows that cannot be recipients.
    pub invalid: u64,
}

/// A broadcast that a node must look at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DueBroadcast {
    /// The world.
    pub tenant: TenantId,
    /// The broadcast.
    pub id: BroadcastId,
    /// Grows whenever a node takes it.
    pub fence: i64,
    /// Since when it is due.
    pub due_at: Timestamp,
    /// After whom the hand-over goes on; `None` for the first recipient.
    pub cursor: Option<BroadcastContactId>,
}

/// A link of a broadcast that is counted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BroadcastLink {
    /// Names it in its world; 0 or more.
    pub key: i64,
    /// Where it leads.
    pub url: String,
}

/// How often a link was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkClicks {
    /// Where it leads.
    pub url: String,
    /// How many recipients opened it.
    pub recipients: u64,
    /// How often it was opened.
    pub clicks: u64,
}

/// Broadcasts.
#[async_trait]
pub trait BroadcastRepo {
    /// Writes a broadcast without recipients.
    async fn insert_broadcast(&mut self, broadcast: &Broadcast) -> Result<()>;

    /// One broadcast with its counts.
    async fn find_broadcast(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Option<Broadcast>>;

    /// Broadcasts in any of these statuses (none for all), newest first, without their HTML.
    async fn list_broadcasts(&mut self, tenant: TenantId, status: &[Status], page: PageRequest) -> Result<Page<Broadcast>>;

    /// Writes everything but total and counts, if the version still is `seen`; `false` when it is not.
    async fn update_broadcast(&mut self, broadcast: &Broadcast, seen: i64) -> Result<bool>;

    /// Removes up to `limit` recipients of a draft, and the draft itself once it has none. `None` when it is no draft any more, else
    /// whether it is gone.
    async fn delete_draft_broadcast(&mut self, tenant: TenantId, id: BroadcastId, limit: u32) -> Result<Option<bool>>;

    /// Up to `limit` broadcasts of all worlds that are due at `now`, longest due first.
    async fn due_broadcasts(&mut self, now: Timestamp, limit: u32) -> Result<Vec<DueBroadcast>>;

    /// Takes a broadcast if its fence still is that of `due`, which it raises by one; writes the cursor of `due`, and when the broadcast is
    /// due again. `false` when somebody was faster.
    async fn claim_broadcast(&mut self, due: &DueBroadcast, due_at: Option<Timestamp>) -> Result<bool>;
}

/// Recipients of broadcasts, and the imports that bring them.
#[async_trait]
pub trait BroadcastRecipientRepo {
    /// Adds recipients to a draft; those that it has already are left out. How many were added; `None` when it is no draft any more.
    async fn insert_broadcast_contacts(&mut self, tenant: TenantId, id: BroadcastId, new: &[NewBroadcastContact]) -> Result<Option<u64>>;

    /// How far the import of this name has come; `None` if it never began.
    async fn find_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str) -> Result<Option<ImportProgress>>;

    /// Writes how far an import has come.
    async fn put_broadcast_import(&mut self, tenant: TenantId, id: BroadcastId, name: &str, progress: &ImportProgress) -> Result<()>;

    /// How many recipients of a broadcast of `sender` are suppressed now, for the sender or for all.
    async fn count_suppressed_contacts(&mut self, tenant: TenantId, id: BroadcastId, sender: SenderId) -> Result<u64>;

    /// Suppressions of recipients of a broadcast of `sender` that were made since then, for the sender or for all, by reason.
    async fn suppressed_since(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        sender: SenderId,
        since: Timestamp,
    ) -> Result<Vec<(SuppressionReason, u64)>>;

    /// Recipients in any of these statuses (none for all), newest first. Of failed and skipped ones no others are read.
    async fn list_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        status: &[ContactStatus],
        page: PageRequest,
    ) -> Result<Page<BroadcastContact>>;

    /// Removes a recipient of a draft; `false` when there is none, `None` when it is no draft any more.
    async fn delete_broadcast_contact(&mut self, tenant: TenantId, id: BroadcastId, contact: BroadcastContactId) -> Result<Option<bool>>;

    /// One recipient.
    async fn find_broadcast_contact(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        contact: BroadcastContactId,
    ) -> Result<Option<NewBroadcastContact>>;

    /// Up to `limit` recipients after `after` who were not handed over, oldest first. Looks at [`SCAN_ROWS`](nuncio_domain::limits::SCAN_ROWS) rows at most.
    async fn pending_broadcast_contacts(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<RecipientScan<NewBroadcastContact>>;

    /// Marks a recipient who was not handed over as failed, while the broadcast is being sent; `false` when either is not so.
    async fn fail_broadcast_contact(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        contact: BroadcastContactId,
        failure: &Failure,
        now: Timestamp,
    ) -> Result<bool>;

    /// Messages of a broadcast that no provider has and none is being called for, of the next `limit` recipients after `after`.
    async fn unsent_broadcast_messages(
        &mut self,
        tenant: TenantId,
        id: BroadcastId,
        after: Option<BroadcastContactId>,
        limit: u32,
    ) -> Result<RecipientScan<MessageId>>;
}

/// Links of broadcasts that are counted.
#[async_trait]
pub trait BroadcastLinkRepo {
    /// Writes links of a broadcast; those that are there already stay.
    async fn put_broadcast_links(&mut self, tenant: TenantId, id: BroadcastId, links: &[BroadcastLink]) -> Result<()>;

    /// The broadcast of a link, and where it leads.
    async fn find_broadcast_link(&mut self, tenant: TenantId, key: i64) -> Result<Option<(BroadcastId, String)>>;

    /// Counts that a recipient opened a link.
    async fn count_broadcast_click(&mut self, tenant: TenantId, id: BroadcastId, key: i64, recipient: i64, now: Timestamp) -> Result<()>;

    /// How often each link of a broadcast was opened, most often first.
    async fn broadcast_clicks(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Vec<LinkClicks>>;
}
