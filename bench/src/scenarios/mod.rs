//! The scenarios. Each adds its runs and rows to the book.

pub(crate) mod accept;
pub(crate) mod broadcast;
pub(crate) mod end_to_end;
pub(crate) mod latency;
pub(crate) mod slow_disk;
pub(crate) mod smpp;
pub(crate) mod stored;
pub(crate) mod webhooks;

use crate::book::{Book, Trial};
use crate::load::Plan;
use crate::subject::Backend;
use crate::workload::Workload;

/// Messages per batch request.
const BATCH: u64 = 100;
/// Connections that send batch requests.
const BATCH_CONNECTIONS: usize = 8;

/// Returns the same load in batch requests.
fn batched(plan: Plan) -> Plan {
    Plan { connections: BATCH_CONNECTIONS, work: Workload { each: BATCH, ..plan.work }, ..plan }
}

/// Returns the runs of a scenario on a store.
fn of<'a>(book: &'a Book, scenario: &str, backend: Backend) -> Vec<&'a Trial> {
    let matching = |trial: &&Trial| trial.scenario == scenario && trial.backend == backend;
    book.trials.iter().filter(matching).collect()
}
