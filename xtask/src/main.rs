//! Checks and generated files: `cargo xtask check`, `cargo xtask generate`.

mod conformance;
mod deps;
mod generate;
mod links;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Checks and generated files of the workspace")]
struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Everything below, that every promise of docs/conformance/rows.txt has a test, and that links and anchors of documents lead somewhere.
    Check,
    /// Who depends on whom, against the table in docs/ARCHITECTURE.md.
    CheckDeps,
    /// Write the generated files anew.
    Generate,
}

fn main() -> anyhow::Result<()> {
    match Args::parse().action {
        Action::Check => {
            deps::check()?;
            conformance::check()?;
            links::check()?;
            generate::check()
        }
        Action::CheckDeps => deps::check(),
        Action::Generate => generate::write(),
    }
}
