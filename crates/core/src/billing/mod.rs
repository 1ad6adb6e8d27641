//! Money and quotas of a tenant.

mod balance;
mod prices;
pub(crate) mod quota;

pub use balance::*;
