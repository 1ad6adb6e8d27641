//! The books of a world: accounts, and transfers between them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::channel::named;
use crate::id::SenderId;
use crate::money::Micros;

named! {
    /// An account of a world. Over all transfers the four add up to nothing.
    Account {
        /// Where money comes from and goes back to.
        Funding = 1 "funding",
        /// What may be spent.
        Available = 2 "available",
        /// What is set aside for what is under way.
        Reserved = 3 "reserved",
        /// What was paid.
        Spent = 4 "spent",
    }
}

named! {
    /// What a transfer is for.
    Purpose {
        /// Money comes in.
        Deposit = 1 "deposit",
        /// Money goes back.
        Withdrawal = 2 "withdrawal",
        /// Set aside for something that may cost so much.
        Reserve = 3 "reserve",
        /// What was set aside is paid.
        Settle = 4 "settle",
        /// What was set aside is not needed.
        Release = 5 "release",
        /// Paid without having been set aside.
        Charge = 6 "charge",
    }
}

impl Purpose {
    /// The account that gives, and the one that gets.
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

/// Money that moves from one account to another. Resource, purpose and part name it for ever: it is written once or not at all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transfer {
    /// What it is for.
    pub purpose: Purpose,
    /// The message, broadcast, number or deposit that causes it.
    pub resource: Uuid,
    /// Tells several of one purpose and resource apart: the review attempt, the month, the channel.
    pub part: i16,
    /// How much; more than nothing.
    pub amount: Micros,
    /// Whose spending it is, where a sender's is limited.
    pub sender: Option<SenderId>,
}

/// What is on the accounts of a world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Balance {
    /// What may be spent; below nothing only where spending is not limited.
    pub available: Micros,
    /// What is set aside.
    pub reserved: Micros,
    /// What was paid so far.
    pub spent: Micros,
    /// Whether nothing may be spent beyond what is available.
    pub limited: bool,
}

impl Balance {
    /// What is left of the money that came in: available and reserved.
    pub const fn total(&self) -> Micros {
        Micros(self.available.0.saturating_add(self.reserved.0))
    }
}

/// The change that a transfer makes to available, reserved and spent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Moves {
    /// To available.
    pub available: i64,
    /// To reserved.
    pub reserved: i64,
    /// To spent.
    pub spent: i64,
}

impl Moves {
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
