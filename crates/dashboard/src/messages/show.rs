//! `/messages/{id}`: one message, its history and actions.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::messages::{AttachmentView, AttemptView, MessageView};
use nuncio_core::users::{AuditEntryView, ListAudit, SignedIn};
use nuncio_core::webhooks::ListDeliveries;
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::message::{Direction, HeldReason, Status};
use nuncio_domain::{Channel, Error, MessageType, Result, Timestamp};

use super::timeline::{action, timeline};
use crate::App;
use crate::broadcasts::is_too_late;
use crate::components::{
    ask_first, channel, form_key, head, icon, json_text, may_change, message_state, money, panel, sentence, time, value, words,
};
use crate::plain::said;
use crate::shell::{Live, followed};
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, lead_to, refuse};

/// Maximum number of webhook deliveries shown.
const DELIVERIES: u32 = 50;
/// How long an unchanged message is refreshed: receipts and webhooks follow later.
const REST: Duration = Duration::from_secs(120);

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, asked: Asked) -> Response {
    match content(&app, &who, &id, asked.get("late").is_some()).await {
        Ok((title, content, live)) => followed(StatusCode::OK, &who, "/messages", &title, &content, live),
        Err(error) => refuse(&who, "/messages", &error),
    }
}

async fn content(app: &App, who: &SignedIn, id: &str, too_late: bool) -> Result<(String, Markup, Option<Live>)> {
    let message = app.core.messages().get(&who.caller, id, |_| true).await?;
    let asked = ListDeliveries { resource_id: Some(id.to_owned()), limit: Some(DELIVERIES), ..ListDeliveries::default() };
    let deliveries = app.core.webhooks().list_deliveries(&who.caller, &asked).await?.0;
    let decisions = decisions(app, who, &message).await?;
    let config = app.core.tenant_config(who.caller.tenant).await?;
    let sender = config.senders.iter().find(|sender| sender.id == message.sender_id).map(|sender| sender.name.as_str());
    let inbound = message.direction == Direction::Inbound;
    let person = if inbound { message.from.clone().unwrap_or_default() } else { message.to.clone() };
    let title = if inbound { format!("From {person}") } else { format!("To {person}") };
    let heading = html! { @if inbound { "From " } @else { "To " } (words(&person)) };
    let files = files(app, who, &message).await?;
    let again = files.is_empty() && is_repeatable(&message);
    let content = html! {
        (head(Some(("/messages", "Messages")), heading, summary(&message, &decisions), acts(who, &message, again)))
        @if too_late {
            div class="note warn" role="status" { (icon("alert")) div { b { "Your last action changed nothing." } p { "It was decided before: " (summary(&message, &decisions)) } } }
        }
        @if message.held_reason.is_some() { (decision(who, &message)) }
        div class="aside" {
            section class="panel" {
                header { h2 { "Timeline" } (message_state(message.status, message.held_reason.is_some())) span class="faint w" { (time(message.created_at)) } }
                div class="body" { (timeline(&message, &deliveries, &decisions)) }
            }
            div class="stack" { (seen(&message, &files)) (cost(&message)) (details(&message, sender)) }
        }
    };
    let quiet = app.core.ids().clock.now().since(message.updated_at);
    let moves = matches!(message.status, Status::Queued | Status::Sending) && message.held_reason.is_none();
    Ok((title, content, (moves || quiet < REST).then_some(Live::Whole)))
}

/// Returns the human decisions about a message, from the audit log; none for viewers, who cannot read it.
async fn decisions(app: &App, who: &SignedIn, message: &MessageView) -> Result<Vec<AuditEntryView>> {
    if message.direction == Direction::Inbound || !may_change(who) {
        return Ok(Vec::new());
    }
    let asked = ListAudit { resource: Some(message.id.to_string()), ..ListAudit::default() };
    let (mut found, _) = app.core.users().audit_log(who, &asked).await?;
    found.retain(|one| one.entry.verb == "resolve");
    Ok(found)
}

