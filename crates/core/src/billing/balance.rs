//! Money: what is on the accounts of a world, and the transfers that use cases make in their own transactions.
//!
//! Messages set aside, pay and give back by themselves, in the store. Everything else that costs something calls [`reserve`],
//! [`settle`], [`release`] and [`charge`] **last** in its transaction: they lock the world's balance until the commit.

use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Balance, Purpose, Transfer};
use nuncio_domain::{Error, ErrorCode, Micros, Permission, Result, SenderId, TenantId, Timestamp};
use nuncio_store::{Transferred, Tx};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Billing;
use crate::base::Caller;

/// The money of an environment in US dollars.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Balance)]
pub struct BalanceView {
    /// What is left of what came in: `reserved` and `available` together.
    #[schema(value_type = f64)]
    pub balance: Micros,
    /// Set aside for messages and broadcasts that are under way.
    #[schema(value_type = f64)]
    pub reserved: Micros,
    /// What can be spent. Below zero only where spending is not limited.
    #[schema(value_type = f64)]
    pub available: Micros,
    /// Always `usd`.
    pub currency: &'static str,
    /// All that was ever paid.
    #[schema(value_type = f64)]
    pub total_spent: Micros,
}

impl From<Balance> for BalanceView {
    fn from(balance: Balance) -> Self {
        let Balance { available, reserved, spent, .. } = balance;
        Self { balance: balance.total(), reserved, available, currency: "usd", total_spent: spent }
    }
}

/// What a transfer is about. With its purpose it is made once, however often it is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reference {
    /// The broadcast, phone number or whatever else costs.
    pub resource: Uuid,
    /// Tells several transfers of one purpose apart, such as review attempts or months.
    pub part: i16,
    /// Whose day it counts to, should the sender's daily spending be limited.
    pub sender: Option<SenderId>,
}

/// Sets money aside; `402 insufficient_balance` when less is available.
pub async fn reserve(tx: &mut dyn Tx, tenant: TenantId, amount: Micros, reference: Reference, now: Timestamp) -> Result<()> {
    transfer(tx, tenant, Purpose::Reserve, amount, reference, now).await
}

/// Pays out of what was set aside.
pub async fn settle(tx: &mut dyn Tx, tenant: TenantId, amount: Micros, reference: Reference, now: Timestamp) -> Result<()> {
    transfer(tx, tenant, Purpose::Settle, amount, reference, now).await
}

/// Gives back what was set aside and not needed.
pub async fn release(tx: &mut dyn Tx, tenant: TenantId, amount: Micros, reference: Reference, now: Timestamp) -> Result<()> {
    transfer(tx, tenant, Purpose::Release, amount, reference, now).await
}

/// Pays at once; `402 insufficient_balance` when less is available.
pub async fn charge(tx: &mut dyn Tx, tenant: TenantId, amount: Micros, reference: Reference, now: Timestamp) -> Result<()> {
    transfer(tx, tenant, Purpose::Charge, amount, reference, now).await
}

async fn transfer(tx: &mut dyn Tx, tenant: TenantId, purpose: Purpose, amount: Micros, reference: Reference, now: Timestamp) -> Result<()> {
    if amount.0 <= 0 {
        return Ok(());
    }
    let transfer = Transfer { purpose, resource: reference.resource, part: reference.part, amount, sender: reference.sender };
    match tx.transfer(tenant, &transfer, now).await? {
        Transferred::Done | Transferred::Repeated => Ok(()),
        Transferred::Short(balance) => Err(insufficient(balance, amount)),
    }
}

/// `402 insufficient_balance`.
pub(crate) fn insufficient(balance: Balance, required: Micros) -> Error {
    let message = format!("${required} may be needed, ${} is available", balance.available);
    Error::new(ErrorCode::InsufficientBalance, message)
        .with("balance", amount(balance.total()))
        .with("reserved", amount(balance.reserved))
        .with("available", amount(balance.available))
        .with("required", amount(required))
}

fn amount(micros: Micros) -> serde_json::Value {
    serde_json::to_value(micros).unwrap_or_default()
}

