//! Store traits. `nuncio-store-sql` implements them for SQLite and PostgreSQL; a shared contract suite tests both.
//!
//! The hot path has two batched calls, [`Store::accept`] and [`Store::transition`] (start, settle and receipt are transitions). Each item
//! has its own result; batching several into one commit is an implementation detail. Everything else uses a [`Tx`], which has one
//! repository trait per aggregate.
//!
//! Absence is `Ok(None)`, a lost race is a value. A [`StoreError`] is a failure of the database, not of the request.

use async_trait::async_trait;

mod accept;
mod addresses;
mod agenda;
mod audit;
mod broadcasts;
mod contacts;
mod deliveries;
mod directory;
mod erasure;
mod error;
mod events;
mod idempotency;
mod inbound;
mod invitations;
mod ledger;
mod mailboxes;
mod messages;
mod nodes;
mod numbers;
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
mod traffic;
mod transition;
mod users;
mod webhooks;

pub use accept::{Accept, Accepted, Claim, Idempotency, IdempotentOperation};
pub use addresses::{Address, AddressRepo, ChannelMetrics, MetricDelta, MetricRow};
pub use agenda::{AgendaKey, AgendaPlace, AgendaRepo, AwaitingReceipt, AwaitingReceipts, Due, DueMessage, Skip};
pub use audit::AuditRepo;
pub use broadcasts::{
    BroadcastClick, BroadcastLink, BroadcastLinkRepo, BroadcastRecipientRepo, BroadcastRepo, DueBroadcast, ImportProgress, LinkClicks,
    NewBroadcastContact, RecipientScan,
};
pub use contacts::{ContactFilter, ContactRepo};
pub use deliveries::{Delivery, DeliveryFilter, DeliveryLog, DeliveryRepo, DeliveryTry, LogReader};
pub use directory::{ConnectionRepo, KeyRepo, ProjectRepo, SenderRepo};
pub use erasure::{Erasure, ErasureRepo};
pub use error::{Result, StoreError};
pub use events::{EventRecord, EventRepo, LogEntry, LogPayload, NewEvent, Occurrence, Position};
pub use idempotency::{IdempotencyRepo, Repeat};
pub use inbound::{InboundRepo, NewInbound};
pub use invitations::InvitationRepo;
pub use ledger::{LedgerRepo, Shortage, Transferred};
pub use mailboxes::{InboundAddress, MailCode, MailDomain, Mailbox, MailboxRepo};
pub use messages::{MessageFilter, MessageRepo, SpoolRepo};
pub use nodes::{Node, NodeRepo};
pub use numbers::NumberRepo;
pub use nuncio_domain::contact::SuppressionReason;
pub use prices::PriceRepo;
pub use profiles::ProfileRepo;
pub use quotas::{QuotaRepo, Storage};
pub use reassembly::{Piece, Reassembly, ReassemblyRepo, ReassemblyState};
pub use receipts::{RawReceipt, ReceiptRecord, ReceiptRepo, StrayReceipt, next_lookup};
pub use retention::{ProviderIds, ReferencePlace, RetentionRepo, TableSize};
pub use reviews::ReviewRepo;
pub use routing::{CountryMetrics, RoutingRepo};
pub use suppressions::{Suppression, SuppressionRepo};
pub use templates::TemplateRepo;
pub use traffic::{DAY, DELAYS, HOUR, Traffic, TrafficRepo, TrafficRow};
pub use transition::{Transition, Transitioned};
pub use users::UserRepo;
pub use webhooks::WebhookRepo;

/// A database.
#[async_trait]
pub trait Store: std::fmt::Debug + Send + Sync {
    /// Stores a message, its idempotency key, its recipient if new, and its first event. Returns once that is durable.
    ///
    /// Once called, the item can be stored even if the returned future is dropped.
    async fn accept(&self, item: Accept) -> Result<Accepted>;

    /// Applies a step to the newest state of a message and stores the changes with their event. Returns once that is durable.
    async fn transition(&self, item: Transition) -> Result<Transitioned>;

    /// Adds to channel metrics, in any order. Low priority; not one transaction, so after a failure a part may have been added.
    async fn add_metrics(&self, deltas: Vec<MetricRow>) -> Result<()>;

    /// Stores the outcome of deliveries, all or nothing; returns whether `fence` still holds. Low priority.
    async fn log_deliveries(&self, log: DeliveryLog) -> Result<bool>;

    /// Begins a write transaction. Dropping it rolls back. Keep it short: SQLite has one writer.
    async fn begin(&self) -> Result<Box<dyn Tx>>;

    /// Returns a reader of committed data. Two reads of one reader may see different states.
    async fn read(&self) -> Result<Box<dyn Tx>>;

    /// Checks that the database responds and accepts writes.
    async fn ping(&self) -> Result<()>;

    /// Waits for running operations, then closes. Later calls fail with [`StoreError::Unavailable`].
    async fn close(&self);

    /// Returns advice about the database and its settings, for `doctor`. Empty if there is none.
    async fn advice(&self) -> Result<Vec<String>>;
}

/// A transaction with all repositories.
#[async_trait]
pub trait Tx:
    ProjectRepo
    + KeyRepo
    + SenderRepo
    + ConnectionRepo
    + MessageRepo
    + AgendaRepo
    + SpoolRepo
    + AddressRepo
    + ContactRepo
    + InboundRepo
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
    + TrafficRepo
    + WebhookRepo
    + NumberRepo
    + InvitationRepo
    + TemplateRepo
    + BroadcastRepo
    + BroadcastRecipientRepo
    + BroadcastLinkRepo
    + UserRepo
    + AuditRepo
    + Send
{
    async fn commit(self: Box<Self>) -> Result<()>;
}
