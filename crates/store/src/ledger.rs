//! The books of a world.

use async_trait::async_trait;
use nuncio_domain::ledger::{Balance, Transfer};
use nuncio_domain::{Micros, SenderId, TenantId, Timestamp};
use uuid::Uuid;

use crate::error::Result;

/// What became of a transfer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transferred {
    /// It is written.
    Done,
    /// It was written before; nothing moved.
    Repeated,
    /// Less is available than it takes; nothing moved.
    Short(Balance),
}

/// A message that costs more than is available.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Shortage {
    /// What is on the accounts, without the message.
    pub balance: Balance,
    /// What the message may cost.
    pub required: Micros,
}

/// Accounts and transfers. New messages and steps of messages write theirs by themselves.
#[async_trait]
pub trait LedgerRepo {
    /// Moves money, once for each purpose, resource and part. Locks the world's balance until the end of the transaction, so it comes
    /// last in it.
    async fn transfer(&mut self, tenant: TenantId, transfer: &Transfer, now: Timestamp) -> Result<Transferred>;

    /// What is on the accounts of a world.
    async fn find_balance(&mut self, tenant: TenantId) -> Result<Balance>;

    /// Whether nothing may be spent beyond what is available.
    async fn limit_balance(&mut self, tenant: TenantId, limited: bool) -> Result<()>;

    /// What the transfers of a world add up to, whatever its balance says. Reads them all.
    async fn sum_transfers(&mut self, tenant: TenantId) -> Result<Balance>;

    /// The transfers that a resource caused, by purpose and part.
    async fn list_transfers(&mut self, tenant: TenantId, resource: Uuid) -> Result<Vec<Transfer>>;

    /// What a sender whose spending is limited spent or set aside since `since`, less what was given back.
    async fn spent_by_sender(&mut self, tenant: TenantId, sender: SenderId, since: Timestamp) -> Result<Micros>;
}