impl Billing<'_> {
    /// `GET /v1/balance`.
    pub async fn get_balance(&self, caller: &Caller) -> Result<BalanceView> {
        caller.require(Permission::MessagesRead)?;
        self.balance(caller.tenant).await.map(BalanceView::from)
    }

    /// What is on the accounts of a world.
    pub async fn balance(&self, tenant: TenantId) -> Result<Balance> {
        Ok(self.inner.store.read().await?.find_balance(tenant).await?)
    }

    /// Whether the balance of a world is what its transfers add up to. What moves while this looks is looked at again.
    pub async fn books_are_even(&self, tenant: TenantId) -> Result<bool> {
        const LOOKS: usize = 5;
        for _ in 0..LOOKS {
            let mut tx = self.inner.store.read().await?;
            if tx.sum_transfers(tenant).await? == tx.find_balance(tenant).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Puts money in, or takes some out if `amount` is below zero. The same `reference` does so once; `false` when it was used before.
    pub async fn add_money(&self, tenant: TenantId, amount: Micros, reference: Option<&str>) -> Result<(bool, Balance)> {
        if amount.0 == 0 || amount.0.unsigned_abs() > nuncio_domain::price::MOST.unsigned_abs() {
            return Err(Error::field("amount", format!("is {amount}; must be an amount other than 0, of at most a million dollars")));
        }
        let resource = reference.map_or_else(|| self.ids().next::<nuncio_domain::EventId>().uuid(), named);
        let purpose = if amount.0 > 0 { Purpose::Deposit } else { Purpose::Withdrawal };
        let transfer = Transfer { purpose, resource, part: 0, amount: Micros(amount.0.abs()), sender: None };
        let mut tx = self.inner.store.begin().await?;
        let done = match tx.transfer(tenant, &transfer, self.ids().clock.now()).await? {
            Transferred::Done => true,
            Transferred::Repeated => false,
            Transferred::Short(balance) => return Err(insufficient(balance, transfer.amount)),
        };
        let balance = tx.find_balance(tenant).await?;
        tx.commit().await?;
        Ok((done, balance))
    }

    /// Whether a world may spend no more than it has.
    pub async fn limit_balance(&self, tenant: TenantId, limited: bool) -> Result<Balance> {
        let mut tx = self.inner.store.begin().await?;
        tx.limit_balance(tenant, limited).await?;
        let balance = tx.find_balance(tenant).await?;
        tx.commit().await?;
        Ok(balance)
    }

    /// What a sender may still spend today (UTC) under its daily limit.
    pub(crate) async fn left_today(&self, tenant: TenantId, sender: SenderId, limit: Micros) -> Result<Micros> {
        Ok(Micros(limit.0.saturating_sub(self.spent_today(tenant, sender).await?.0)))
    }

    async fn spent_today(&self, tenant: TenantId, sender: SenderId) -> Result<Micros> {
        let now = self.ids().clock.now();
        let midnight = Timestamp::from_millis(now.millis() - now.millis().rem_euclid(86_400_000));
        Ok(self.inner.store.read().await?.spent_by_sender(tenant, sender, midnight).await?)
    }

    /// Fails with 402 when a sender may not spend `required` more today (UTC) under its daily limit. What a message may cost counts only
    /// if its `Money::limited_sender` names the sender. Requests at the same moment do not see each other: they may pass together.
    pub async fn check_daily_spend(&self, tenant: TenantId, sender: SenderId, limit: Micros, required: Micros) -> Result<()> {
        let spent = self.spent_today(tenant, sender).await?;
        if spent.0.saturating_add(required.0) <= limit.0 {
            return Ok(());
        }
        let message =
            format!("sender {sender} may spend ${limit} a day; ${spent} is spent or set aside today, and ${required} more may be needed");
        Err(Error::new(ErrorCode::InsufficientBalance, message)
            .with("dailySpendLimit", amount(limit))
            .with("spentToday", amount(spent))
            .with("required", amount(required)))
    }
}

/// The identifier of something that only has a name.
fn named(text: &str) -> Uuid {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Uuid::from_bytes(bytes)
}