/// Describes the result in a sentence.
fn summary(message: &MessageView, decisions: &[AuditEntryView]) -> Markup {
    let decided = |what: &str| decisions.iter().any(|decision| action(decision) == what);
    let by = channel(message.channel);
    let tries = message.attempts.len();
    let after = |at: Timestamp| match at.since(message.created_at).as_secs_f64() {
        seconds if seconds < 0.1 => "at once".to_owned(),
        seconds => format!("{seconds:.1} seconds after acceptance"),
    };
    let text = match message.status {
        _ if message.held_reason.is_some() => "Held for a human decision.".to_owned(),
        Status::Received => format!("Received by {by}."),
        Status::Delivered | Status::Read => match message.delivered_at.or(message.read_at) {
            Some(at) if tries > 1 => format!("Delivered by {by}, {}, in attempt {tries}.", after(at)),
            Some(at) => format!("Delivered by {by}, {}.", after(at)),
            None => format!("Delivered by {by}."),
        },
        Status::Sent if decided("sent") => "A person decided that it was sent; no receipt yet.".to_owned(),
        Status::Failed if decided("failed") => "Failed: a person decided that it was not sent.".to_owned(),
        Status::Sent => format!("Accepted by the provider of {by}; no receipt yet."),
        Status::Failed => format!("Failed. {}", sentence(message.error_message.as_deref().unwrap_or_default())),
        Status::Cancelled => "Cancelled before it was sent to a provider.".to_owned(),
        Status::Scheduled => "Waiting for its scheduled time.".to_owned(),
        Status::Sending => match (message.next_attempt_at, message.attempts.last()) {
            (Some(at), Some(last)) => return waits(at, last),
            _ => format!("In flight by {by}."),
        },
        Status::Queued => "Queued.".to_owned(),
    };
    html! { (text) }
}

/// Describes a message that waits for its next attempt.
fn waits(at: Timestamp, last: &AttemptView) -> Markup {
    let why = last.error_message.as_deref().unwrap_or("the last attempt failed");
    html! { "Waits: " (why.trim_end_matches('.')) ". Tried again at " (time(at)) "." }
}

/// Returns the attachments of an email.
async fn files(app: &App, who: &SignedIn, message: &MessageView) -> Result<Vec<AttachmentView>> {
    match message.channel {
        Channel::Email => app.core.messages().list_attachments(&who.caller, &message.id.to_string()).await,
        _ => Ok(Vec::new()),
    }
}

/// Returns whether the form of a new message can hold all of it but its attachments.
fn is_repeatable(message: &MessageView) -> bool {
    let is_text = message.direction == Direction::Outbound && message.message_type == MessageType::Text && message.html_body.is_none();
    is_text && message.held_reason.is_none()
}

fn acts(who: &SignedIn, message: &MessageView, again: bool) -> Markup {
    let action = format!("/messages/{}", message.id);
    html! {
        @if matches!(message.status, Status::Queued | Status::Scheduled) && message.held_reason.is_none() && may_change(who) {
            (ask_first("cancel", "Cancel", "Cancel this message?", "No provider has it yet. It will not be sent.", &action, html! { (form_key(who)) input type="hidden" name="do" value="cancel"; }))
        }
        @if again && may_change(who) { a class="btn" href={ "/messages/new?like=" (message.id) } { "Send again" } }
        @if let Some(contact) = message.contact_id { a class="btn" href={ "/contacts/" (contact) } { "Contact" } }
    }
}

