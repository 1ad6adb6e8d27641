//! Webhooks: three events per message, posted to a counting endpoint, from the first 202 until the last event arrives.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::of;
use crate::book::{Book, Bound, Row, Trial};
use crate::hooks::Hooks;
use crate::http::{Conn, bearer};
use crate::lab::{Lab, Session};
use crate::load::Plan;
use crate::proc::wait_until;
use crate::subject::{Backend, Environment};
use crate::workload::Recipients;

const SCENARIO: &str = "webhooks, three events a message";
const EVENTS: [&str; 3] = ["message.queued", "message.sent", "message.delivered"];

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
    let hooks = Hooks::start().await?;
    let mut session = lab.session(backend, Environment::Test, None).await?;
    subscribe(&session, &hooks, &EVENTS).await?;
    let closed = lab.options.closed(lab.options.connections, Recipients::Pool(lab.options.pool));
    let baseline = lab.baseline(closed).await?;
    let before = session.subject.cpu()?;
    let outcome = session.burst(Plan { limit: Some(lab.options.messages), ..closed }).await;
    let start = outcome.first_accept.context("nothing was accepted")?;
    let wanted = outcome.count * EVENTS.len() as u64;
    let all = wait_until(lab.options.patience(), Duration::from_millis(5), async || Ok(hooks.events() >= wanted));
    let all = all.await?;
    let took = start.elapsed().as_secs_f64();
    session.settle().await?;
    let after = session.subject.cpu()?;
    // Duplicates arrive soon after.
    tokio::time::sleep(Duration::from_millis(500)).await;
    if !all {
        eprintln!("    {} of {wanted} events came in time", hooks.events());
    }
    let trial = session.trial(SCENARIO, closed.connections, &outcome, outcome.count as f64, before, after)?;
    trial.rate = hooks.events() as f64 / took;
    let mut trials = session.finish(round, None).await?;
    for trial in &mut trials {
        trial.audit.sink_lost = wanted.saturating_sub(hooks.events());
        trial.audit.sink_doubled = hooks.surplus();
        trial.baseline = Some(baseline);
    }
    Ok(trials)
}

/// Sets the default sender's webhook.
pub(super) async fn subscribe(session: &Session<'_>, hooks: &Hooks, events: &[&str]) -> Result<()> {
    let target = &session.subject.target;
    let mut conn = Conn::open(target.addr).await?;
    let reply = conn.get("/v1/senders", &target.key).await?;
    ensure!(reply.status == 200, "GET /v1/senders: {}", reply.status);
    let senders: Value = serde_json::from_slice(reply.body)?;
    let items = senders["items"].as_array().context("no senders")?;
    let sender = items.iter().find(|s| s["isDefault"] == true).and_then(|s| s["id"].as_str()).context("no default sender")?;
    let body = json!({"webhookUrl": format!("http://{}/", hooks.addr), "webhookEvents": events}).to_string();
    let auth = bearer(&target.key);
    let request = format!(
        "PATCH /v1/senders/{sender} HTTP/1.1\r\nHost: bench\r\n{auth}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let reply = conn.exchange(request.as_bytes()).await?;
    ensure!(reply.status == 200, "PATCH /v1/senders: {} {}", reply.status, String::from_utf8_lossy(reply.body));
    Ok(())
}

fn judge(book: &mut Book, backend: Backend) {
    let trials = of(book, SCENARIO, backend);
    let row = |goal, what: &str, unit, figure: fn(&Trial) -> Option<f64>| {
        Row::new(goal, format!("{SCENARIO}: {what}"), backend, unit, trials.iter().copied(), figure)
    };
    let (required, stretch) = if backend == Backend::Postgres { (0.15, 0.22) } else { (0.22, 0.28) };
    let rows = [
        // svix-server is in no package registry: measured separately, it delivers 0.009 of the baseline's rate.
        row("3", "deliveries / requests of hello", "×", Trial::ratio).asks(Bound::AtLeast(required), Some(Bound::AtLeast(stretch))),
        row("–", "deliveries", "deliveries/s", |t| Some(t.rate)),
        row("–", "CPU per 1,000 messages", "ms", Trial::cpu_total_us),
        row("–", "memory, highest", "MB", |t| Some(t.peak_mb)),
    ];
    book.rows.extend(rows);
}
