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

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// The flags that `scripts/rustc.sh` adds to a compiler that is called with these arguments.
    fn added(args: &[&str]) -> String {
        let root = super::root::root();
        let out = Command::new(root.join("scripts/rustc.sh")).arg("echo").args(args).output().unwrap();
        String::from_utf8(out.stdout).unwrap().trim().trim_start_matches(&args.join(" ")).trim().to_owned()
    }

    #[test]
    fn only_dist_is_compiled_with_the_record() {
        let flags = added(&["--out-dir", "/x/target/dist/deps"]);
        let record = flags.split(' ').find_map(|flag| flag.strip_prefix("-Cprofile-use=")).unwrap();
        assert!(std::fs::metadata(record).unwrap().len() > 1_000_000, "{record}");
        for args in [&["--out-dir", "/x/target/release/deps"][..], &["--out-dir", "/x/target/dist/deps", "-Cprofile-generate=/x"], &["-vV"]]
        {
            assert_eq!(added(args), "");
        }
    }
}
