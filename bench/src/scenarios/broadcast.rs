//! A large broadcast: import rate, send rate compared with single messages to the same SMSC, memory, and the latency of another project's
//! one-time passwords meanwhile.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use hdrhistogram::Histogram;
use serde_json::{Value, json};
use tokio::process::Command;

use super::of;
use crate::audit::Audit;
use crate::book::{Book, Bound, Row, Trial};
use crate::http::{Conn, bearer};
use crate::lab::{Lab, Session};
use crate::load::Plan;
use crate::proc::wait_until;
use crate::smsc::Smsc;
use crate::stats::{self, Latency};
use crate::subject::{Backend, Environment};
use crate::workload::{POOL, Recipients, TOKEN, TOKEN_DIGITS};

const SMPP: &str = "broadcast over SMPP";
const SANDBOX: &str = "broadcast in the sandbox";
const PAUSE: Duration = Duration::from_millis(5);
/// Interval of one-time passwords.
const BETWEEN: Duration = Duration::from_millis(20);
/// One-time passwords sent without other load.
const QUIET: u64 = 300;
/// Interval of measuring memory and progress.
const LOOK: Duration = Duration::from_millis(250);

/// Results of a round, in addition to its trial.
struct Round {
    trial: Trial,
    /// Imported rows per second.
    import: f64,
    /// Rate of single messages to the same SMSC.
    single: Option<f64>,
    /// 99th percentiles of a one-time password in milliseconds: without load, and during the broadcast.
    passwords: Option<(f64, f64)>,
    /// Memory after a tenth of the recipients.
    early_mb: f64,
}

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    let mut rounds = Vec::new();
    for round in 1..=lab.options.rounds as usize {
        for backend in lab.options.backends() {
            rounds.push(smpp(lab, backend, round).await?);
            rounds.push(sandbox(lab, backend, round).await?);
        }
    }
    book.trials.extend(rounds.iter().map(|round| round.trial.clone()));
    for backend in lab.options.backends() {
        judge(lab, book, &rounds, backend);
    }
    Ok(())
}

async fn smpp(lab: &Lab, backend: Backend, round: usize) -> Result<Round> {
    let (smsc, other) = (Smsc::start().await?, Smsc::start().await?);
    let (binds, window) = (lab.options.binds, lab.options.window);
    let mut session = lab.session(backend, Environment::Smpp { addr: smsc.addr, binds, window, receipts: false }, None).await?;
    let key = session.subject.neighbour(&lab.options.bin, other.addr).await?;
    let bound = wait_until(Duration::from_secs(10), PAUSE, async || Ok(smsc.bound() >= binds && other.bound() >= 1)).await?;
    ensure!(bound, "nuncio does not bind:\n{}", session.subject.log_tail());

    let mut quiet = Passwords::new(&session, &key, &other, 0).await?;
    for _ in 0..QUIET {
        quiet.next().await?;
    }
    let closed = lab.options.closed(lab.options.connections, Recipients::Pool(lab.options.pool));
    let outcome = session.burst(Plan { limit: Some(lab.options.texts), ..closed }).await;
    let start = outcome.first_accept.context("nothing was accepted")?;
    ensure!(
        wait_until(lab.options.patience(), PAUSE, async || Ok(smsc.counts.different() >= outcome.count)).await?,
        "not all single messages came"
    );
    let single = outcome.count as f64 / start.elapsed().as_secs_f64();
    session.settle().await?;

    let broadcast = Broadcast::import(lab, &session, outcome.count).await?;
    let mut meanwhile = Passwords::new(&session, &key, &other, QUIET).await?;
    let before = session.subject.cpu()?;
    broadcast.send(lab, &session).await?;
    let mut early_mb = 0.0;
    let mut began: Option<Instant> = None;
    let wanted = outcome.count + lab.options.recipients;
    let patience = Instant::now() + lab.options.patience();
    while smsc.counts.different() < wanted && Instant::now() < patience {
        let came = smsc.counts.different() - outcome.count;
        if came > 0 {
            began.get_or_insert_with(Instant::now);
        }
        if came < lab.options.recipients / 10 {
            early_mb = session.subject.memory_mb()?.0;
        }
        meanwhile.next().await?;
    }
    let took = began.context("the broadcast did not begin")?.elapsed();
    broadcast.completed(lab, &session).await?;
    let after = session.subject.cpu()?;
    let (lost, doubled) = smsc.counts.compare(usize::try_from(wanted)?);
    let passwords = (Latency::of(&quiet.latency).p99_ms, Latency::of(&meanwhile.latency).p99_ms);
    let mut trial = trial(&mut session, SMPP, lab.options.recipients, took, before, after)?;
    trial.latency = Latency::of(&meanwhile.latency);
    trial.audit = Audit { promised: wanted, listed: wanted, sink_lost: lost, sink_doubled: doubled, ..Audit::default() };
    let found =
        Round { trial: told(trial, round), import: broadcast.rows_per_second, single: Some(single), passwords: Some(passwords), early_mb };
    session.subject.stop().await?;
    Ok(found)
}

