//! Writes the report as Markdown and JSON. It shows every run.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::book::{Book, Bound, Row, Trial, Verdict};
use crate::lab::Options;
use crate::proc::Machine;
use crate::stats::Spread;
use crate::subject::Backend;

/// Environment of the measurements.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) machine: Machine,
    /// Versions of nuncio and, if used, PostgreSQL.
    pub(crate) versions: Vec<String>,
    pub(crate) command: String,
    pub(crate) options: Options,
}

/// Goals that need other programs or more time.
const ELSEWHERE: &str = "The hour-long part of goal 9 is not measured by this program.";

pub(crate) fn markdown(book: &Book, context: &Context) -> String {
    let mut out = String::from("# Benchmarks\n\n");
    out.push_str(
        "Written by `nuncio-bench`, see [bench/README.md](../bench/README.md) for the method.\n\
         Figures of this machine mean little elsewhere; the ratios were taken side by side in one run.\n\n",
    );
    machine(&mut out, context);
    verdict(&mut out, book);
    rows(&mut out, &book.rows);
    for note in &book.notes {
        let _ = write!(out, "\n{note}\n");
    }
    let _ = write!(out, "\n{ELSEWHERE}\n");
    failures(&mut out, book);
    runs(&mut out, &book.trials);
    audits(&mut out, &book.trials);
    out
}

fn machine(out: &mut String, context: &Context) {
    let Context { machine, versions, command, options } = context;
    let lines = [
        ("Date", machine.date.clone()),
        ("Commit", machine.commit.clone()),
        ("Versions", versions.join(", ")),
        ("Processor", format!("{} cores, {}", machine.cores, machine.model)),
        ("Memory", format!("{:.0} GB", machine.memory_gb)),
        ("Kernel", machine.kernel.clone()),
        ("File system of the data", machine.file_system.clone()),
        ("Load before (1, 5, 15 min)", machine.load_at_start.clone()),
        ("Command", format!("`{command}`")),
        ("Rounds", format!("{} of {} s", options.rounds, options.seconds)),
    ];
    out.push_str("| | |\n|---|---|\n");
    for (name, value) in lines {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    out.push_str(
        "\nLoad generator, baseline, server, database and sink share the cores. \
         Durability is on: SQLite `synchronous=FULL`, PostgreSQL `fsync=on`.\n",
    );
    if options.rounds < 3 {
        out.push_str("\n**Fewer than three rounds: no figure to rely on.**\n");
    }
}

fn verdict(out: &mut String, book: &Book) {
    let asked = book.rows.iter().filter(|row| row.required.is_some());
    let verdicts: Vec<Verdict> = asked.map(Row::verdict).collect();
    let count = |verdict: Verdict| verdicts.iter().filter(|one| **one == verdict).count();
    let (stretch, met) = (count(Verdict::Stretch), count(Verdict::Met));
    let missed = verdicts.len() - stretch - met;
    let audit = if book.sound() { "every audit passed" } else { "**NOT every run was sound**" };
    let _ = write!(
        out,
        "\n## Result\n\n{} lines with a goal: {} met, {stretch} of them with the stretch goal; \
         {missed} missed; {audit}.\n\n",
        verdicts.len(),
        stretch + met
    );
}

fn rows(out: &mut String, rows: &[Row]) {
    out.push_str(
        "| # | work | store | required | stretch | measured: median (min–max) | verdict |\n\
         |---|---|---|---|---|---|---|\n",
    );
    let mut rows: Vec<&Row> = rows.iter().collect();
    let rank = |row: &Row| {
        let digits: String = row.goal.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().unwrap_or(u32::MAX)
    };
    rows.sort_by_key(|row| (rank(row), row.goal));
    for row in rows {
        let measured = Spread::of(&row.samples).map_or_else(
            || "–".to_owned(),
            |s| {
                let (median, min, max) = (figure(s.median), figure(s.min), figure(s.max));
                format!("{median} ({min}–{max}) {}", row.unit)
            },
        );
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} | {} |",
            row.goal,
            row.work,
            row.backend.name(),
            bound(row.required),
            bound(row.stretch),
            measured.trim(),
            word(row.verdict()),
        );
    }
}

fn bound(bound: Option<Bound>) -> String {
    match bound {
        None => "–".to_owned(),
        Some(Bound::AtLeast(value)) => format!("≥ {}", figure(value)),
        Some(Bound::AtMost(value)) => format!("≤ {}", figure(value)),
    }
}

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Stretch => "met, stretch too",
        Verdict::Met => "met",
        Verdict::Missed => "**missed**",
        Verdict::Unclean => "**void**: errors or a failed audit",
        Verdict::NotMeasured => "**not measured**",
        Verdict::Informative => "–",
    }
}

