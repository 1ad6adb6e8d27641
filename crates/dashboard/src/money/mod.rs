//! Balance, prices and the ledger.

mod ledger;
mod prices;
mod show;

pub(crate) use ledger::ledger;
pub(crate) use show::{import, show};
