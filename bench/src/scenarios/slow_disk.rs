//! A slow disk: the remaining rate when each commit takes 5 ms longer.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::of;
use crate::book::{Book, Bound, Row, Trial};
use crate::lab::Lab;
use crate::shim::Shim;
use crate::subject::{Backend, Environment};
use crate::workload::Recipients;

const PLAIN: &str = "256 connections, the disk as it is";
const SLOW: &str = "256 connections, +5 ms a sync";
const CONNECTIONS: usize = 256;
const DELAY: Duration = Duration::from_millis(5);

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    let mut backends = lab.options.backends();
    if lab.cluster.as_ref().is_some_and(|cluster| cluster.dir().is_none()) {
        backends.retain(|backend| *backend != Backend::Postgres);
        book.failures.push("slow disk: the PostgreSQL given is not ours to delay".to_owned());
    }
    for round in 1..=lab.options.rounds as usize {
        for &backend in &backends {
            book.trials.extend(pair(lab, backend, round).await?);
        }
    }
    for backend in backends {
        let trials = of(book, SLOW, backend);
        let row = Row::new("11", format!("{SLOW} / undelayed"), backend, "×", trials, Trial::ratio);
        book.rows.push(row.asks(Bound::AtLeast(0.3), Some(Bound::AtLeast(0.5))));
    }
    Ok(())
}

/// Runs undelayed and delayed in succession, alternating the order.
async fn pair(lab: &Lab, backend: Backend, round: usize) -> Result<Vec<Trial>> {
    let mut trials = Vec::new();
    let order = if round % 2 == 1 { [false, true] } else { [true, false] };
    for slow in order {
        trials.extend(trial(lab, backend, round, slow).await?);
    }
    let plain = trials.iter().find(|trial| trial.scenario == PLAIN).map(|trial| trial.rate);
    for trial in trials.iter_mut().filter(|trial| trial.scenario == SLOW) {
        trial.baseline = plain;
    }
    Ok(trials)
}

async fn trial(lab: &Lab, backend: Backend, round: usize, slow: bool) -> Result<Vec<Trial>> {
    let cluster = lab.cluster.as_ref().filter(|_| backend == Backend::Postgres);
    let dir = cluster.and_then(|cluster| cluster.dir()).unwrap_or(lab.work.path());
    let shim = slow.then(|| Shim::build(dir, DELAY)).transpose()?;
    if let Some(shim) = &shim {
        shim.reset();
    }
    // SQLite syncs inside nuncio, PostgreSQL in its own processes.
    if let Some(cluster) = cluster {
        cluster.restart(shim.as_ref()).context("restarting PostgreSQL")?;
    }
    let inside = shim.as_ref().filter(|_| cluster.is_none());
    let mut session = lab.session(backend, Environment::Test, inside).await?;
    let plan = lab.options.closed(CONNECTIONS, Recipients::Pool(lab.options.pool));
    session.window(if slow { SLOW } else { PLAIN }, plan).await?;
    let trials = session.finish(round, None).await?;
    if let Some(shim) = &shim {
        ensure!(shim.took_effect(), "no sync was delayed: the figure would be worthless");
        if let Some(cluster) = cluster {
            cluster.restart(None)?;
        }
    }
    Ok(trials)
}
