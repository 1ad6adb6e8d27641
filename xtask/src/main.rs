//! Checks and generated files: `cargo xtask check`, `cargo xtask generate`.

mod conformance;
mod deps;
mod generate;
mod links;
mod root;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Checks and generated files of the workspace")]
struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// All checks below; every promise of docs/conformance/rows.txt has a test; links and anchors of documents are valid.
    Check,
    /// Check dependencies against the table in docs/ARCHITECTURE.md.
    CheckDeps,
    /// Regenerate the generated files.
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
