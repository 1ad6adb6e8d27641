//! Shared parts of all scenarios: options, the baseline, the database, and a session with one server that records everything sent to it.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde::Serialize;
use tempfile::TempDir;

use crate::audit::{Audit, Claim, audit};
use crate::book::Trial;
use crate::counts::Counts;
use crate::hello::Hello;
use crate::load::{Load, Outcome, Pace, Plan, Target};
use crate::postgres::Cluster;
use crate::proc::wait_until;
use crate::shim::Shim;
use crate::stats::Latency;
use crate::subject::{Backend, Environment, Setup, Subject};
use crate::workload::{Recipients, Workload};

#[derive(Clone, Debug, Serialize, clap::Args)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Options {
    /// The server to measure
    #[arg(long, global = true, default_value = "target/dist/nuncio")]
    pub(crate) bin: PathBuf,
    /// Rounds; baseline and nuncio alternate within each
    #[arg(long, global = true, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Measured seconds per round
    #[arg(long, global = true, default_value_t = 8.0)]
    pub(crate) seconds: f64,
    /// Seconds of load before the measurement
    #[arg(long, global = true, default_value_t = 1.0)]
    pub(crate) warmup: f64,
    /// Connections of the accept scenario
    #[arg(long, global = true, default_value_t = 64)]
    pub(crate) connections: usize,
    /// Numbers that recipients are drawn from
    #[arg(long, global = true, default_value_t = 1_000_000,
          value_parser = clap::value_parser!(u64).range(1..=crate::workload::POOL_MAX))]
    pub(crate) pool: u64,
    /// Messages of an end-to-end run in the sandbox
    #[arg(long, global = true, default_value_t = 50_000)]
    pub(crate) messages: u64,
    /// Mails of an end-to-end run over SMTP
    #[arg(long, global = true, default_value_t = 10_000)]
    pub(crate) mails: u64,
    /// Text messages of an end-to-end run over SMPP
    #[arg(long, global = true, default_value_t = 40_000)]
    pub(crate) texts: u64,
    /// Recipients of a broadcast
    #[arg(long, global = true, default_value_t = 100_000)]
    pub(crate) recipients: u64,
    /// Sessions with the SMSC, of either gateway
    #[arg(long, global = true, default_value_t = 2)]
    pub(crate) binds: usize,
    /// Unanswered messages per session
    #[arg(long, global = true, default_value_t = 100)]
    pub(crate) window: usize,
    /// Messages, and contacts, that the full database holds
    #[arg(long, global = true, default_value_t = 1_000_000)]
    pub(crate) stored: u64,
    /// Give each message an idempotency key
    #[arg(long, global = true)]
    pub(crate) idempotent: bool,
    /// Decides the recipients
    #[arg(long, global = true, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Measure only this store
    #[arg(long, global = true)]
    pub(crate) backend: Option<Backend>,
    /// Seconds to wait for accepted messages to become final
    #[arg(long, global = true, default_value_t = 120.0)]
    pub(crate) patience: f64,
    /// Directory for the data; its disk is measured
    #[arg(long, global = true, default_value = "target")]
    pub(crate) work: PathBuf,
}

impl Options {
    pub(crate) fn backends(&self) -> Vec<Backend> {
        match self.backend {
            Some(one) => vec![one],
            None => vec![Backend::Sqlite, Backend::Postgres],
        }
    }

    fn window(&self) -> Duration {
        Duration::from_secs_f64(self.seconds)
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_secs_f64(self.patience)
    }

    pub(crate) fn work(&self, recipients: Recipients) -> Workload {
        Workload { idempotent: self.idempotent, ..Workload::sms(recipients, self.seed) }
    }

    pub(crate) fn closed(&self, connections: usize, recipients: Recipients) -> Plan {
        Plan { connections, pace: Pace::Closed, limit: None, work: self.work(recipients) }
    }
}

#[derive(Debug)]
pub(crate) struct Lab {
    pub(crate) options: Options,
    hello: Hello,
    pub(crate) cluster: Option<Cluster>,
    /// Last, because fields are dropped in order and it contains the cluster's state.
    pub(crate) work: TempDir,
}

impl Lab {
    pub(crate) async fn open(options: Options, root: &std::path::Path) -> Result<Self> {
        std::fs::create_dir_all(&options.work)?;
        // Absolute, because some programs change their working directory.
        let base = options.work.canonicalize()?;
        let work = tempfile::Builder::new().prefix("bench-").tempdir_in(base)?;
        let needed = options.backends().contains(&Backend::Postgres);
        let cluster = needed.then(|| Cluster::start(root, work.path())).transpose()?;
        let first = options.backends()[0];
        let setup = setup(&options, &work, cluster.as_ref(), first, Environment::Test, None);
        let bytes = response_bytes(setup, options.work(Recipients::Sweep)).await?;
        let hello = Hello::start(bytes).await?;
        Ok(Self { options, hello, cluster, work })
    }

