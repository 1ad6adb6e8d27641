//! What nuncio keeps, as traits. `nuncio-store-sql` implements them for SQLite and PostgreSQL; one contract suite holds both to it.
//!
//! The hot path has two batched calls, [`Store::accept`] and [`Store::transition`] (start, settle and receipt are transitions).
//! Each item is answered for itself; that many of them share one commit is the implementation's own business.
//! Everything else goes through a [`Tx`], which carries one repository trait per aggregate.
//!
//! Absence is `Ok(None)`, a lost race is a value. A [`StoreError`] means that nothing can be said about the request itself.

use async_trait::async_trait;

mod accept;
mod broadcasts;
mod contacts;
mod deliveries;
mod directory;
mod erasure;
mod error;
mod events;
mod idempotency;
mod invitations;
mod ledger;
mod mailboxes;
mod messages;
mod nodes;
mod numbers;
mod people;
mod prices;
mod profiles;
mod quotas;
mod reassembly;
mod receipts;
mod retention;
mod reviews;
mod routing;
mod suppressions;
mod templates;
mod transition;
mod users;
mod webhooks;

pub use accept::{Accept, Accepted, Claim, Idempotency, Operation};
pub use broadcasts::{
    BroadcastLink, BroadcastLinkRepo, BroadcastRecipientRepo, BroadcastRepo, DueBroadcast, ImportProgress, LinkClicks, NewBroadcastContact,
    RecipientScan,
};
pub use contacts::{ChannelMetrics, ContactRepo, MetricDelta, MetricRow, NewInbound, Suppression};
pub use deliveries::{Delivery, DeliveryFilter, DeliveryLog, DeliveryRepo, DeliveryTry, LogEntry, LogReader, Position, Told};
pub use directory::DirectoryRepo;
pub use erasure::{Erasure, ErasureRepo};
pub use error::{Result, StoreError};
pub use events::{EventRecord, EventRepo, NewEvent, Occurrence};
pub use idempotency::{IdempotencyRepo, KeyClaim};
pub use invitations::InvitationRepo;
pub use ledger::{LedgerRepo, Shortage, Transferred};
pub use mailboxes::{InboundAddress, MailCode, MailDomain, Mailbox, MailboxRepo};
pub use messages::{AgendaPlace, AwaitingReceipts, DueMessage, MessageFilter, MessageRepo};
pub use nodes::{Node, NodeRepo};
pub use numbers::NumberRepo;
pub use nuncio_domain::contact::SuppressionReason;
pub use people::{Address, ContactFilter, PeopleRepo};
pub use prices::PriceRepo;
pub use profiles::ProfileRepo;
pub use quotas::{QuotaRepo, Storage};
pub use reassembly::{Parts, Piece, Reassembly, ReassemblyRepo};
pub use receipts::{RawReceipt, ReceiptRecord, ReceiptRepo, StrayReceipt, next_look};
pub use retention::{ReferencePlace, RetentionRepo, TableSize};
pub use reviews::ReviewRepo;
pub use routing::{CountryMetrics, RoutingRepo};
pub use suppressions::SuppressionRepo;
pub use templates::TemplateRepo;
pub use transition::{Transition, Transitioned};
pub use users::UserRepo;
pub use webhooks::WebhookRepo;

/// One database.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Writes a message, its idempotency key, its recipient if new and its first event. Returns when the commit is on disk.
    ///
    /// Once called, the item may be written even if the returned future is dropped.
    async fn accept(&self, item: Accept) -> Result<Accepted>;

    /// Applies one step to one message, on its newest state, and writes what changed with its event. Returns when it is on disk.
    async fn transition(&self, item: Transition) -> Result<Transitioned>;

    /// Adds to the metrics of channels, in any order. Yields to what is more urgent, and is not one transaction: after a failure a part
    /// may have been added.
    async fn add_metrics(&self, deltas: Vec<MetricRow>) -> Result<()>;

    /// Writes what became of deliveries, all or nothing; answers whether `fence` still holds. Yields to what is more urgent.
    async fn log_deliveries(&self, log: DeliveryLog) -> Result<bool>;

    /// A write transaction. Dropping it rolls back. Must be short: SQLite has one writer.
    async fn begin(&self) -> Result<Box<dyn Tx>>;

    /// A reader. Sees committed data; two reads of one reader may see different moments.
    async fn read(&self) -> Result<Box<dyn Tx>>;

    /// Whether the database answers and takes writes.
    async fn ping(&self) -> Result<()>;

    /// Waits for what is under way, then closes. Later calls fail with [`StoreError::Unavailable`].
    async fn close(&self);

    /// Words about the database and what is unwise about its settings, for `doctor`. Empty when nothing is.
    async fn advice(&self) -> Result<Vec<String>>;
}

/// One transaction, with every repository.
#[async_trait]
pub trait Tx:
    DirectoryRepo
    + MessageRepo
    + ContactRepo
    + PeopleRepo
    + SuppressionRepo
    + ErasureRepo
    + DeliveryRepo
    + EventRepo
    + IdempotencyRepo
    + LedgerRepo
    + MailboxRepo
    + NodeRepo
    + PriceRepo
    + ProfileRepo
    + QuotaRepo
    + ReviewRepo
    + ReassemblyRepo
    + ReceiptRepo
    + RetentionRepo
    + RoutingRepo
    + WebhookRepo
    + NumberRepo
    + InvitationRepo
    + TemplateRepo
    + BroadcastRepo
    + BroadcastRecipientRepo
    + BroadcastLinkRepo
    + UserRepo
    + Send
{
    /// Makes the changes durable.
    async fn commit(self: Box<Self>) -> Result<()>;
}
