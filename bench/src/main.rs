//! Measures nuncio through its HTTP API and command line, compared with a baseline in the same run. See `bench/README.md`.

mod audit;
mod book;
mod counts;
mod hello;
mod hooks;
mod http;
mod kannel;
mod lab;
mod load;
mod postgres;
mod proc;
mod report;
mod scenarios;
mod shim;
mod sink;
mod smsc;
mod stats;
mod subject;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Parser, Subcommand};
use tokio::signal::unix::{SignalKind, signal};

use crate::book::Book;
use crate::lab::{Lab, Options};
use crate::proc::Machine;
use crate::report::Context;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measures nuncio beside a baseline and audits that nothing was lost or doubled
#[derive(Parser, Debug)]
#[command(name = "nuncio-bench")]
struct Arguments {
    #[command(subcommand)]
    what: What,
    #[command(flatten)]
    options: Options,
    /// Where to write the Markdown; `all` writes docs/benchmarks.md, the others print it
    #[arg(long, global = true)]
    report: Option<PathBuf>,
    /// Where to write the JSON
    #[arg(long, global = true, default_value = "target/bench.json")]
    json: PathBuf,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Every scenario
    All,
    /// Durable accepts at saturation: rate beside the baseline, backlog, memory
    Accept,
    /// One client alone, and an open loop at 60 % of the saturated rate
    Latency,
    /// From the first 202 until all is settled: sandbox and SMTP
    E2e,
    /// Text messages over SMPP, beside Kannel
    Smpp,
    /// What is left of the rate when each sync takes 5 ms longer
    SlowDisk,
    /// Three events a message, posted to a counting endpoint
    Webhooks,
    /// A broadcast to many: import, sending, memory, and a neighbour's one-time passwords meanwhile
    Broadcast,
    /// The same work before and after a million messages to a million contacts
    Stored,
    /// The baseline: serve bare axum until killed
    Hello(hello::Args),
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    if let What::Hello(args) = arguments.what {
        hello::serve(args).await?;
        return Ok(ExitCode::SUCCESS);
    }
    // If dropped early, it still stops the processes that it started.
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        done = measure(arguments) => done,
        _ = term.recv() => bail!("terminated"),
        _ = tokio::signal::ctrl_c() => bail!("interrupted"),
    }
}

async fn measure(arguments: Arguments) -> Result<ExitCode> {
    let Arguments { what, options, report, json } = arguments;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the checkout")?;
    let mut versions = vec![subject::version(&options.bin).await?];
    fs::create_dir_all(&options.work)?;
    let machine = Machine::look(root, &options.work);
    let lab = Lab::open(options.clone(), root).await?;
    if let Some(cluster) = &lab.cluster {
        versions.push(format!("PostgreSQL {}", cluster.version()?));
    }
    let book = run(&what, &lab).await;

    let command = std::env::args().skip(1).collect::<Vec<_>>().join(" ");
    let command = format!("cargo run --release -p nuncio-bench -- {command}");
    let context = Context { machine, versions, command, options };
    let markdown = report::markdown(&book, &context);
    let whole = matches!(what, What::All).then(|| root.join("docs/benchmarks.md"));
    match report.or(whole) {
        Some(path) => write(&path, &markdown)?,
        None => println!("{markdown}"),
    }
    write(&json, &format!("{:#}\n", report::json(&book, &context)))?;
    Ok(if book.sound() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the scenarios; records the error of one that fails and continues.
async fn run(what: &What, lab: &Lab) -> Book {
    let mut book = Book::default();
    let wants = |one: What| matches!(what, What::All) || std::mem::discriminant(what) == std::mem::discriminant(&one);
    if wants(What::Accept) {
        let result = scenarios::accept::run(lab, &mut book).await;
        note(&mut book, "accept", result);
    }
    if wants(What::Latency) {
        let result = scenarios::latency::run(lab, &mut book).await;
        note(&mut book, "latency", result);
    }
    if wants(What::E2e) {
        let result = scenarios::end_to_end::run(lab, &mut book).await;
        note(&mut book, "e2e", result);
    }
    if wants(What::Smpp) {
        let result = scenarios::smpp::run(lab, &mut book).await;
        note(&mut book, "smpp", result);
    }
    if wants(What::SlowDisk) {
        let result = scenarios::slow_disk::run(lab, &mut book).await;
        note(&mut book, "slow-disk", result);
    }
    if wants(What::Webhooks) {
        let result = scenarios::webhooks::run(lab, &mut book).await;
        note(&mut book, "webhooks", result);
    }
    if wants(What::Broadcast) {
        let result = scenarios::broadcast::run(lab, &mut book).await;
        note(&mut book, "broadcast", result);
    }
    if wants(What::Stored) {
        let result = scenarios::stored::run(lab, &mut book).await;
        note(&mut book, "stored", result);
    }
    book
}

fn note(book: &mut Book, scenario: &str, result: Result<()>) {
    if let Err(e) = result {
        eprintln!("{scenario}: {e:#}");
        book.failures.push(format!("{scenario}: {e:#}"));
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, text).with_context(|| format!("writing {}", path.display()))?;
    eprintln!("wrote {}", path.display());
    Ok(())
}
