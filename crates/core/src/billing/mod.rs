//! Money and quotas of a tenant.

mod balance;
mod prices;
pub(crate) mod quota;

pub use balance::*;

crate::base::use_cases! {
    /// Balances, prices and quotas.
    billing => Billing
}
