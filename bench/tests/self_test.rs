//! Runs the benchmark against a stand-in: it measures and reports, and each fault of the server makes it fail.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

#[derive(Debug)]
struct Run {
    output: Output,
    json: Value,
    _dir: TempDir,
}

/// Returns the path of the stand-in. Cargo builds examples next to the tests, but does not provide their path.
fn stand_in() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let program = exe.parent().and_then(Path::parent).unwrap().join("examples/stand_in");
    assert!(program.exists(), "{} is built by cargo test", program.display());
    program
}

fn bench(args: &[&str], fault: &str) -> Run {
    let dir = tempfile::tempdir().unwrap();
    let json = dir.path().join("bench.json");
    let output = Command::new(env!("CARGO_BIN_EXE_nuncio-bench"))
        .args(args)
        .args(["--backend", "sqlite", "--rounds", "1", "--seconds", "0.3", "--warmup", "0.1"])
        .args([
            "--connections", "4", "--messages", "200", "--mails", "50", "--texts", "100", "--binds", "1", "--patience", "1", "--stored",
            "300",
        ])
        .arg("--bin")
        .arg(stand_in())
        .arg("--work")
        .arg(dir.path())
        .arg("--json")
        .arg(&json)
        .env("STAND_IN_FAULT", fault)
        .output()
        .unwrap();
    let text = std::fs::read_to_string(json).unwrap_or_else(|e| panic!("{e}: {output:?}"));
    Run { output, json: serde_json::from_str(&text).unwrap(), _dir: dir }
}

fn audit<'a>(run: &'a Run, count: &str) -> Vec<&'a Value> {
    let trials = run.json["trials"].as_array().unwrap();
    trials.iter().map(|trial| &trial["audit"][count]).collect()
}

#[test]
fn a_sound_server_is_measured_in_every_scenario() {
    for (what, goals) in [
        ("accept", &["1", "1", "1", "12", "6", "9", "9", "–", "–"][..]),
        ("latency", &["1b", "5", "–"]),
        ("e2e", &["–", "–", "–", "–", "–", "–"]),
        ("slow-disk", &["11"]),
        ("stored", &["8", "8"]),
    ] {
        let run = bench(&[what, "--idempotent"], "");
        assert!(run.output.status.success(), "{what}: {:?}", run.output);
        let rows = run.json["rows"].as_array().unwrap();
        let found: Vec<_> = rows.iter().map(|row| row["goal"].as_str().unwrap()).collect();
        assert_eq!(found, goals, "{what}");
        for row in rows {
            assert!(row["spread"]["median"].is_number(), "{what}: {row}");
            assert_ne!(row["verdict"], "unclean", "{what}: {row}");
        }
        assert!(audit(&run, "promised").iter().all(|n| n.as_u64() > Some(0)), "{what}");
    }
}

#[test]
fn each_fault_of_the_server_fails_the_program() {
    for (fault, counts) in
        [("lose", &["lost", "surplus"][..]), ("double", &["doubled"]), ("undelivered", &["notDelivered"]), ("lose_mail", &["sinkLost"])]
    {
        let run = bench(&["e2e"], fault);
        assert_eq!(run.output.status.code(), Some(1), "{fault}: {:?}", run.output);
        for count in counts {
            let found = audit(&run, count);
            assert!(found.iter().any(|n| n.as_u64() == Some(1)), "{fault}: {found:?}");
        }
        let report = String::from_utf8_lossy(&run.output.stdout);
        assert!(report.contains("**FAILED**"), "{fault}: {report}");
    }
}

#[test]
fn a_slow_disk_is_slower() {
    let run = bench(&["slow-disk"], "");
    let trials = run.json["trials"].as_array().unwrap();
    let rates: Vec<_> = trials.iter().map(|trial| trial["rate"].as_f64().unwrap()).collect();
    // The stand-in commits one message at a time: at most 200 a second with +5 ms.
    assert!(rates[1] < 200.0 && rates[0] > rates[1], "{rates:?}");
}

#[test]
fn a_server_that_refuses_is_no_result() {
    let dir = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_nuncio-bench"))
        .args(["accept", "--backend", "sqlite", "--bin"])
        .arg(stand_in())
        .arg("--work")
        .arg(dir.path())
        .env("STAND_IN_FAULT", "refuse")
        .output()
        .unwrap();
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("the first message: 503"));
}

/// If Kannel is not installed, the program says so and skips its part.
#[test]
fn texts_are_measured_beside_kannel_and_a_lost_one_is_seen() {
    let run = bench(&["smpp"], "");
    let failures = run.json["failures"].to_string();
    let installed = failures == "[]";
    assert_eq!(run.output.status.success(), installed, "{:?}", run.output);
    assert!(installed || failures.contains("Kannel is not installed"), "{failures}");
    let rows = run.json["rows"].as_array().unwrap();
    let verdicts = |goal: &str| rows.iter().filter(|row| row["goal"] == goal).map(|row| row["verdict"].clone()).collect::<Vec<_>>();
    assert_eq!(verdicts("4").len(), 2);
    assert_eq!(verdicts("12").len(), 1);
    assert_eq!(verdicts("2").len(), 6);
    for goal in ["2", "4", "12"] {
        assert_eq!(verdicts(goal).contains(&Value::from("notMeasured")), !installed, "{rows:?}");
    }
    assert!(audit(&run, "promised").iter().all(|n| n.as_u64() == Some(100)), "{run:?}");

    let run = bench(&["smpp"], "lose_sms");
    assert_eq!(run.output.status.code(), Some(1));
    // Off, off in batches, on, and on with a webhook, which is lost with its message.
    let lost: Vec<_> = audit(&run, "sinkLost").into_iter().filter_map(Value::as_u64).filter(|n| *n > 0).collect();
    assert_eq!(lost, [1, 1, 1, 2], "{run:?}");
}
