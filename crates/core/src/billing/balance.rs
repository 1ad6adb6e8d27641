//! Balances and storage quotas of environments, and transfers in the transactions of use cases.
//!
//! The store makes the transfers of messages itself. Everything else that costs something calls [`transfer`] **last** in
//! its transaction: it locks the environment's balance until the commit.

use nuncio_domain::ledger::{Balance, Purpose, Transfer};
use nuncio_domain::{Error, ErrorCode, Micros, Result, SenderId, TenantId, Timestamp, id::Id as _};
use nuncio_store::{Storage, Transferred, Tx};
use serde::Serialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use super::Billing;
use crate::base::spending::Pending;
use crate::base::{Caller, Change, UseCase, is_blank};

/// The balance of an environment in US dollars.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Balance)]
pub struct BalanceView {
    /// Remaining funds: `reserved` plus `available`.
    pub balance: Micros,
    /// Reserved for messages and broadcasts in progress.
    pub reserved: Micros,
    /// Available to spend. Negative only if spending is not limited.
    pub available: Micros,
    /// Always `usd`.
    pub currency: &'static str,
    /// Total spending.
    pub total_spent: Micros,
}

impl From<Balance> for BalanceView {
    fn from(balance: Balance) -> Self {
        let Balance { available, reserved, spent, .. } = balance;
        Self { balance: balance.total(), reserved, available, currency: "usd", total_spent: spent }
    }
}

/// Makes a transfer, if its amount is positive; `402 insufficient_balance` if less is available. A repetition changes nothing.
pub(crate) async fn transfer(tx: &mut dyn Tx, tenant: TenantId, transfer: &Transfer, now: Timestamp) -> Result<()> {
    if transfer.amount.0 <= 0 {
        return Ok(());
    }
    match tx.transfer(tenant, transfer, now).await? {
        Transferred::Done | Transferred::Repeated => Ok(()),
        Transferred::Short(balance) => Err(insufficient(balance, transfer.amount)),
    }
}

/// Returns `402 insufficient_balance`.
pub(crate) fn insufficient(balance: Balance, required: Micros) -> Error {
    short(balance, required, format!("${required} is required, ${} is available", balance.available))
}

