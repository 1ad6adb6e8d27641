//! SMS from HTTP to SMPP, compared with Kannel, into the same sink: from the first 202 until the last message, or its receipt, has arrived.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::{of, webhooks};
use crate::audit::Audit;
use crate::book::{Book, Bound, Row, Trial};
use crate::hooks::Hooks;
use crate::kannel::{Kannel, Store};
use crate::lab::Lab;
use crate::load::{Load, Outcome, Plan};
use crate::proc::wait_until;
use crate::smsc::{self, Smsc};
use crate::stats::Latency;
use crate::subject::{Backend, Environment};
use crate::workload::{Dialect, Recipients, Workload};

/// Use of receipts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Receipts {
    Off,
    /// Off, with many messages per request.
    Batched,
    /// Nuncio stores them. Kannel always reports them, because it drops them otherwise.
    On,
    /// Nuncio also posts each to a webhook.
    Webhook,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Gateway {
    Kannel(Store),
    Nuncio(Backend),
}

const ALL: [Receipts; 4] = [Receipts::Off, Receipts::Batched, Receipts::On, Receipts::Webhook];
const STORES: [(Store, Backend); 2] = [(Store::Spool, Backend::Spool), (Store::Nothing, Backend::Nothing)];
const PAUSE: Duration = Duration::from_millis(5);
/// For the sink alone, the number of messages is multiplied by this.
const ALONE: usize = 10;

const GUARANTEES: &str = "Beside Kannel: its 202 means that the message is in a file of the spool directory (with `store-type = spool`) \
or in memory (without a store); it never syncs, so that a power cut loses what was accepted and doubles what was sent. Nuncio's 202 means \
that the message is committed and synced, and each outcome and receipt is committed as well. Kannel tells receipts with one GET to the \
`dlr-url` and keeps nothing of them; nuncio keeps them, and in the lines that say so also posts a signed webhook for each. CPU of Kannel is that of \
bearerbox and smsbox.";

impl Receipts {
    fn scenario(self) -> &'static str {
        match self {
            Self::Off => "HTTP to SMPP, receipts off",
            Self::Batched => "HTTP to SMPP, receipts off, 100 messages in a request",
            Self::On => "HTTP to SMPP, receipts on",
            Self::Webhook => "HTTP to SMPP, receipts on, a webhook for each",
        }
    }

    /// Returns how Kannel is measured for comparison.
    fn beside(self) -> Self {
        if self.asked() { Self::On } else { Self::Off }
    }

    /// Returns whether receipts are requested.
    fn asked(self) -> bool {
        matches!(self, Self::On | Self::Webhook)
    }
}

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    book.notes.push(alone(lab).await?);
    let mut gateways: Vec<Gateway> = lab.options.backends().into_iter().map(Gateway::Nuncio).collect();
    match Kannel::version() {
        Ok(version) => {
            book.notes.push(format!("{GUARANTEES} {version}, {} sessions with a window of {}.", lab.options.binds, lab.options.window));
            gateways.extend(STORES.map(|(store, _)| Gateway::Kannel(store)));
        }
        Err(e) => book.failures.push(format!("goal 2: {e}")),
    }
    for round in 1..=lab.options.rounds as usize {
        let mut trials = Vec::new();
        for receipts in ALL {
            for &gateway in &gateways {
                match gateway {
                    Gateway::Nuncio(backend) => trials.extend(nuncio(lab, backend, receipts, round).await?),
                    Gateway::Kannel(store) if receipts == receipts.beside() => trials.push(kannel(lab, store, receipts, round).await?),
                    Gateway::Kannel(_) => {}
                }
            }
            // Alternates the order.
            gateways.reverse();
        }
        book.trials.extend(paired(trials));
    }
    for backend in lab.options.backends() {
        ALL.into_iter().for_each(|receipts| judge(book, receipts, backend));
    }
    for (_, backend) in STORES.into_iter().filter(|_| gateways.len() > lab.options.backends().len()) {
        [Receipts::Off, Receipts::On].into_iter().for_each(|receipts| inform(book, receipts, backend));
    }
    Ok(())
}

/// Measures the sink alone, to show that it is not the bottleneck.
async fn alone(lab: &Lab) -> Result<String> {
    let smsc = Smsc::start().await?;
    let each = usize::try_from(lab.options.texts)? * ALONE / lab.options.binds;
    let rate = smsc::saturate(smsc.addr, lab.options.binds, lab.options.window, each).await?;
    let (lost, doubled) = smsc.counts.compare(each * lab.options.binds);
    ensure!(lost + doubled == 0, "the SMPP sink miscounts: {lost} lost, {doubled} too many");
    Ok(format!("The SMPP sink alone, with a client that does nothing else on the same cores, took {rate:.0} messages a second."))
}

