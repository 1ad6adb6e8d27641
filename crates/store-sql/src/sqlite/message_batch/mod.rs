//! Writes new messages, transitions, metrics and delivery results in batches.

mod accept;
mod broadcasts;
mod commit;
mod delivery_log;
mod keys;
mod ledger;
mod load;
mod messages;
mod recipients;
mod references;
mod statements;
mod transition;

use uuid::Uuid;

pub(super) use accept::accept;
pub(super) use commit::Batch;
pub(super) use delivery_log::{add_metrics, log_deliveries};
pub(super) use statements::Statements;
pub(super) use transition::transition;

fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}