async fn sandbox(lab: &Lab, backend: Backend, round: usize) -> Result<Round> {
    let mut session = lab.session(backend, Environment::Test, None).await?;
    let broadcast = Broadcast::import(lab, &session, 0).await?;
    let before = session.subject.cpu()?;
    let start = Instant::now();
    broadcast.send(lab, &session).await?;
    let mut early_mb = 0.0;
    let done = wait_until(lab.options.patience(), LOOK, async || {
        let progress = broadcast.get(&session, "/progress").await?;
        if progress["percentComplete"].as_u64().unwrap_or_default() < 10 {
            early_mb = session.subject.memory_mb()?.0;
        }
        Ok(progress["status"] == "completed")
    });
    ensure!(done.await?, "the broadcast is not through in time");
    let took = start.elapsed();
    let after = session.subject.cpu()?;
    let progress = broadcast.get(&session, "/progress").await?;
    let delivered = progress["delivered"].as_u64().unwrap_or_default();
    let mut trial = trial(&mut session, SANDBOX, lab.options.recipients, took, before, after)?;
    trial.audit =
        Audit { promised: lab.options.recipients, listed: delivered, lost: lab.options.recipients - delivered, ..Audit::default() };
    let found = Round { trial: told(trial, round), import: broadcast.rows_per_second, single: None, passwords: None, early_mb };
    session.subject.stop().await?;
    Ok(found)
}

fn told(trial: Trial, round: usize) -> Trial {
    let trial = Trial { round, ..trial };
    crate::lab::tell(&trial);
    trial
}

fn trial(
    session: &mut Session<'_>,
    scenario: &str,
    count: u64,
    took: Duration,
    before: (f64, Option<f64>),
    after: (f64, Option<f64>),
) -> Result<Trial> {
    let per_message = |seconds: f64| seconds * 1e6 / count as f64;
    Ok(Trial {
        scenario: scenario.to_owned(),
        backend: session.backend,
        round: 0,
        connections: 1,
        count,
        rate: count as f64 / took.as_secs_f64(),
        baseline: None,
        latency: Latency::default(),
        settled_share: None,
        cpu_us: per_message(after.0 - before.0),
        cpu_database_us: before.1.zip(after.1).map(|(before, after)| per_message(after - before)),
        idle_mb: session.idle_mb,
        peak_mb: session.subject.memory_mb()?.1,
        sync_ms: None,
        errors: Default::default(),
        first_error: None,
        audit: Audit::default(),
    })
}

/// A draft with its recipients.
struct Broadcast {
    id: String,
    rows_per_second: f64,
}

impl Broadcast {
    /// Creates a draft and imports a file of recipients, numbered from `first`, with the command line.
    async fn import(lab: &Lab, session: &Session<'_>, first: u64) -> Result<Self> {
        let text = format!("Your parcel is on its way and arrives today. {TOKEN}{{{{n}}}}");
        let draft = nuncio(lab, session, &["create", "--name", "bench", "--channel", "sms", "--text", &text]).await?;
        let id = draft["id"].as_str().context("no id")?.to_owned();
        let mut file = "phone,n\n".to_owned();
        for n in 0..lab.options.recipients {
            writeln!(file, "+{},{:0w$}", POOL + n, first + n, w = TOKEN_DIGITS)?;
        }
        let path = session.subject.data.path().join("recipients.csv");
        std::fs::write(&path, file)?;
        let start = Instant::now();
        let added = nuncio(lab, session, &["import", &id, &path.to_string_lossy()]).await?;
        let rows_per_second = lab.options.recipients as f64 / start.elapsed().as_secs_f64();
        ensure!(added["added"].as_u64() == Some(lab.options.recipients), "the import: {added}");
        Ok(Self { id, rows_per_second })
    }

    /// Submits it, and waits until it passes the review.
    async fn send(&self, lab: &Lab, session: &Session<'_>) -> Result<()> {
        nuncio(lab, session, &["send", &self.id]).await?;
        let begun = wait_until(lab.options.patience(), PAUSE, async || {
            let broadcast = self.get(session, "").await?["broadcast"].take();
            ensure!(broadcast["status"] != "rejected", "the review: {}", broadcast["reviewResult"]);
            Ok(matches!(broadcast["status"].as_str(), Some("sending" | "completed")))
        });
        ensure!(begun.await?, "the broadcast does not begin");
        Ok(())
    }