/// Renders the decision about a held message.
fn decision(who: &SignedIn, message: &MessageView) -> Markup {
    let (why, resend) = match message.held_reason {
        Some(HeldReason::PastDue) => (
            "It was due long ago, while no node was running. If this database is a restored copy, it might have been sent since.",
            "Send it now",
        ),
        Some(HeldReason::StaleDatabase) => (
            "The database might be a restored copy: it might have been sent since. Ask the provider if you can; sending it can deliver it twice.",
            "Send it now",
        ),
        _ => ("It might have been sent. Ask the provider if you can; sending it again can deliver it twice.", "Send it again"),
    };
    html! {
        section class="panel" aria-label="Decide" {
            div class="body" {
                div class="note held" { (icon("alert")) div { b { @if may_change(who) { "This message waits for your decision." } @else { "This message waits for a decision." } } p { (why) } } }
                @if may_change(who) {
                    @let action = format!("/messages/{}", message.id);
                    div class="row" {
                        form method="post" action=(action) { (form_key(who)) button class="btn" name="do" value="sent" { "It was sent" } }
                        (ask_first("failed", "It was not sent; give up", "Give up this message?", "It counts as failed. This cannot be undone.", &action,
                            html! { (form_key(who)) input type="hidden" name="do" value="failed"; }))
                        (ask_first("resend", resend, &format!("{resend}?"), "If it was sent before, the recipient gets it twice.", &action,
                            html! { (form_key(who)) input type="hidden" name="do" value="resend"; }))
                    }
                }
            }
        }
    }
}

fn seen(message: &MessageView, files: &[AttachmentView]) -> Markup {
    let received = matches!(message.status, Status::Delivered | Status::Read | Status::Received);
    html! {
        section class="panel" {
            header { h2 { @if received { "As received" } @else { "Content" } } }
            div class="body" {
                div class="phone" {
                    p class="by" { @if let Some(from) = message.from.as_deref().filter(|from| !from.is_empty()) { (from) " · " } (channel(message.channel)) }
                    @if let Some(subject) = &message.subject { p class="bub" { b { (words(subject)) } } }
                    @match said(message) {
                        Some(text) => { p class="bub" { (words(&text)) } }
                        None => { p class="soft" { "No text." } }
                    }
                    @for file in files { p class="bub" { "Attachment: " (words(&file.filename)) } }
                }
            }
        }
    }
}

fn cost(message: &MessageView) -> Markup {
    let body = html! {
        dl class="facts" {
            dt { "Provider" } dd { (money(message.cost_provider)) }
            dt { "Platform fee" } dd { (money(message.cost)) }
            @if let Some(segments) = message.segments { dt { "Segments" } dd { (segments) } }
            dt class="sum" { "Total" } dd class="sum" { (money(message.cost_total)) }
        }
    };
    panel("Cost", body)
}

fn details(message: &MessageView, sender: Option<&str>) -> Markup {
    let body = html! {
        dl class="facts" {
            dt { "Sender" } dd { @match sender { Some(name) => { a href={ "/senders/" (message.sender_id) } { (words(name)) } }, None => { (message.sender_id) " (deleted)" } } }
            @if let Some(broadcast) = message.broadcast_id { dt { "Broadcast" } dd { a href={ "/broadcasts/" (broadcast) } { (broadcast) } } }
            @if let Some(id) = &message.provider_message_id { dt { "Provider\u{2019}s id" } dd { code { (id) } } }
            @if let Some(at) = message.expires_at { dt { "Valid until" } dd { (time(at)) } }
            @if let Some(metadata) = &message.metadata { @for (key, value) in metadata { dt { (words(key)) } dd { code { (words(&json_text(value))) } } } }
            @if message.possible_duplicate { dt { "Warning" } dd { "The recipient might have received it more than once." } }
        }
        (value(&message.id.to_string()))
    };
    panel("Details", body)
}

/// Cancels or resolves a message.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let page = format!("/messages/{id}");
    match decide(&app, &who, &id, &form.get("do")).await {
        Err(error) if is_too_late(&error) => lead_to(&format!("{page}?late=yes")),
        done => lead_back_or_refuse(&who, &page, done),
    }
}

async fn decide(app: &App, who: &SignedIn, id: &str, what: &str) -> Result<()> {
    let messages = app.core.messages();
    let resolution = match what {
        "cancel" => return messages.cancel(&who.caller, id).await.map(drop),
        "sent" => Resolution::Sent,
        "failed" => Resolution::Failed,
        "resend" => Resolution::Resend,
        _ => return Err(Error::field("do", "is not an action of a message")),
    };
    messages.resolve(&who.caller, id, resolution).await.map(drop)
}
