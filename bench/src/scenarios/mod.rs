//! The scenarios. Each adds its runs and its lines to the book.

pub(crate) mod accept;
pub(crate) mod end_to_end;
pub(crate) mod latency;
pub(crate) mod slow_disk;
pub(crate) mod smpp;
pub(crate) mod stored;
pub(crate) mod webhooks;

use crate::book::{Book, Trial};
use crate::subject::Backend;

/// The runs in `book` of one scenario on one store.
fn of<'a>(book: &'a Book, scenario: &str, backend: Backend) -> Vec<&'a Trial> {
    let matching = |trial: &&Trial| trial.scenario == scenario && trial.backend == backend;
    book.trials.iter().filter(matching).collect()
}
