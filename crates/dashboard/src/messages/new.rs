//! `/messages/new`: composes a message, previews it and sends it.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::messages::{Plan, SendMessage, SendOptions};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Environment, Error, ErrorCode, RequestedChannel, Result, sms};

use crate::App;
use crate::components::{Faults, Field, channel, channels, choice, form_key, head, icon, money, panel, words};
use crate::form::{Form, recipient};
use crate::shell::framed;
use crate::signed::{Asked, MayChange, Posted, Signed, lead_to, refuse};

const CHANNELS: [(&str, &str); 7] = channels(("auto", "Automatic"));

/// The form as entered; redisplayed after an error.
#[derive(Default)]
struct Typed {
    to: String,
    channel: String,
    subject: String,
    text: String,
    /// The sender of the message that is sent again.
    sender: String,
    key: String,
}

impl Typed {
    fn of(form: &Form) -> Self {
        let [to, channel, subject, text, sender, key] = ["to", "channel", "subject", "text", "sender", "once"].map(|name| form.get(name));
        Self { to, channel, subject, text, sender, key }
    }

    fn command(&self) -> Result<SendMessage> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let channel = match self.channel.as_str() {
            "" | "auto" => RequestedChannel::Auto,
            name => {
                let known = Channel::ALL.iter().copied().find(|channel| channel.as_str() == name);
                RequestedChannel::Only(known.ok_or_else(|| Error::field("channel", format!("{name:?} is not a channel")))?)
            }
        };
        let message = SendMessage::text(&recipient(&self.to), self.text.clone());
        Ok(SendMessage { channel: Some(channel), subject: given(&self.subject), ..message })
    }
}

/// Shows an empty form, or a copy of the message named by `like`.
pub(crate) async fn show(State(app): State<App>, MayChange(who): MayChange, asked: Asked) -> Response {
    let mut typed = Typed { key: once(&app), ..Typed::default() };
    [typed.to, typed.channel] = ["to", "channel"].map(|name| asked.get(name).unwrap_or_default());
    if let Some(like) = asked.get("like") {
        let message = match app.core.messages().get(&who.caller, &like, |_| true).await {
            Ok(message) => message,
            Err(error) => return refuse(&who, "/messages", &error),
        };
        message.channel.as_str().clone_into(&mut typed.channel);
        typed.sender = message.sender_id.to_string();
        (typed.to, typed.text, typed.subject) = (message.to, message.text.unwrap_or_default(), message.subject.unwrap_or_default());
    }
    page(StatusCode::OK, &who, &typed, &Faults::default(), None)
}

/// Returns an idempotency key for the form: submitting it twice sends one message.
pub(crate) fn once(app: &App) -> String {
    format!("page-{:016x}{:016x}", app.core.ids().entropy.below(u64::MAX), app.core.ids().entropy.below(u64::MAX))
}

/// Returns the key of a submitted form.
pub(crate) fn key(once: &str) -> Option<String> {
    (!once.is_empty()).then(|| once.to_owned())
}

/// Returns the id of what a form made: after a second click, of what the first one made.
pub(crate) fn made<T: ToString>(id: Result<T>, name: &str) -> Result<String> {
    id.map(|id| id.to_string()).or_else(|error| made_before(error, name))
}

/// Returns the id of what the first click on a form made, if this is the error of the second one, which has it as `name`. Fails with 400 if
/// the form was changed in between, such as after going back to it: it then gets another key.
pub(crate) fn made_before(error: Error, name: &str) -> Result<String> {
    if error.code() == ErrorCode::IdempotencyKeyReused {
        return Err(Error::new(ErrorCode::InvalidRequest, "You sent this form before, and changed it since. Send it again to have both."));
    }
    let first = error.to_body()[name]["id"].as_str().map(str::to_owned);
    first.filter(|_| error.code() == ErrorCode::IdempotencyConflict).ok_or(error)
}

