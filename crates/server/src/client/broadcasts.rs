//! Long work of `nuncio broadcasts`, with progress bars.

use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use nuncio_domain::line;
use reqwest::Method;
use serde_json::Value;

use super::import::{ImportFile, summary};
use super::life::Outcome;
use super::lists::{print, unwrapped};
use super::{World, say, say_json};

/// Between two requests for the progress of a broadcast.
const LOOK: Duration = Duration::from_secs(1);

/// Imports a file of recipients. Fails if rows were rejected, also by an earlier import of the file.
pub(crate) async fn import(import: ImportFile, json: bool) -> anyhow::Result<Outcome> {
    let length = std::fs::metadata(&import.file).with_context(|| import.file.display().to_string())?.len();
    let style = ProgressStyle::with_template("{bar:40} {percent}% {bytes}/{total_bytes} {eta}")?;
    // It is drawn on a terminal only.
    let bar = ProgressBar::new(length).with_style(style);
    let shown = bar.clone();
    let answer = import.send(move |sent| shown.set_position(sent)).await;
    bar.finish_and_clear();
    let mut answer = answer?;
    if answer["errors"].is_null() {
        answer["errors"] = Value::Array(Vec::new());
    }
    if json {
        say_json(&answer)
    } else {
        say(line::escaped(&summary(&answer)))
    };
    Ok(if answer["invalid"] == 0 { Outcome::Sent } else { Outcome::Failed })
}

/// Follows a broadcast until it ends or a person has to decide about it.
pub(crate) async fn follow(world: &World, id: &str, json: bool) -> anyhow::Result<Outcome> {
    let bar = ProgressBar::new(1).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}")?);
    loop {
        let progress = world.get(&format!("/v1/broadcasts/{id}/progress"), &[]).await?;
        let number = |name: &str| progress[name].as_u64().unwrap_or_default();
        let status = progress["status"].as_str().unwrap_or_default().to_owned();
        let left = number("pending") + number("sending");
        bar.set_length(number("total"));
        bar.set_position(number("total").saturating_sub(left));
        bar.set_message(format!(
            "{status}, {} failed, {:.0} per second",
            number("failed"),
            progress["recipientsPerSecond"].as_f64().unwrap_or_default()
        ));
        let ended = match status.as_str() {
            "completed" => Some(Outcome::Sent),
            "cancelled" | "failed" | "rejected" | "rejected_final" => Some(Outcome::Failed),
            "paused" | "escalated" => Some(Outcome::UnderWay),
            _ => None,
        };
        if let Some(outcome) = ended {
            bar.finish_and_clear();
            print(&progress, json);
            if status.starts_with("rejected") && !json {
                let broadcast = unwrapped(world.get(&format!("/v1/broadcasts/{id}"), &[]).await?);
                say(line::escaped(&refusal(id, &broadcast)));
            }
            return Ok(outcome);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// Why the review rejected a broadcast, and what to do next.
fn refusal(id: &str, broadcast: &Value) -> String {
    let review = &broadcast["reviewResult"];
    let mut out = format!("review: {}", review["reasoning"].as_str().unwrap_or("no reason was given"));
    for flagged in review["flaggedContent"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        out.push_str(&format!("\nflagged: {flagged:?}"));
    }
    out.push_str(&match broadcast["status"].as_str() {
        Some("rejected") => format!(
            "\nNext: change it with `nuncio broadcasts update {id}` and `nuncio broadcasts retry-review {id}`, or ask for a person with \
             `nuncio broadcasts escalate {id}`"
        ),
        _ => format!("\nThis is final; `nuncio broadcasts clone {id}` makes a draft with its content, without its recipients"),
    });
    out
}

/// Prints the result of every recipient as it arrives.
pub(crate) async fn results(world: &World, id: &str, format: &str) -> anyhow::Result<()> {
    let request = world.request(Method::GET, world.url(&format!("/v1/broadcasts/{id}/results"), &[("format", format)]));
    world.copy_to_output(request).await
}