/// Formats three significant digits; whole numbers from 100 on.
fn figure(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

fn failures(out: &mut String, book: &Book) {
    if book.failures.is_empty() {
        return;
    }
    out.push_str("\n## What could not be measured\n\n");
    for failure in &book.failures {
        let _ = writeln!(out, "- {}", failure.replace('\n', "\n  "));
    }
}

fn runs(out: &mut String, trials: &[Trial]) {
    out.push_str(
        "\n## Every run\n\nRates a second; latencies in ms; CPU in ms per 1,000 messages, server + database; \
         memory in MB (10^6 bytes) of the server, idle and highest since its start. An open loop's latency \
         counts from when the request should have started.\n\n\
         | scenario | store | round | conns | rate | beside | p50 | p99 | max | settled | CPU | idle | highest | sync | errors | audit |\n\
         |---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n",
    );
    let or_dash = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), figure);
    for t in trials {
        let cpu = match (t.backend, t.cpu_database_us) {
            (Backend::Postgres, Some(database)) => format!("{} + {}", figure(t.cpu_us), figure(database)),
            (Backend::Postgres, None) => format!("{} + ?", figure(t.cpu_us)),
            _ => figure(t.cpu_us),
        };
        let errors: Vec<String> = t.errors.iter().map(|(kind, n)| format!("{n} × {kind}")).collect();
        let cells = [
            t.scenario.clone(),
            t.backend.name().to_owned(),
            t.round.to_string(),
            t.connections.to_string(),
            figure(t.rate),
            or_dash(t.baseline),
            figure(t.latency.p50_ms),
            figure(t.latency.p99_ms),
            figure(t.latency.max_ms),
            or_dash(t.settled_share),
            cpu,
            figure(t.idle_mb),
            figure(t.peak_mb),
            or_dash(t.sync_ms),
            if errors.is_empty() { "0".to_owned() } else { errors.join(", ") },
            if t.audit.passed() { format!("{} passed", t.audit.promised) } else { "**FAILED**".to_owned() },
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
}

fn audits(out: &mut String, trials: &[Trial]) {
    out.push_str(
        "\n## Audits\n\nAfter each run everything accepted had to be final, and the server's list of messages was \
         compared with the ids that the clients got (how many, stands beside each run; runs against one server \
         are audited together); over SMTP and SMPP also what the sink received. \
         Of Kannel, which lists nothing, only that. A failed audit fails the program.\n",
    );
    for trial in trials.iter().filter(|trial| !trial.audit.passed()) {
        let _ = write!(out, "\n- {}, {}, round {}: {:?}", trial.scenario, trial.backend.name(), trial.round, trial.audit);
    }
}

/// Returns the content of the Markdown as JSON, with the samples.
pub(crate) fn json(book: &Book, context: &Context) -> Value {
    let rows: Vec<Value> = book
        .rows
        .iter()
        .map(|row| {
            let mut value = json!(row);
            value["spread"] = json!(Spread::of(&row.samples));
            value["verdict"] = json!(row.verdict());
            value
        })
        .collect();
    json!({
        "machine": context.machine,
        "versions": context.versions,
        "command": context.command,
        "options": context.options,
        "sound": book.sound(),
        "rows": rows,
        "trials": book.trials,
        "notes": book.notes,
        "failures": book.failures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::tests::trial;

    #[test]
    fn figures_keep_three_digits() {
        let figures = [0.254_9, 4.321, 43.21, 432.1, 43210.0].map(figure);
        assert_eq!(figures, ["0.255", "4.32", "43.2", "432", "43210"]);
    }

    #[test]
    fn lines_are_sorted_by_goal_and_say_what_was_missed() {
        let trials = [trial(10.0), trial(12.0), trial(11.0)];
        let row = |goal| Row::new(goal, "work", Backend::Sqlite, "×", &trials, Trial::ratio).asks(Bound::AtLeast(0.15), None);
        let mut out = String::new();
        rows(&mut out, &[row("–"), row("11"), row("1b"), row("1")]);
        let goals: Vec<&str> = out.lines().skip(2).filter_map(|l| l.split(' ').nth(1)).collect();
        assert_eq!(goals, ["1", "1b", "11", "–"]);
        assert!(out.contains("| ≥ 0.150 | – | 0.110 (0.100–0.120) × | **missed** |"), "{out}");
    }

    #[test]
    fn a_failed_audit_is_shown_in_full() {
        let mut bad = trial(1.0);
        bad.audit.lost = 3;
        let mut out = String::new();
        runs(&mut out, std::slice::from_ref(&bad));
        audits(&mut out, &[bad]);
        assert!(out.contains("**FAILED**") && out.contains("lost: 3"), "{out}");
    }
}
