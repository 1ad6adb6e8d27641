//! Follows a message, and shows its timeline line by line.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::Context as _;
use nuncio_domain::line;
use serde_json::Value;
use tokio::time::Instant;

use super::{World, say, say_json};

/// Between two looks at a message: short at first, for most are delivered at once.
const LOOKS: [Duration; 4] = [Duration::from_millis(50), Duration::from_millis(100), Duration::from_millis(250), Duration::from_secs(1)];

/// How following a message ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Outcome {
    /// It arrived, or a provider accepted it and may report no more.
    Sent,
    /// It will not arrive.
    Failed,
    /// It is still in progress.
    UnderWay,
}

/// Shows the life of a message until it is final or the time is up: line by line, or at the end as JSON.
pub(crate) async fn watch(world: &World, message: &Value, patience: Duration, json: bool) -> anyhow::Result<Outcome> {
    let id = message["id"].as_str().context("the response has no message id")?;
    if json {
        let (seen, outcome) = look(world, id, patience, |_| ()).await?;
        say_json(&seen);
        return Ok(outcome);
    }
    // Its status changes within moments; the lines below tell it.
    say(line::escaped(&format!("{id}  {}", route(message))));
    let (seen, outcome) = look(world, id, patience, |line| say(line)).await?;
    if let Some(reason) = seen["routing"]["reason"].as_str() {
        say(format!("  route: {}", line::escaped(reason)));
    }
    match text(&seen, "status") {
        status if outcome == Outcome::UnderWay => say(format!("  still {status}; `nuncio messages follow {id}` continues")),
        "sent" if !ends_sent(&seen) => say(format!("  sent; no receipt yet, `nuncio messages follow {id}` continues")),
        _ => {}
    }
    Ok(outcome)
}

/// Looks at a message until it is final or the time is up, and tells `tell` each new line of its life. Answers it as it was last seen.
async fn look(world: &World, id: &str, patience: Duration, mut tell: impl FnMut(&str)) -> anyhow::Result<(Value, Outcome)> {
    let (started, mut told) = (Instant::now(), HashSet::new());
    for times in 0.. {
        let message = world.get(&format!("/v1/messages/{id}"), &[]).await?["message"].take();
        for line in lines(&message) {
            if told.insert(line.clone()) {
                tell(&line);
            }
        }
        let status = message["status"].as_str().unwrap_or_default();
        let outcome = match status {
            "sent" if ends_sent(&message) => Outcome::Sent,
            "delivered" | "read" | "received" => Outcome::Sent,
            "failed" | "cancelled" => Outcome::Failed,
            _ if started.elapsed() < patience => {
                tokio::time::sleep(LOOKS.get(times / 4).copied().unwrap_or(Duration::from_secs(1))).await;
                continue;
            }
            "sent" => Outcome::Sent,
            _ => Outcome::UnderWay,
        };
        return Ok((message, outcome));
    }
    unreachable!("the loop ends by returning")
}

/// Whether no more is to be expected once the message is sent: of email and Telegram, a provider usually reports no more.
fn ends_sent(message: &Value) -> bool {
    matches!(text(message, "channel"), "email" | "telegram")
}

/// What happened to a message so far, the oldest first, each with its time of day (UTC).
pub(crate) fn lines(message: &Value) -> Vec<String> {
    let mut steps: Vec<(String, String)> = Vec::new();
    let mut step = |at: &Value, what: String| {
        if let Some(at) = at.as_str() {
            steps.push((at.to_owned(), what));
        }
    };
    let inbound = message["direction"] == "inbound";
    step(&message["createdAt"], if inbound { "received".to_owned() } else { "accepted: stored".to_owned() });
    let attempts = message["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    let failed_at = (text(message, "status") == "failed").then_some(&message["updatedAt"]);
    let mut sent_at = &message["sentAt"];
    for (number, attempt) in attempts.iter().enumerate() {
        let by = format!("{} by {}", text(attempt, "channel"), text(attempt, "provider"));
        step(&attempt["startedAt"], format!("attempt: {by}"));
        let why = [text(attempt, "errorCode"), text(attempt, "providerErrorCode"), text(attempt, "errorMessage")];
        let why = why.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
        if text(attempt, "status") == "failed" && sent_at.is_string() && attempt["finishedAt"] == *sent_at {
            // The provider accepted it; a receipt reported the failure, just before what followed.
            step(std::mem::replace(&mut sent_at, &Value::Null), "sent: the provider accepted it".to_owned());
            let reported_at = attempts.get(number + 1).map(|next| &next["startedAt"]).or(failed_at);
            step(reported_at.unwrap_or(&Value::Null), format!("attempt failed, by its receipt: {by}: {why}"));
        } else if text(attempt, "status") == "failed" || !why.is_empty() {
            step(&attempt["finishedAt"], format!("attempt {}: {by}: {why}", text(attempt, "status")));
        }
    }
    step(sent_at, "sent: the provider accepted it".to_owned());
    step(&message["deliveredAt"], "delivered".to_owned());
    step(&message["readAt"], "read".to_owned());
    match text(message, "status") {
        "failed" => step(&message["updatedAt"], format!("failed: {}: {}", text(message, "errorCode"), text(message, "errorMessage"))),
        _ if message["heldReason"].is_string() => {
            step(&message["updatedAt"], format!("held: {}; decide with `nuncio messages resolve`", text(message, "heldReason")));
        }
        _ => {}
    }
    steps.sort_by(|a, b| a.0.cmp(&b.0));
    steps.into_iter().map(|(at, what)| line::escaped(&format!("  {}  {what}", clock(&at))).into_owned()).collect()
}

/// The time of day of a timestamp.
fn clock(at: &str) -> &str {
    at.get(11..23).unwrap_or(at)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// A message in one line.
pub(crate) fn headline(message: &Value) -> String {
    format!("{}  {}  {}", text(message, "id"), text(message, "status"), route(message))
}

/// How and where a message goes.
fn route(message: &Value) -> String {
    format!("{} to {}  ({})", text(message, "channel"), text(message, "to"), text(message, "environment"))
}

/// A message for people: what it is, why it took its way, what happened, and what it cost.
pub(crate) fn describe(message: &Value) -> String {
    let mut out = vec![headline(message)];
    for (name, value) in [
        ("from", &message["from"]),
        ("subject", &message["subject"]),
        ("text", &message["text"]),
        ("route", &message["routing"]["reason"]),
        ("broadcast", &message["broadcastId"]),
        ("contact", &message["contactId"]),
        ("provider's id", &message["providerMessageId"]),
    ] {
        if let Some(value) = value.as_str().filter(|value| !value.is_empty()) {
            out.push(format!("  {name:14}{}", value.replace('\n', "\n                ")));
        }
    }
    if let Some(cost) = message["costTotal"].as_f64() {
        let segments = message["segments"].as_u64().map_or_else(String::new, |segments| format!(" ({segments} segments)"));
        out.push(format!("  {:14}${cost}{segments}", "cost"));
    }
    if message["possibleDuplicate"] == true {
        out.push("  the recipient might have received it twice".to_owned());
    }
    let mut out: Vec<String> = out.iter().map(|text| line::escaped(text).into_owned()).collect();
    out.push(String::new());
    out.extend(lines(message));
    out.join("\n")
}