    /// Returns the baseline's requests per second under this plan.
    pub(crate) async fn baseline(&self, plan: Plan) -> Result<f64> {
        let target = Target { addr: self.hello.addr, key: String::new() };
        let load = Load::start(target, plan);
        tokio::time::sleep(Duration::from_secs_f64(self.options.warmup)).await;
        load.open_window();
        tokio::time::sleep(self.options.window()).await;
        let outcome = load.close().await;
        ensure!(outcome.errors.is_empty(), "the baseline failed: {:?}", outcome.errors);
        Ok(outcome.rate())
    }

    /// Starts a server on fresh data.
    pub(crate) async fn session<'a>(&'a self, backend: Backend, environment: Environment, delay: Option<&'a Shim>) -> Result<Session<'a>> {
        let cluster = self.cluster.as_ref();
        let setup = setup(&self.options, &self.work, cluster, backend, environment, delay);
        let subject = Subject::start(setup).await?;
        // Lets the rest of the start finish, so that it does not count as idle memory.
        tokio::time::sleep(Duration::from_secs(1)).await;
        let idle_mb = subject.memory_mb()?.0;
        Ok(Session {
            options: &self.options,
            backend,
            subject,
            finals: match environment {
                Environment::Test | Environment::Smpp { receipts: true, .. } => &["delivered"],
                Environment::Smtp(_) | Environment::Smpp { .. } => &["sent", "delivered"],
            },
            idle_mb,
            promised: Vec::new(),
            ambiguous: 0,
            errors: 0,
            issued: 0,
            trials: Vec::new(),
        })
    }
}

/// A running server, with a record of everything sent to it.
#[derive(Debug)]
pub(crate) struct Session<'a> {
    options: &'a Options,
    pub(crate) backend: Backend,
    pub(crate) subject: Subject<'a>,
    finals: &'static [&'static str],
    pub(crate) idle_mb: f64,
    promised: Vec<Box<str>>,
    ambiguous: u64,
    errors: u64,
    issued: u64,
    trials: Vec<Trial>,
}

