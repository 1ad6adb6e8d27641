//! The repositories of a transaction, in SQL that both databases understand.
//!
//! Each backend compiles this folder as a module of its own, with its own `Db`, `SqlTx` and `dialect`.

use super::{Db, SqlTx, dialect};

mod audit;
mod broadcasts;
mod contacts;
mod deliveries;
mod directory;
mod erasure;
mod events;
mod idempotency;
mod invitations;
mod ledger;
mod mailboxes;
mod messages;
mod nodes;
mod numbers;
mod people;
mod prices;
mod profiles;
mod query;
mod quotas;
mod reassembly;
mod receipts;
mod retention;
mod reviews;
mod routing;
mod suppressions;
mod templates;
mod traffic;
mod users;
mod webhooks;

pub(super) use query::{Condition, contains};