/// Returns the sender if it can still send on the channel, if one is given; otherwise the default one sends.
pub(crate) async fn still_there(app: &App, who: &SignedIn, sender: &str, by: Option<Channel>) -> Result<Option<String>> {
    let config = app.core.tenant_config(who.caller.tenant).await?;
    let sender = sender.parse().ok().and_then(|id| config.sender(id)).map(|sender| sender.id);
    let sender = sender.filter(|id| by.is_none_or(|channel| config.connection(*id, channel).is_some()));
    Ok(sender.map(|id| id.to_string()))
}

/// Previews or sends the message.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let mut typed = Typed::of(&form);
    let outcome = if form.get("do") == "check" { check(&app, &who, &typed).await } else { send(&app, &who, &typed).await };
    match outcome {
        Ok(Outcome::Plan(plan)) => page(StatusCode::OK, &who, &typed, &Faults::default(), Some(&plan)),
        Ok(Outcome::Sent(path)) => lead_to(&path),
        Err(error) if matches!(error.code().status(), 400 | 402 | 409 | 422) => {
            typed.key = once(&app);
            page(StatusCode::BAD_REQUEST, &who, &typed, &faults(&app, &who, &error).await, None)
        }
        Err(error) => refuse(&who, "/messages/new", &error),
    }
}

/// Returns the errors of a form, with the names of senders in place of their ids.
pub(crate) async fn faults(app: &App, who: &SignedIn, error: &Error) -> Faults {
    let faults = Faults::of(error);
    match app.core.tenant_config(who.caller.tenant).await {
        Ok(config) => faults.naming(&config.senders),
        Err(_) => faults,
    }
}

enum Outcome {
    Plan(Box<Plan>),
    Sent(String),
}

async fn check(app: &App, who: &SignedIn, typed: &Typed) -> Result<Outcome> {
    let options =
        SendOptions { sender: still_there(app, who, &typed.sender, Channel::parse(&typed.channel)).await?, ..SendOptions::default() };
    let plan = app.core.messages().plan(&who.caller, typed.command()?, options).await?;
    Ok(Outcome::Plan(Box::new(plan)))
}

async fn send(app: &App, who: &SignedIn, typed: &Typed) -> Result<Outcome> {
    let sender = still_there(app, who, &typed.sender, Channel::parse(&typed.channel)).await?;
    let options = SendOptions { sender, idempotency_key: key(&typed.key), ..SendOptions::default() };
    let sent = app.core.messages().send_by_hand(&who.caller, typed.command()?, options).await;
    Ok(Outcome::Sent(format!("/messages/{}", made(sent.map(|message| message.id), "message")?)))
}

fn page(status: StatusCode, who: &SignedIn, typed: &Typed, faults: &Faults, plan: Option<&Plan>) -> Response {
    let test = who.session.environment == Environment::Test;
    let line = if test { "Nothing leaves this server; costs are play money." } else { "This sends a real message." };
    let chosen = if typed.channel.is_empty() { "auto" } else { &typed.channel };
    let content = html! {
        (head(Some(("/messages", "Messages")), html! { "New message" }, html! { (line) }, html! {}))
        div class="aside" {
            form class="panel" method="post" action="/messages/new" data-check="live" {
                (form_key(who))
                input type="hidden" name="once" value=(typed.key);
                input type="hidden" name="sender" value=(typed.sender);
                div class="body" {
                    (faults.summary())
                    (Field::new("to", "To", "A phone number with its country code, an email address, or a chat id.", &typed.to).show(faults))
                    (choice("channel", "Channel", &CHANNELS, chosen, "", faults))
                    (Field { required: false, ..Field::new("subject", "Subject", "For emails.", &typed.subject) }.show(faults))
                    (Field { kind: "textarea", ..Field::new("text", "Message", "", &typed.text) }.show(faults))
                }
                footer {
                    button class="btn" name="do" value="check" { "Check" }
                    button class="btn go push" name="do" value="send" { @if test { "Send in the test environment" } @else { "Send" } }
                }
            }
            div class="stack" id="live" aria-live="polite" {
                @if let Some(plan) = plan { (verdict(plan)) }
                @if !typed.text.is_empty() { (seen(typed, plan)) (parts(&typed.text, plan)) }
            }
        }
    };
    framed(status, who, "/messages", "New message", &content)
}