impl Session<'_> {
    /// Sends without measuring.
    pub(crate) async fn burst(&mut self, mut plan: Plan) -> Outcome {
        plan.work.first = self.issued;
        let mut outcome = Load::run(self.subject.target.clone(), plan).await;
        self.keep(&mut outcome);
        outcome
    }

    /// Runs the warm-up and the measured window. Reads counters under load, so that nothing settles unmeasured.
    pub(crate) async fn window(&mut self, scenario: &str, mut plan: Plan) -> Result<&mut Trial> {
        plan.work.first = self.issued;
        let load = Load::start(self.subject.target.clone(), plan);
        tokio::time::sleep(Duration::from_secs_f64(self.options.warmup)).await;
        let before = (self.subject.counters().await?, self.subject.cpu()?);
        load.open_window();
        tokio::time::sleep(self.options.window()).await;
        let after = (self.subject.counters().await?, self.subject.cpu()?);
        let mut outcome = load.close().await;
        self.keep(&mut outcome);
        let accepted = after.0.accepted - before.0.accepted;
        let settled = self.settled(&after.0) - self.settled(&before.0);
        let trial = self.trial(scenario, plan.connections, &outcome, accepted, before.1, after.1)?;
        trial.settled_share = (accepted > 0.0).then(|| settled / accepted);
        Ok(trial)
    }

    /// Sends a fixed number of messages and waits until all are final. The rate covers the time from the first 202 to the last final
    /// status.
    pub(crate) async fn end_to_end(&mut self, scenario: &str, plan: Plan) -> Result<()> {
        let before = self.subject.cpu()?;
        let outcome = self.burst(plan).await;
        let start = outcome.first_accept.context("nothing was accepted")?;
        self.settle().await?;
        let took = start.elapsed().as_secs_f64();
        let after = self.subject.cpu()?;
        let count = outcome.count as f64;
        let trial = self.trial(scenario, plan.connections, &outcome, count, before, after)?;
        trial.rate = count / took;
        Ok(())
    }

    pub(crate) fn trial(
        &mut self,
        scenario: &str,
        connections: usize,
        outcome: &Outcome,
        messages: f64,
        before: (f64, Option<f64>),
        after: (f64, Option<f64>),
    ) -> Result<&mut Trial> {
        let per_message = |seconds: f64| {
            if messages > 0.0 { seconds * 1e6 / messages } else { 0.0 }
        };
        let database = before.1.zip(after.1).map(|(before, after)| per_message(after - before));
        self.trials.push(Trial {
            scenario: scenario.to_owned(),
            backend: self.backend,
            round: 0,
            connections,
            count: outcome.count,
            rate: outcome.rate(),
            baseline: None,
            latency: Latency::of(&outcome.latency),
            settled_share: None,
            cpu_us: per_message(after.0 - before.0),
            cpu_database_us: database,
            idle_mb: self.idle_mb,
            peak_mb: self.subject.memory_mb()?.1,
            sync_ms: None,
            errors: outcome.errors.clone(),
            first_error: outcome.first_error.clone(),
            audit: Audit::default(),
        });
        Ok(self.trials.last_mut().expect("just pushed"))
    }

    fn keep(&mut self, outcome: &mut Outcome) {
        self.promised.append(&mut outcome.ids);
        self.ambiguous += outcome.ambiguous;
        self.errors += outcome.errors.values().sum::<u64>();
        self.issued += outcome.issued;
    }

    fn settled(&self, counters: &crate::subject::Counters) -> f64 {
        if self.finals.contains(&"sent") {
            // A channel with both statuses counts each message twice.
            counters.delivered.max(counters.sent)
        } else {
            counters.delivered
        }
    }

    /// Waits until all accepted messages are final or patience is over; the audit then reports what is missing.
    pub(crate) async fn settle(&self) -> Result<()> {
        let pause = Duration::from_millis(10);
        let settled = wait_until(self.options.patience(), pause, async || {
            let counters = self.subject.counters().await?;
            let promised = self.promised.len() as f64;
            Ok(self.settled(&counters) + counters.failed >= counters.accepted.max(promised))
        });
        if !settled.await? {
            eprintln!("    not all is final after {} s", self.options.patience);
        }
        Ok(())
    }

    /// Waits, audits and stops the server; returns its trials with the audit.
    pub(crate) async fn finish(mut self, round: usize, sink: Option<&Counts>) -> Result<Vec<Trial>> {
        self.settle().await?;
        let claim = Claim { ids: &self.promised, ambiguous: self.ambiguous, finals: self.finals };
        let target = &self.subject.target;
        // By the counters, all messages are final; the list must agree soon.
        let patience = self.options.patience().min(Duration::from_secs(10));
        let mut audit = audit(target, &self.subject.since, &claim, patience).await?;
        if let Some(sink) = sink {
            let end = usize::try_from(self.issued)?;
            let (lost, doubled) = sink.compare(end);
            audit.sink_lost = lost.saturating_sub(self.errors);
            audit.sink_doubled = doubled;
        }
        for trial in &mut self.trials {
            trial.round = round;
            trial.audit = audit.clone();
            tell(trial);
        }
        self.subject.stop().await?;
        Ok(self.trials)
    }
}

pub(crate) fn tell(trial: &Trial) {
    let Trial { scenario, backend, round, rate, latency, .. } = trial;
    let audit = if trial.audit.passed() { "ok" } else { "FAILED" };
    eprintln!(
        "  {scenario}, {}, round {round}: {rate:.0}/s p50 {:.2} ms p99 {:.2} ms audit {audit}",
        backend.name(),
        latency.p50_ms,
        latency.p99_ms
    );
    if let Some(error) = &trial.first_error {
        eprintln!("    {:?}, first: {error}", trial.errors);
    }
    if !trial.audit.passed() {
        eprintln!("    {:?}", trial.audit);
    }
}

fn setup<'a>(
    options: &'a Options,
    work: &'a TempDir,
    cluster: Option<&'a Cluster>,
    backend: Backend,
    environment: Environment,
    delay: Option<&'a Shim>,
) -> Setup<'a> {
    let cluster = if backend == Backend::Postgres { cluster } else { None };
    Setup { program: &options.bin, work: work.path(), cluster, environment, delay }
}

/// Returns the size of a 202's body in bytes.
async fn response_bytes(setup: Setup<'_>, work: Workload) -> Result<usize> {
    let subject = Subject::start(setup).await?;
    let mut conn = crate::http::Conn::open(subject.target.addr).await?;
    let mut body = Vec::new();
    work.write(0, &mut body);
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nHost: bench\r\n{}Content-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n",
        crate::http::bearer(&subject.target.key),
        body.len()
    );
    let reply = conn.exchange(&[head.as_bytes(), &body].concat()).await?;
    let text = String::from_utf8_lossy(reply.body);
    ensure!(reply.status == 202, "the first message: {} {text}", reply.status);
    let bytes = reply.body.len();
    drop(conn);
    subject.stop().await?;
    Ok(bytes)
}
