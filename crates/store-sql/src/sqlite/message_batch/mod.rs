//! Writes new messages, transitions, metrics and delivery results in batches.

mod accept;
mod broadcasts;
mod commit;
mod deliveries;
mod keys;
mod ledger;
mod load;
mod messages;
mod metrics;
mod recipients;
mod references;
mod statements;
mod transition;

use uuid::Uuid;

pub(super) use accept::accept;
pub(super) use commit::Batch;
pub(super) use deliveries::log_deliveries;
pub(super) use metrics::add_metrics;
pub(super) use statements::Statements;
pub(super) use transition::transition;

fn uuid(bytes: [u8; 16]) -> Uuid {
    Uuid::from_bytes(bytes)
}
