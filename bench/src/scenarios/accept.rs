//! Durable accepts at saturation, compared with the baseline.

use anyhow::Result;

use super::{BATCH, batched, of};
use crate::book::{Book, Bound, Row, Trial};
use crate::lab::Lab;
use crate::load::Plan;
use crate::subject::{Backend, Environment};
use crate::workload::Recipients;

/// Pool size of the variant with known recipients.
const KNOWN: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
enum Variant {
    Pool,
    New,
    Known,
    Batched,
}

const VARIANTS: [Variant; 4] = [Variant::Pool, Variant::New, Variant::Known, Variant::Batched];

impl Variant {
    fn name(self, pool: u64) -> String {
        match self {
            Self::Pool => format!("accept, recipients from a pool of {pool}"),
            Self::New => "accept, all-new recipients".to_owned(),
            Self::Known => format!("accept, {KNOWN} known recipients"),
            Self::Batched => format!("accept, {BATCH} messages in a request, recipients from a pool of {pool}"),
        }
    }

    fn recipients(self, pool: u64) -> Recipients {
        match self {
            Self::Pool | Self::Batched => Recipients::Pool(pool),
            Self::New => Recipients::New,
            Self::Known => Recipients::Pool(KNOWN),
        }
    }
}

pub(crate) async fn run(lab: &Lab, book: &mut Book) -> Result<()> {
    for round in 1..=lab.options.rounds as usize {
        for backend in lab.options.backends() {
            for variant in VARIANTS {
                book.trials.extend(pair(lab, variant, backend, round).await?);
            }
        }
    }
    for backend in lab.options.backends() {
        judge(lab, book, backend);
    }
    Ok(())
}

/// Runs baseline and nuncio in succession, alternating the order.
async fn pair(lab: &Lab, variant: Variant, backend: Backend, round: usize) -> Result<Vec<Trial>> {
    let pool = lab.options.pool;
    let plan = lab.options.closed(lab.options.connections, variant.recipients(pool));
    let early = if round % 2 == 1 { Some(lab.baseline(plan).await?) } else { None };
    let mut session = lab.session(backend, Environment::Test, None).await?;
    if let Variant::Known = variant {
        let work = lab.options.work(Recipients::Sweep);
        session.burst(Plan { limit: Some(KNOWN), work, ..plan }).await;
    }
    let load = if let Variant::Batched = variant { batched(plan) } else { plan };
    session.window(&variant.name(pool), load).await?;
    let mut trials = session.finish(round, None).await?;
    let baseline = match early {
        Some(rate) => rate,
        None => lab.baseline(plan).await?,
    };
    for trial in &mut trials {
        trial.baseline = Some(baseline);
    }
    Ok(trials)
}

fn judge(lab: &Lab, book: &mut Book, backend: Backend) {
    let mut rows = Vec::new();
    for variant in VARIANTS {
        let name = variant.name(lab.options.pool);
        let (goal, required, stretch) = match (variant, backend) {
            (Variant::Batched, _) => ("12", 0.5, 1.0),
            (_, Backend::Postgres) => ("1", 0.16, 0.25),
            _ => ("1", 0.20, 0.25),
        };
        let ratio = Row::new(goal, format!("{name} / hello"), backend, "×", of(book, &name, backend), Trial::ratio);
        rows.push(ratio.asks(Bound::AtLeast(required), Some(Bound::AtLeast(stretch))));
    }
    let single = VARIANTS.into_iter().filter(|variant| !matches!(variant, Variant::Batched));
    let all: Vec<&Trial> = single.flat_map(|variant| of(book, &variant.name(lab.options.pool), backend)).collect();
    let row = |goal, work: &str, unit, figure: fn(&Trial) -> Option<f64>| Row::new(goal, work, backend, unit, all.iter().copied(), figure);
    rows.extend([
        row("6", "delivered / accepted while the load lasts", "", |trial| trial.settled_share).asks(Bound::AtLeast(0.98), None),
        row("9", "memory, idle", "MB", |trial| Some(trial.idle_mb)).asks(Bound::AtMost(40.0), Some(Bound::AtMost(30.0))),
        row("9", "memory, highest under load", "MB", |trial| Some(trial.peak_mb)).asks(Bound::AtMost(100.0), Some(Bound::AtMost(80.0))),
        row("–", "accept: rate", "messages/s", |trial| Some(trial.rate)),
        row("–", "accept: CPU per 1,000 messages", "ms", Trial::cpu_total_us),
    ]);
    book.rows.extend(rows);
}
