//! A full database: the same work before and after a million messages to a million contacts.

use anyhow::Result;

use super::of;
use crate::book::{Book, Bound, Row, Trial};
use crate::lab::Lab;
use crate::load::Plan;
use crate::subject::{Backend, Environment};
use crate::workload::Recipients;

const ALONE: [&str; 2] = ["one client, empty database", "one client, full database"];
const SATURATED: [&str; 2] = ["saturated, empty database", "saturated, full database"];

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    for round in 1..=lab.options.rounds as usize {
        for backend in lab.options.backends() {
            book.trials.extend(trials(lab, backend, round).await?);
        }
    }
    for backend in lab.options.backends() {
        judge(book, lab.options.stored, backend);
    }
    Ok(())
}

async fn trials(lab: &Lab, backend: Backend, round: usize) -> Result<Vec<Trial>> {
    let mut session = lab.session(backend, Environment::Test, None).await?;
    for full in [0, 1] {
        if full == 1 {
            let fill = lab.options.closed(lab.options.connections, Recipients::Sweep);
            session.burst(Plan { limit: Some(lab.options.stored), ..fill }).await;
            session.settle().await?;
        }
        let recipients = Recipients::Pool(lab.options.pool);
        session.window(ALONE[full], lab.options.closed(1, recipients)).await?;
        session.window(SATURATED[full], lab.options.closed(lab.options.connections, recipients)).await?;
        session.settle().await?;
    }
    session.finish(round, None).await
}

/// Compares each run on a full database with the run of the same server when it was empty.
fn judge(book: &mut Book, stored: u64, backend: Backend) {
    let ratio = |names: [&str; 2], figure: fn(&Trial) -> Option<f64>| -> Vec<f64> {
        let [empty, full] = names.map(|name| of(book, name, backend));
        empty.iter().zip(&full).filter_map(|(empty, full)| Some(figure(full)? / figure(empty)?)).collect()
    };
    let p50 = |trial: &Trial| Some(trial.latency.p50_ms);
    let row = |names: [&str; 2], what: &str, figure: fn(&Trial) -> Option<f64>| {
        let trials = names.map(|name| of(book, name, backend)).concat();
        let work = format!("{stored} messages stored: {what} / of the empty database");
        let row = Row::new("8", work, backend, "×", trials, |_| None);
        Row { samples: ratio(names, figure), ..row }.asks(Bound::AtMost(1.3), Some(Bound::AtMost(1.1)))
    };
    let rows = [row(ALONE, "one client, p50", p50), row(SATURATED, "saturated, CPU a message", Trial::cpu_total_us)];
    book.rows.extend(rows);
}