fn plan(lab: &Lab, dialect: Dialect) -> Plan {
    let work = Workload { dialect, ..lab.options.work(Recipients::Pool(lab.options.pool)) };
    let closed = lab.options.closed(lab.options.connections, work.recipients);
    Plan { limit: Some(lab.options.texts), work, ..closed }
}

/// Waits until `count` reaches `wanted`; returns the seconds since the first 202.
async fn arrived(lab: &Lab, outcome: &Outcome, wanted: u64, count: impl Fn() -> u64) -> Result<f64> {
    let start = outcome.first_accept.context("nothing was accepted")?;
    let all = wait_until(lab.options.patience(), PAUSE, async || Ok(count() >= wanted)).await?;
    if !all {
        eprintln!("    {} of {wanted} came in time", count());
    }
    Ok(start.elapsed().as_secs_f64())
}

async fn nuncio(lab: &Lab, backend: Backend, receipts: Receipts, round: usize) -> Result<Vec<Trial>> {
    let (smsc, hooks) = (Smsc::start().await?, Hooks::start().await?);
    let (binds, window) = (lab.options.binds, lab.options.window);
    let environment = Environment::Smpp { addr: smsc.addr, binds, window, receipts: receipts.asked() };
    let mut session = lab.session(backend, environment, None).await?;
    let bound = wait_until(Duration::from_secs(10), PAUSE, async || Ok(smsc.bound() >= binds)).await?;
    ensure!(bound, "nuncio does not bind:\n{}", session.subject.log_tail());
    if receipts == Receipts::Webhook {
        webhooks::subscribe(&session, &hooks, &["message.delivered"]).await?;
    }
    let mut plan = plan(lab, Dialect::Nuncio);
    if receipts == Receipts::Batched {
        plan = super::batched(plan);
    }
    let before = session.subject.cpu()?;
    let outcome = session.burst(plan).await;
    let took = match receipts {
        Receipts::Off | Receipts::Batched => arrived(lab, &outcome, outcome.count, || smsc.counts.different()).await?,
        Receipts::Webhook => arrived(lab, &outcome, outcome.count, || hooks.events()).await?,
        Receipts::On => {
            session.settle().await?;
            arrived(lab, &outcome, 0, || 0).await?
        }
    };
    // What nuncio stores afterwards is part of its work.
    session.settle().await?;
    let after = session.subject.cpu()?;
    let count = outcome.count as f64;
    session.trial(receipts.scenario(), plan.connections, &outcome, count, before, after)?.rate = count / took;
    let mut trials = session.finish(round, Some(&smsc.counts)).await?;
    if receipts == Receipts::Webhook {
        count_missing(&mut trials[0].audit, outcome.count, &hooks);
    }
    Ok(trials)
}

/// Counts deliveries that were not reported, or reported twice.
fn count_missing(audit: &mut Audit, wanted: u64, hooks: &Hooks) {
    audit.sink_lost += wanted.saturating_sub(hooks.events());
    audit.sink_doubled += hooks.surplus();
}

async fn kannel(lab: &Lab, store: Store, receipts: Receipts, round: usize) -> Result<Trial> {
    let (smsc, hooks) = (Smsc::start().await?, Hooks::start().await?);
    let kannel = Kannel::start(lab.work.path(), store, &smsc, lab.options.binds, lab.options.window).await?;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let idle_mb = kannel.memory_mb()?.0;
    let told = receipts.asked();
    let plan = plan(lab, Dialect::Kannel { receipts: told.then_some(hooks.addr) });
    let before = kannel.cpu()?;
    let outcome = Load::run(kannel.target.clone(), plan).await;
    let took = arrived(lab, &outcome, outcome.count, || if told { hooks.events() } else { smsc.counts.different() }).await?;
    let emptied = wait_until(Duration::from_secs(20), PAUSE, async || Ok(kannel.spooled() == 0)).await?;
    let after = kannel.cpu()?;
    // Duplicates arrive soon after.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let errors: u64 = outcome.errors.values().sum();
    let (lost, doubled) = smsc.counts.compare(usize::try_from(outcome.issued)?);
    let promised = outcome.ids.len() as u64;
    let mut audit = Audit { promised, listed: promised, sink_lost: lost.saturating_sub(errors), sink_doubled: doubled, ..Audit::default() };
    if told {
        count_missing(&mut audit, outcome.count, &hooks);
    }
    if !emptied {
        audit.not_delivered = kannel.spooled() as u64;
    }
    let count = outcome.count as f64;
    let trial = Trial {
        scenario: receipts.scenario().to_owned(),
        backend: STORES.iter().find(|(one, _)| *one == store).map_or(Backend::Nothing, |(_, backend)| *backend),
        round,
        connections: plan.connections,
        count: outcome.count,
        rate: count / took,
        baseline: None,
        latency: Latency::of(&outcome.latency),
        settled_share: None,
        cpu_us: (after - before) * 1e6 / count,
        cpu_database_us: Some(0.0),
        idle_mb,
        peak_mb: kannel.memory_mb()?.1,
        sync_ms: None,
        errors: outcome.errors,
        first_error: outcome.first_error,
        audit,
    };
    crate::lab::tell(&trial);
    kannel.stop().await?;
    Ok(trial)
}