/// Returns `402 insufficient_balance`; every one has these details.
fn short(balance: Balance, required: Micros, message: String) -> Error {
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
    /// Returns the storage quota and usage of an environment, if it has a quota.
    pub async fn storage(&self, tenant: TenantId) -> Result<Option<Storage>> {
        Ok(self.inner.store.read().await?.find_storage(tenant).await?)
    }

    /// Sets the storage quota of an environment, or removes it; returns the new state.
    pub async fn limit_storage(&self, tenant: TenantId, max_bytes: Option<i64>) -> Result<Option<Storage>> {
        let mut tx = self.inner.store.begin().await?;
        let shown = |storage: Option<Storage>| json!({"maxBytes": storage.map(|storage| storage.max_bytes)});
        let before = tx.find_storage(tenant).await?;
        tx.limit_storage(tenant, max_bytes).await?;
        let storage = tx.find_storage(tenant).await?;
        Change::new("storage_quota", "update", "storage quota").from(&shown(before)).to(&shown(storage)).commit(tx, tenant).await?;
        Ok(storage)
    }

    /// `GET /v1/balance`.
    pub async fn get_balance(&self, caller: &Caller) -> Result<BalanceView> {
        caller.require(UseCase::GetBalance)?;
        self.balance(caller.tenant).await.map(BalanceView::from)
    }

    /// Returns the balance of an environment.
    pub async fn balance(&self, tenant: TenantId) -> Result<Balance> {
        Ok(self.inner.store.read().await?.find_balance(tenant).await?)
    }

    /// Returns whether the balance of an environment equals the sum of its transfers.
    pub async fn is_balanced(&self, tenant: TenantId) -> Result<bool> {
        let (sum, balance) = self.inner.store.read().await?.sum_transfers(tenant).await?;
        Ok(sum == balance)
    }

    /// Adds funds, or withdraws some if `amount` is negative. At most once per `reference`: `false` if it was already used for this amount, a
    /// conflict if for another.
    pub async fn add_money(&self, tenant: TenantId, amount: Micros, reference: Option<&str>) -> Result<(bool, Balance)> {
        if amount.0 == 0 || amount.0.unsigned_abs() > nuncio_domain::price::MOST.unsigned_abs() {
            return Err(Error::field("amount", format!("is {amount}; must be an amount other than 0, of at most a million dollars")));
        }
        if reference.is_some_and(is_blank) {
            return Err(Error::field("reference", "is empty; must name one payment, or be left out"));
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
        // One reference is one payment, whichever way. The balance is locked, so that no other can come between.
        let others = tx.list_transfers(tenant, resource).await?;
        if let Some(other) = others.iter().find(|other| other.purpose != purpose || other.amount != transfer.amount) {
            let sign = if other.purpose == Purpose::Withdrawal { "-" } else { "" };
            let message = format!("the reference was already used for {sign}{}; nothing changed", other.amount);
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let balance = tx.find_balance(tenant).await?;
        if done {
            let after = json!({"amount": amount.to_string(), "reference": reference});
            Change::new("balance", "add", "balance").to(&after).record(&mut *tx, tenant).await?;
        }
        tx.commit().await?;
        Ok((done, balance))
    }

    /// Limits an environment's spending to the available balance, or removes the limit.
    pub async fn limit_balance(&self, tenant: TenantId, limited: bool) -> Result<Balance> {
        let mut tx = self.inner.store.begin().await?;
        tx.limit_balance(tenant, limited).await?;
        Change::new("balance", "limit", "balance").to(&json!({"limited": limited})).record(&mut *tx, tenant).await?;
        let balance = tx.find_balance(tenant).await?;
        tx.commit().await?;
        Ok(balance)
    }

    /// Returns how much a sender can still spend today (UTC) under its daily limit.
    pub(crate) async fn left_today(&self, tenant: TenantId, sender: SenderId, limit: Micros) -> Result<Micros> {
        Ok(Micros(limit.0.saturating_sub(self.spent_today(tenant, sender).await?.0)))
    }

    async fn spent_today(&self, tenant: TenantId, sender: SenderId) -> Result<Micros> {
        let now = self.ids().clock.now();
        let midnight = Timestamp::from_millis(now.millis() - now.millis().rem_euclid(86_400_000));
        Ok(self.inner.store.read().await?.spent_by_sender(tenant, sender, midnight).await?)
    }

    /// Fails with 402 if a sender cannot spend `required` more today (UTC) under its daily limit. A message counts only if its
    /// `Money::limited_sender` is the sender. Requests on several nodes do not see each other and can pass together.
    pub async fn check_daily_spend(&self, tenant: TenantId, sender: SenderId, limit: Micros, required: Micros) -> Result<()> {
        self.check_spend_after(tenant, sender, limit, required, Micros(0)).await
    }

    /// Like [`Self::check_daily_spend`] for a message that is about to be accepted. Returns what must be kept until it was.
    pub(crate) async fn begin_daily_spend(&self, tenant: TenantId, sender: SenderId, limit: Micros, required: Micros) -> Result<Pending> {
        let pending = self.inner.spending.begin(sender, required);
        let earlier = pending.earlier();
        let checked = self.check_spend_after(tenant, sender, limit, required, earlier).await;
        if checked.is_err() && earlier.0 > 0 {
            // Some may have been stored meanwhile, and counted twice, or were refused.
            pending.earlier_end().await;
            self.check_daily_spend(tenant, sender, limit, required).await?;
        } else {
            checked?;
        }
        Ok(pending)
    }

    /// `earlier` is what messages that are not stored yet will cost.
    async fn check_spend_after(&self, tenant: TenantId, sender: SenderId, limit: Micros, required: Micros, earlier: Micros) -> Result<()> {
        let spent = self.spent_today(tenant, sender).await?;
        if spent.0.saturating_add(earlier.0).saturating_add(required.0) <= limit.0 {
            return Ok(());
        }
        let message =
            format!("sender {sender} can spend ${limit} a day; ${spent} is spent or reserved today, and ${required} more is required");
        let balance = self.balance(tenant).await?;
        Err(short(balance, required, message).with("dailySpendLimit", amount(limit)).with("spentToday", amount(spent)))
    }
}

/// Derives the id of something that only has a name.
fn named(text: &str) -> Uuid {
    let hash: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash[..16]);
    Uuid::from_bytes(bytes)
}

/// `507 storage_quota_exceeded`.
pub(crate) fn quota_exceeded(storage: Storage, required: i64) -> Error {
    let Storage { max_bytes, stored_bytes } = storage;
    let message = format!(
        "the environment stores {stored_bytes} of {max_bytes} bytes, and the message needs {required}; ask the operator for a larger quota"
    );
    Error::new(ErrorCode::StorageQuotaExceeded, message)
        .with("storedBytes", stored_bytes.into())
        .with("maxBytes", max_bytes.into())
        .with("requiredBytes", required.into())
}
