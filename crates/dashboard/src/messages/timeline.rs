//! History of a message, step by step.

use std::time::Duration;

use maud::{Markup, html};
use nuncio_core::messages::{AttemptView, MessageView};
use nuncio_core::users::AuditEntryView;
use nuncio_core::webhooks::DeliveryView;
use nuncio_domain::Timestamp;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{AttemptStatus, Direction, Status};

use crate::components::{channel, money, sentence, words};

/// A decision is recorded at most this long after its effect, unless the node was stopped.
const RECORDED: Duration = Duration::from_secs(1);

struct Step {
    at: Timestamp,
    shape: &'static str,
    title: String,
    tag: Option<String>,
    text: Markup,
}

/// Renders all steps in chronological order.
pub(super) fn timeline(message: &MessageView, deliveries: &[DeliveryView], decisions: &[AuditEntryView]) -> Markup {
    let mut steps = vec![accepted(message)];
    if message.direction == Direction::Outbound {
        steps.push(routed(message));
    }
    // Before their effects, which can have the same time.
    steps.extend(decisions.iter().map(|one| decided(message, one)));
    let settled = decided_as_sent(message, decisions);
    for (number, attempt) in message.attempts.iter().enumerate() {
        // The time of a receipt is not stored. A failed one is followed by the next attempt, or is the last change.
        let reported_at = message.attempts.get(number + 1).map_or(message.updated_at, |next| next.started_at);
        steps.extend(attempted(number, attempt, settled == Some(number), reported_at));
    }
    let moments = [("Delivered", "ok", message.delivered_at), ("Read", "read", message.read_at)];
    steps.extend(
        moments
            .into_iter()
            .filter_map(|(title, shape, at)| Some(step(at?, shape, title, html! { "Reported by the provider\u{2019}s receipt." }))),
    );
    if matches!(message.status, Status::Failed | Status::Cancelled) {
        let shape = if message.status == Status::Failed { "bad" } else { "stop" };
        let title = if message.status == Status::Failed { "Failed" } else { "Cancelled" };
        steps.push(step(message.updated_at, shape, title, html! { (sentence(message.error_message.as_deref().unwrap_or_default())) }));
    }
    deliveries.iter().for_each(|delivery| steps.extend(posted(delivery)));
    steps.sort_by_key(|step| step.at);
    html! {
        ol class="tl" {
            @for step in &steps {
                li {
                    time datetime=(step.at) { (clock(step.at)) }
                    i class={ "dot " (step.shape) } {}
                    div { h3 { (step.title) @if let Some(tag) = &step.tag { " " span class="tag" { (tag) } } } (step.text) }
                }
            }
        }
    }
}

fn step(at: Timestamp, shape: &'static str, title: &str, text: Markup) -> Step {
    Step { at, shape, title: title.to_owned(), tag: None, text: html! { p { (text) } } }
}

/// Formats a time to the millisecond, since steps can follow within a second.
fn clock(at: Timestamp) -> String {
    at.to_string().get(11..23).unwrap_or_default().to_owned()
}

/// Formats a date and time.
fn stamp(at: Timestamp) -> String {
    let text = at.to_string();
    format!("{} at {} UTC", text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default())
}

fn accepted(message: &MessageView) -> Step {
    if message.direction == Direction::Inbound {
        return step(message.created_at, "ok", "Received", html! { "By " (channel(message.channel)) "." });
    }
    step(
        message.created_at,
        "ok",
        "Accepted",
        html! {
            "Stored before your application got the response."
            @if let Some(at) = message.scheduled_at { " To be sent on " (stamp(at)) "." }
        },
    )
}

fn routed(message: &MessageView) -> Step {
    let routing = &message.routing;
    let first = message.attempts.first().map_or(message.channel, |attempt| attempt.channel);
    let text = html! {
        p { (sentence(&routing.reason)) }
        @if !routing.considered.is_empty() {
            details {
                summary { "Channels considered" }
                div class="wrap" {
                    table {
                        thead { tr { th scope="col" { "Channel" } th scope="col" class="num" { "Likely" } th scope="col" class="num" { "Price" } th scope="col" { "Why" } } }
                        tbody {
                            @for considered in &routing.considered {
                                tr {
                                    td { (channel(considered.channel)) }
                                    td class="num" { @match considered.probability { Some(chance) => { (format!("{:.0} %", chance * 100.0)) }, None => { "–" } } }
                                    td class="num" { (money(considered.price)) }
                                    td { @if !considered.usable { "no: " } (considered.reason) }
                                }
                            }
                        }
                    }
                }
            }
        }
        @for warning in &routing.warnings { p class="soft" { (warning) } }
    };
    Step { at: message.created_at, shape: "ok", title: format!("{} first", channel(first)), tag: None, text }
}