/// Returns the runs of one round; nuncio's include the rate of Kannel's spool.
fn paired(mut trials: Vec<Trial>) -> Vec<Trial> {
    let beside = |receipts: Receipts| {
        let spool = trials.iter().find(|trial| trial.backend == Backend::Spool && trial.scenario == receipts.beside().scenario());
        (receipts.scenario(), spool.map(|trial| trial.rate))
    };
    let rates = ALL.map(beside);
    for trial in trials.iter_mut().filter(|trial| !STORES.iter().any(|(_, backend)| *backend == trial.backend)) {
        trial.baseline = rates.iter().find(|(scenario, _)| *scenario == trial.scenario).and_then(|(_, rate)| *rate);
    }
    trials
}

fn judge(book: &mut Book, receipts: Receipts, backend: Backend) {
    let scenario = receipts.scenario();
    let trials = of(book, scenario, backend);
    let row = |goal, what: &str, unit, figure: fn(&Trial) -> Option<f64>| {
        Row::new(goal, format!("{scenario}: {what}"), backend, unit, trials.iter().copied(), figure)
    };
    let unsaved = of(book, receipts.beside().scenario(), Backend::Nothing);
    let ratios = trials.iter().filter_map(|trial| Some(trial.rate / unsaved.iter().find(|other| other.round == trial.round)?.rate));
    let Goals { spool, unsaved: (required, stretch), cpu } = goals(receipts, backend);
    let (goal, of_spool) = if receipts == Receipts::Batched { ("12", "–") } else { ("2", "2") };
    let with = row(of_spool, "rate / Kannel with spool store", "×", Trial::ratio);
    let without = Row { samples: ratios.collect(), ..row(goal, "rate / Kannel without store", "×", |_| None) };
    let mut rows = vec![
        match spool {
            Some(spool) => with.asks(Bound::AtLeast(spool), Some(Bound::AtLeast(6.0))),
            None => with,
        },
        without.asks(Bound::AtLeast(required), Some(Bound::AtLeast(stretch))),
        row("–", "rate", "messages/s", |trial| Some(trial.rate)),
        row("–", "memory, highest", "MB", |trial| Some(trial.peak_mb)),
    ];
    rows.push(row("–", "CPU per 1,000 messages", "ms", Trial::cpu_total_us));
    if let Some((required, stretch)) = cpu {
        let ratio = |trial: &&Trial| {
            let other = unsaved.iter().find(|other| other.round == trial.round)?;
            Some(trial.cpu_total_us()? / other.cpu_total_us()?)
        };
        let ratio = Row { samples: trials.iter().filter_map(ratio).collect(), ..row("4", "CPU / Kannel without store", "×", |_| None) };
        rows.push(ratio.asks(Bound::AtMost(required), Some(Bound::AtMost(stretch))));
    }
    book.rows.extend(rows);
}

/// Goals of a scenario: required, and where there are two, a stretch goal.
struct Goals {
    /// Rate compared with Kannel with its spool.
    spool: Option<f64>,
    /// Rate compared with Kannel without a store.
    unsaved: (f64, f64),
    /// CPU compared with Kannel without a store. Absent for webhooks, which the goal excludes.
    cpu: Option<(f64, f64)>,
}

fn goals(receipts: Receipts, backend: Backend) -> Goals {
    let sqlite = backend == Backend::Sqlite;
    let of = |on_sqlite: f64, on_postgres: f64| if sqlite { on_sqlite } else { on_postgres };
    let (unsaved, cpu) = match receipts {
        Receipts::Off => ((of(1.5, 1.2), 3.0), Some((of(0.65, 0.9), 0.5))),
        Receipts::Batched => ((3.0, 5.0), None),
        Receipts::On => ((of(2.5, 1.3), 3.0), Some((of(0.32, 0.6), 0.25))),
        Receipts::Webhook => ((of(1.6, 1.0), 3.0), None),
    };
    let spool = (receipts != Receipts::Batched).then(|| of(4.0, 3.0));
    Goals { spool, unsaved, cpu }
}

/// Adds Kannel's own rows.
fn inform(book: &mut Book, receipts: Receipts, backend: Backend) {
    let trials = of(book, receipts.scenario(), backend);
    let row = |what: &str, unit, figure: fn(&Trial) -> Option<f64>| {
        Row::new("–", format!("Kannel, {}: {what}", receipts.scenario()), backend, unit, trials.iter().copied(), figure)
    };
    let rows = [
        row("rate", "messages/s", |trial| Some(trial.rate)),
        row("CPU per 1,000 messages", "ms", Trial::cpu_total_us),
        row("memory, highest", "MB", |trial| Some(trial.peak_mb)),
    ];
    book.rows.extend(rows);
}