    async fn completed(&self, lab: &Lab, session: &Session<'_>) -> Result<()> {
        let done = wait_until(lab.options.patience(), LOOK, async || Ok(self.get(session, "/progress").await?["pending"] == 0));
        ensure!(done.await?, "some recipients are still pending");
        Ok(())
    }

    async fn get(&self, session: &Session<'_>, below: &str) -> Result<Value> {
        let target = &session.subject.target;
        let mut conn = Conn::open(target.addr).await?;
        let reply = conn.get(&format!("/v1/broadcasts/{}{below}", self.id), &target.key).await?;
        ensure!(reply.status == 200, "GET broadcast: {}", reply.status);
        Ok(serde_json::from_slice(reply.body)?)
    }
}

/// `nuncio broadcasts …`, as JSON.
async fn nuncio(lab: &Lab, session: &Session<'_>, args: &[&str]) -> Result<Value> {
    let target = &session.subject.target;
    let mut command = Command::new(&lab.options.bin);
    command.arg("broadcasts").args(args).arg("--json");
    command.env("NUNCIO_SERVER", format!("http://{}", target.addr)).env("NUNCIO_API_KEY", &target.key);
    let output = command.output().await?;
    ensure!(output.status.success(), "nuncio broadcasts {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// One-time passwords of another project, one after the other.
struct Passwords<'a> {
    conn: Conn,
    key: &'a str,
    smsc: &'a Smsc,
    sent: u64,
    /// From the request to the SMSC.
    latency: Histogram<u64>,
}

impl<'a> Passwords<'a> {
    async fn new(session: &Session<'_>, key: &'a str, smsc: &'a Smsc, sent: u64) -> Result<Self> {
        Ok(Self { conn: Conn::open(session.subject.target.addr).await?, key, smsc, sent, latency: stats::histogram() })
    }

    /// Sends one, and waits until it arrives.
    async fn next(&mut self) -> Result<()> {
        let text = format!("Your code is {:06}. {TOKEN}{:0w$}", self.sent % 1_000_000, self.sent, w = TOKEN_DIGITS);
        let body = json!({"to": "+34600111222", "channel": "sms", "text": text}).to_string();
        let request = format!(
            "POST /v1/messages HTTP/1.1\r\nHost: bench\r\n{}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            bearer(self.key),
            body.len()
        );
        let start = Instant::now();
        let status = self.conn.exchange(request.as_bytes()).await?.status;
        ensure!(status == 202, "a one-time password: {status}");
        self.sent += 1;
        while self.smsc.counts.different() < self.sent {
            ensure!(start.elapsed() < Duration::from_secs(30), "a one-time password did not come");
            tokio::time::sleep(Duration::from_micros(200)).await;
        }
        stats::record(&mut self.latency, start.elapsed());
        tokio::time::sleep(BETWEEN).await;
        Ok(())
    }
}

fn judge(lab: &Lab, book: &mut Book, rounds: &[Round], backend: Backend) {
    for scenario in [SMPP, SANDBOX] {
        let of_it: Vec<&Round> = rounds.iter().filter(|round| round.trial.backend == backend && round.trial.scenario == scenario).collect();
        let work = |what: &str| format!("{scenario}, {} recipients: {what}", lab.options.recipients);
        let row = |goal, what: &str, unit, figure: fn(&Round) -> Option<f64>| Row {
            samples: of_it.iter().filter_map(|round| figure(round)).collect(),
            ..Row::new(goal, work(what), backend, unit, of(book, scenario, backend), |_| None)
        };
        let mut rows = vec![
            row("7", "import", "rows/s", |round| Some(round.import)).asks(Bound::AtLeast(50_000.0), None),
            row("–", "rate", "messages/s", |round| Some(round.trial.rate)),
            row("–", "CPU per 1,000 messages", "ms", |round| round.trial.cpu_total_us()),
            row("–", "memory after a tenth", "MB", |round| Some(round.early_mb)),
            row("–", "memory, highest", "MB", |round| Some(round.trial.peak_mb)),
        ];
        if scenario == SMPP {
            let beside = row("7", "rate / single messages over HTTP", "×", |round| Some(round.trial.rate / round.single?));
            rows.push(beside.asks(Bound::AtLeast(0.7), Some(Bound::AtLeast(0.9))));
            let most = row("", "", "", |round| round.passwords.map(|(quiet, _)| (2.0 * quiet).max(quiet + 10.0))).samples;
            let most = crate::stats::Spread::of(&most).map_or(0.0, |spread| spread.median);
            let meanwhile =
                row("10", "p99 of another project's one-time password", "ms", |round| round.passwords.map(|(_, meanwhile)| meanwhile));
            rows.push(meanwhile.asks(Bound::AtMost(most), None));
            rows.push(row("–", "the same before the broadcast", "ms", |round| round.passwords.map(|(quiet, _)| quiet)));
        }
        book.rows.extend(rows);
    }
}
