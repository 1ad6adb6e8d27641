//! Money and quotas of a tenant.

mod balance;
mod ledger;
mod prices;

pub use balance::*;
pub use ledger::{LedgerCause, LedgerEntryView, ListLedger};
pub use prices::ImportedPrices;

crate::base::use_cases! {
    /// Balances, prices and quotas.
    billing => Billing
}