/// Shows the message as its channel displays it.
fn seen(typed: &Typed, plan: Option<&Plan>) -> Markup {
    let by = plan.map_or(typed.channel.as_str(), |plan| plan.channel.as_str());
    html! {
        section class="panel" {
            header { h2 { "Preview" } @if let Some(plan) = plan { span class="faint" { "by " (channel(plan.channel)) } } }
            div class="body" {
                @match by {
                    "email" => {
                        div class="letter" dir="auto" { @if !typed.subject.is_empty() { p { b { (words(&typed.subject)) } } } (typed.text) }
                    }
                    "voice" => { p class="soft" { "Spoken text:" } p class="quote" dir="auto" { (typed.text) } }
                    _ => { div class="phone" { @if let Some(plan) = plan { p class="by" { (plan.from) } } p class="bub" dir="auto" { (typed.text) } } }
                }
            }
        }
    }
}

/// Shows the number of SMS segments, unless another channel carries the text, and the character that forces UCS-2.
fn parts(text: &str, plan: Option<&Plan>) -> Markup {
    if plan.is_some_and(|plan| plan.segments.is_none()) {
        return html! {};
    }
    let measure = sms::measure(text);
    let room = if measure.segments > 1 { usize::from(measure.segments) * measure.encoding.part() } else { measure.encoding.alone() };
    html! {
        section class="panel" {
            header { h2 { "As SMS" } span class="faint" { (measure.segments) @if measure.segments == 1 { " segment" } @else { " segments" } } }
            div class="body tight" {
                p { (measure.units) " of " (room) " characters" @if measure.segments > 1 { " of " (measure.segments) " segments" } "." }
                @if let Some(forced) = measure.forced_by {
                    div class="note warn" {
                        (icon("alert"))
                        div {
                            b { mark class="char" { (forced.character) } " requires UCS-2." }
                            p { "It is character " (forced.position + 1) ". With it, a segment holds " (sms::Encoding::Ucs2.alone()) " characters; without such characters, " (sms::Encoding::Gsm7.alone()) "." }
                        }
                    }
                }
            }
        }
    }
}

fn verdict(plan: &Plan) -> Markup {
    let body = html! {
        @if plan.suppressed {
            div class="note bad" { (icon("alert")) div { b { "It will fail." } p { "The recipient is suppressed." } } }
        } @else {
            div class="note ok" { (icon("check")) div { b { "It can be sent." } p { "By " (channel(plan.channel)) @if !plan.from.is_empty() { ", from " (plan.from) } "." } } }
        }
        dl class="facts" {
            dt { "Why" } dd { (plan.routing.reason) }
            @if let Some(segments) = plan.segments { dt { @if plan.channel.is_sms() { "Segments" } @else { "Segments as SMS" } } dd { (segments) @if let Some(encoding) = plan.encoding { " (" (encoding) ")" } } }
            @if let Some(fallback) = plan.fallback_channel { dt { "If that fails" } dd { (channel(fallback)) } }
            dt { "Cost" } dd { (cost(plan)) }
            @if !plan.affordable { dt { "Money" } dd { "The balance is too low" } }
            @for part in &plan.degraded { dt { "Changed" } dd { (part) } }
            @for warning in &plan.routing.warnings { dt { "Note" } dd { (warning) } }
        }
    };
    panel("If you send it now", body)
}

/// What the planned message costs, and what is reserved for its fallback.
fn cost(plan: &Plan) -> Markup {
    let first = plan.estimated_cost.as_ref().map(|cost| cost.cost_total);
    let more = plan.required.filter(|most| *most > first.unwrap_or_default());
    html! {
        @match (first, more) {
            (Some(first), None) => (money(Some(first))),
            (Some(first), Some(most)) => { (money(Some(first))) ", at most " (money(Some(most))) " with its fallback" },
            (None, Some(most)) => { "No price for " (channel(plan.channel)) "; at most " (money(Some(most))) " with its fallback" },
            (None, None) => { "No price is set" },
        }
    }
}
