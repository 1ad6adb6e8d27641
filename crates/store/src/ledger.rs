//! Keeps the balance of an environment by double entry.

use async_trait::async_trait;
use nuncio_domain::ledger::{Balance, Entry, EntryFilter, Transfer};
use nuncio_domain::{Micros, SenderId, TenantId, Timestamp};
use uuid::Uuid;

use crate::error::Result;

/// Result of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transferred {
    /// Written.
    Done,
    /// The same transfer exists already; nothing was written.
    Repeated,
    /// The available balance is too low; nothing was written.
    Short(Balance),
}

/// A message that costs more than is available.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortage {
    /// The balance, without the message.
    pub balance: Balance,
    /// The highest cost of the message.
    pub required: Micros,
}

/// Balances and transfers. [`crate::Store::accept`] and [`crate::Store::transition`] write the transfers of messages themselves.
#[async_trait]
pub trait LedgerRepo {
    /// Writes a transfer, at most once for each purpose, resource and part. Locks the balance of the environment until the end of the
    /// transaction, so it must be the last statement.
    async fn transfer(&mut self, tenant: TenantId, transfer: &Transfer, now: Timestamp) -> Result<Transferred>;

    /// The balance of an environment; zero if nothing was ever booked.
    async fn find_balance(&mut self, tenant: TenantId) -> Result<Balance>;

    /// Sets whether spending beyond the available balance is refused.
    async fn limit_balance(&mut self, tenant: TenantId, limited: bool) -> Result<()>;

    /// The sum of all transfers of an environment, and its balance at the same moment, which must be equal. Reads every transfer.
    async fn sum_transfers(&mut self, tenant: TenantId) -> Result<(Balance, Balance)>;

    /// The transfers of a resource, ordered by purpose and part.
    async fn list_transfers(&mut self, tenant: TenantId, resource: Uuid) -> Result<Vec<Transfer>>;

    /// Up to `limit` entries that match, newest first, after the first `skip`. Reads `skip` rows of each purpose, so it must be small.
    async fn list_entries(&mut self, tenant: TenantId, filter: &EntryFilter, skip: u32, limit: u32) -> Result<Vec<Entry>>;

    /// Spending of a sender with a spending limit since `since`: charges and reservations, less what was released.
    async fn spent_by_sender(&mut self, tenant: TenantId, sender: SenderId, since: Timestamp) -> Result<Micros>;
}
