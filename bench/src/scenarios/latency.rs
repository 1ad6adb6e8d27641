//! Latency: a single client compared with the disk's sync, and an open loop at 60 % of the rate at which the same server was just
//! saturated.

use anyhow::Result;

use super::of;
use crate::book::{Book, Bound, Row, Trial};
use crate::lab::Lab;
use crate::load::{Pace, Plan};
use crate::proc::sync_ms;
use crate::stats::Spread;
use crate::subject::{Backend, Environment};
use crate::workload::Recipients;

const SINGLE: &str = "one client, one request at a time";
const SATURATED: &str = "saturated, before the open loop";
const OPEN: &str = "open loop at 60 % of the saturated rate";
/// Connections of an open loop: enough that a stall of tens of milliseconds queues in the server, not in the client.
const OPEN_CONNECTIONS: usize = 256;

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    for round in 1..=lab.options.rounds as usize {
        for backend in lab.options.backends() {
            book.trials.extend(trials(lab, backend, round).await?);
        }
    }
    for backend in lab.options.backends() {
        judge(book, backend);
    }
    Ok(())
}

async fn trials(lab: &Lab, backend: Backend, round: usize) -> Result<Vec<Trial>> {
    let recipients = Recipients::Pool(lab.options.pool);
    let mut session = lab.session(backend, Environment::Test, None).await?;
    let ours = session.subject.data.path().to_owned();
    let disk = match (backend, &lab.cluster) {
        (Backend::Postgres, Some(cluster)) => cluster.dir().map(ToOwned::to_owned),
        _ => Some(ours),
    };
    let probe = || disk.as_deref().map(sync_ms).transpose();

    let before = probe()?;
    let single = session.window(SINGLE, lab.options.closed(1, recipients)).await?;
    let after = probe()?;
    single.sync_ms = before.zip(after).map(|(before, after)| f64::midpoint(before, after));

    let plan = lab.options.closed(lab.options.connections, recipients);
    let rate = session.window(SATURATED, plan).await?.rate;
    session.settle().await?;
    let pace = Pace::Open(rate * 0.6);
    session.window(OPEN, Plan { connections: OPEN_CONNECTIONS, pace, ..plan }).await?;
    session.finish(round, None).await
}

fn judge(book: &mut Book, backend: Backend) {
    let single = of(book, SINGLE, backend);
    let syncs: Vec<f64> = single.iter().filter_map(|trial| trial.sync_ms).collect();
    let p50 = |trial: &Trial| Some(trial.latency.p50_ms);
    let mut alone = Row::new("5", format!("{SINGLE}: p50"), backend, "ms", single, p50);
    match Spread::of(&syncs) {
        Some(Spread { median: sync, .. }) => {
            alone.work = format!("{} (one disk sync: {sync:.2} ms)", alone.work);
            let required = if backend == Backend::Postgres { 2.0 * sync + 0.5 } else { sync + 0.45 };
            alone = alone.asks(Bound::AtMost(required), Some(Bound::AtMost(sync + 0.3)));
        }
        None => alone.work.push_str(" (the disk of a foreign database is not known)"),
    }
    let open = of(book, OPEN, backend);
    let p99 = |trial: &Trial| Some(trial.latency.p99_ms);
    let most = if backend == Backend::Postgres { 15.0 } else { 10.0 };
    let tail = Row::new("1b", format!("{OPEN}: p99"), backend, "ms", open.clone(), p99).asks(Bound::AtMost(most), Some(Bound::AtMost(5.0)));
    let middle = Row::new("–", format!("{OPEN}: p50"), backend, "ms", open, p50);
    book.rows.extend([tail, alone, middle]);
}