/// Returns the attempt that a person declared as sent. It is stored as accepted since then; until then its outcome was unknown.
fn decided_as_sent(message: &MessageView, decisions: &[AuditEntryView]) -> Option<usize> {
    let sent = decisions.iter().find(|one| action(one) == "sent")?;
    message.attempts.iter().rposition(|attempt| attempt.started_at < sent.entry.id.created_at())
}

/// Names a kind of provider.
fn provider(kind: &str) -> &str {
    if kind == "sim" { "the simulator" } else { kind }
}

fn attempted(number: usize, attempt: &AttemptView, was_unknown: bool, reported_at: Timestamp) -> Vec<Step> {
    let name = format!("Attempt {}", number + 1);
    let step = |at, shape, end: &str, text| Step {
        at,
        shape,
        title: format!("{name} {end}"),
        tag: Some(channel(attempt.channel).to_owned()),
        text,
    };
    let said = html! {
        @if let Some(message) = &attempt.error_message { p { (sentence(message)) } }
        @if let Some(code) = &attempt.provider_error_code {
            details open { summary { "Response of the provider" } pre class="said" tabindex="0" { (words(code)) } }
        }
    };
    let at = attempt.finished_at.unwrap_or(attempt.started_at);
    // An attempt that was accepted after all keeps why that was unknown.
    let was_unknown = was_unknown || attempt.error_message.is_some();
    let mut steps = vec![step(attempt.started_at, "move", "started", html! { p { "By " (provider(&attempt.provider)) "." } })];
    match attempt.status {
        AttemptStatus::Accepted | AttemptStatus::Delivered if !was_unknown => steps.push(step(at, "ok", "accepted", said)),
        AttemptStatus::Accepted | AttemptStatus::Delivered | AttemptStatus::Unknown => {
            steps.push(step(at, "held", "ended with an unknown outcome", said))
        }
        AttemptStatus::Started => {}
        AttemptStatus::Failed if attempt.provider_message_id.is_some() => {
            steps.push(step(at, "ok", "accepted", html! {}));
            let text = html! { p { "Reported by the provider\u{2019}s receipt, after it had accepted the message." } (said) };
            steps.push(step(reported_at.max(at), "bad", "failed", text));
        }
        AttemptStatus::Failed => steps.push(step(at, "bad", "failed", said)),
    }
    steps
}

/// Returns what a person decided: `sent`, `failed` or `resend`.
pub(super) fn action(decision: &AuditEntryView) -> &str {
    decision.entry.after.as_ref().and_then(|after| after["action"].as_str()).unwrap_or_default()
}

/// Returns the time of a decision: that of its effect, just before it was recorded.
fn decided_at(message: &MessageView, decision: &AuditEntryView) -> Timestamp {
    let recorded = decision.entry.id.created_at();
    let changes = message.attempts.iter().map(|attempt| attempt.started_at).chain([message.updated_at]);
    changes.filter(|at| *at <= recorded && recorded.since(*at) < RECORDED).min().unwrap_or(recorded)
}

/// A decision about a held message. Resolving it overwrites the unknown result of the attempt.
fn decided(message: &MessageView, one: &AuditEntryView) -> Step {
    let entry = &one.entry;
    let title = match action(one) {
        "sent" => "Decision: it was sent",
        "failed" => "Decision: it was not sent",
        "resend" => "Decision: send it again",
        _ => "Decision",
    };
    let actor = if entry.actor.label.is_empty() { &entry.actor.name } else { &entry.actor.label };
    let at = decided_at(message, one);
    let tried = message.attempts.iter().any(|attempt| attempt.started_at < at);
    let before =
        if tried { "Until then the outcome of the last attempt was unknown." } else { "Until then it was held without an attempt." };
    step(at, "held", title, html! { "By " (words(actor)) ". " (before) })
}

fn posted(delivery: &DeliveryView) -> Vec<Step> {
    let tried = |attempt: &nuncio_core::webhooks::DeliveryAttemptView| {
        let good = attempt.response_status.is_some_and(|status| (200..300).contains(&status));
        let said = match (attempt.response_status, &attempt.error) {
            (Some(status), _) => format!("Status {status} after {} ms.", attempt.duration_ms),
            (None, Some(error)) => format!("No response: {error}"),
            (None, None) => "No response.".to_owned(),
        };
        Step {
            at: attempt.at,
            shape: if good { "ok" } else { "held" },
            title: if good { "Webhook delivered" } else { "Webhook failed" }.to_owned(),
            tag: Some(delivery.event_type.to_string()),
            text: html! {
                p { (said) }
                @if let Some(body) = attempt.response_body.as_deref().filter(|body| !good && !body.trim().is_empty()) {
                    details { summary { "Response of the webhook" } pre class="said" tabindex="0" { (words(body)) } }
                }
            },
        }
    };
    delivery.attempts.iter().map(tried).collect()
}
