//! End to end: from the first 202 until all messages are final, in the sandbox and over SMTP into a counting sink.

use anyhow::Result;

use super::of;
use crate::book::{Book, Row, Trial};
use crate::lab::Lab;
use crate::load::Plan;
use crate::sink::Sink;
use crate::subject::{Backend, Environment};
use crate::workload::{Channel, Recipients};

const SANDBOX: &str = "end to end, sandbox";
const SMTP: &str = "end to end, SMTP";

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    for round in 1..=lab.options.rounds as usize {
        for backend in lab.options.backends() {
            book.trials.extend(sandbox(lab, backend, round).await?);
            book.trials.extend(smtp(lab, backend, round).await?);
        }
    }
    for backend in lab.options.backends() {
        for scenario in [SANDBOX, SMTP] {
            judge(book, scenario, backend);
        }
    }
    Ok(())
}

async fn sandbox(lab: &Lab, backend: Backend, round: usize) -> Result<Vec<Trial>> {
    let plan = plan(lab, lab.options.messages, Channel::Sms);
    let mut session = lab.session(backend, Environment::Test, None).await?;
    session.end_to_end(SANDBOX, plan).await?;
    session.finish(round, None).await
}

async fn smtp(lab: &Lab, backend: Backend, round: usize) -> Result<Vec<Trial>> {
    let sink = Sink::start().await?;
    let plan = plan(lab, lab.options.mails, Channel::Email);
    let mut session = lab.session(backend, Environment::Smtp(sink.addr), None).await?;
    session.end_to_end(SMTP, plan).await?;
    session.finish(round, Some(&sink.counts)).await
}

fn plan(lab: &Lab, count: u64, channel: Channel) -> Plan {
    let closed = lab.options.closed(lab.options.connections, Recipients::Pool(lab.options.pool));
    let mut plan = Plan { limit: Some(count), ..closed };
    plan.work.channel = channel;
    plan
}

fn judge(book: &mut Book, scenario: &str, backend: Backend) {
    let trials = of(book, scenario, backend);
    let row = |what: &str, unit, figure: fn(&Trial) -> Option<f64>| {
        let work = format!("{scenario}: {what}");
        Row::new("–", work, backend, unit, trials.iter().copied(), figure)
    };
    let rows = [
        row("rate", "messages/s", |trial| Some(trial.rate)),
        row("CPU per 1,000 messages", "ms", Trial::cpu_total_us),
        row("memory, highest", "MB", |trial| Some(trial.peak_mb)),
    ];
    book.rows.extend(rows);
}
