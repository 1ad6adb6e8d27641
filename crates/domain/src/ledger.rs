//! Accounts of an environment, and transfers between them.

use uuid::Uuid;

use crate::{channel::named, id::SenderId, money::Micros, time::Timestamp};

named! {
    /// An account of an environment. The sum over all four is always zero.
    Account {
        /// Source of deposits and target of withdrawals.
        Funding = 1 "funding",
        /// Available to spend.
        Available = 2 "available",
        /// Reserved for messages and broadcasts in progress.
        Reserved = 3 "reserved",
        Spent = 4 "spent",
    }
}

named! {
    /// Purpose of a transfer.
    Purpose {
        /// Funds added.
        Deposit = 1 "deposit",
        /// Funds withdrawn.
        Withdrawal = 2 "withdrawal",
        /// Money reserved for possible charges.
        Reserve = 3 "reserve",
        /// A charge paid from reserved money.
        Settle = 4 "settle",
        /// Reserved money that is not needed.
        Release = 5 "release",
        /// A charge without a reservation.
        Charge = 6 "charge",
    }
}

impl Purpose {
    /// Returns the debited and the credited account.
    pub const fn accounts(self) -> (Account, Account) {
        match self {
            Self::Deposit => (Account::Funding, Account::Available),
            Self::Withdrawal => (Account::Available, Account::Funding),
            Self::Reserve => (Account::Available, Account::Reserved),
            Self::Settle => (Account::Reserved, Account::Spent),
            Self::Release => (Account::Reserved, Account::Available),
            Self::Charge => (Account::Available, Account::Spent),
        }
    }
}

/// A transfer between two accounts. Resource, purpose and part identify it: it is written at most once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    pub purpose: Purpose,
    /// The message, broadcast, number or deposit that causes it.
    pub resource: Uuid,
    /// Distinguishes transfers of one purpose and resource: the review attempt, the month, the channel.
    pub part: i16,
    /// Always positive.
    pub amount: Micros,
    /// The sender to count it for, if that sender's spending is limited.
    pub sender: Option<SenderId>,
}

/// A transfer as the ledger lists it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub transfer: Transfer,
    pub recorded_at: Timestamp,
}

/// Which entries of a ledger are listed; all by default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EntryFilter {
    pub purpose: Option<Purpose>,
    /// Recorded at or after this time.
    pub since: Option<Timestamp>,
    /// Recorded before this time.
    pub until: Option<Timestamp>,
}

/// Account balances of an environment.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// Available to spend; negative only if spending is not limited.
    pub available: Micros,
    pub reserved: Micros,
    pub spent: Micros,
    /// Whether spending is limited to the available balance.
    pub limited: bool,
}

impl Balance {
    /// Returns available plus reserved.
    pub const fn total(&self) -> Micros {
        Micros(self.available.0.saturating_add(self.reserved.0))
    }
}

/// Change of the balances by transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BalanceDelta {
    pub available: i64,
    pub reserved: i64,
    pub spent: i64,
}

impl BalanceDelta {
    /// Adds a transfer.
    pub const fn add(&mut self, purpose: Purpose, amount: i64) {
        let (from, to) = purpose.accounts();
        self.change(from, -amount);
        self.change(to, amount);
    }

    const fn change(&mut self, account: Account, by: i64) {
        match account {
            Account::Funding => {}
            Account::Available => self.available = self.available.saturating_add(by),
            Account::Reserved => self.reserved = self.reserved.saturating_add(by),
            Account::Spent => self.spent = self.spent.saturating_add(by),
        }
    }
}
