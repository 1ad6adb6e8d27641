//! `/messages/new`: writes a message, says what would happen to it, and sends it.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::messages::{Plan, SendMessage, SendOptions};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Environment, Error, RequestedChannel, Result};

use crate::App;
use crate::components::{Faults, Field, channel, channels, head, icon, money, select};
use crate::form::{Form, recipient};
use crate::shell::{form_key, framed};
use crate::signed::{Asked, Signed, form, lead_to, refuse};

const CHANNELS: [(&str, &str); 7] = channels(("auto", "Let nuncio choose"));

/// What was typed. It is never lost.
#[derive(Default)]
struct Typed {
    to: String,
    channel: String,
    subject: String,
    text: String,
    key: String,
}

impl Typed {
    fn of(form: &Form) -> Self {
        let [to, channel, subject, text, key] = ["to", "channel", "subject", "text", "once"].map(|name| form.get(name));
        Self { to, channel, subject, text, key }
    }

    fn command(&self) -> Result<SendMessage> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let channel = match self.channel.as_str() {
            "" | "auto" => RequestedChannel::Auto,
            name => {
                let known = Channel::ALL.iter().copied().find(|channel| channel.as_str() == name);
                RequestedChannel::Only(known.ok_or_else(|| Error::field("channel", format!("{name:?} is no channel")))?)
            }
        };
        let message = SendMessage::text(&recipient(&self.to), self.text.clone());
        Ok(SendMessage { channel: Some(channel), subject: given(&self.subject), ..message })
    }
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    let typed = Typed { to: asked.get("to").unwrap_or_default(), key: once(&app), ..Typed::default() };
    page(StatusCode::OK, &who, &typed, &Faults::default(), None)
}

/// Names this form: sending it twice sends one message.
pub(crate) fn once(app: &App) -> String {
    format!("page-{:016x}{:016x}", app.core.ids().entropy.below(u64::MAX), app.core.ids().entropy.below(u64::MAX))
}

/// Checks the message, or sends it.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, request: Request) -> Response {
    let form = match form(&app, request).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let typed = Typed::of(&form);
    let outcome = if form.get("do") == "check" { check(&app, &who, &typed).await } else { send(&app, &who, &typed).await };
    match outcome {
        Ok(Outcome::Plan(plan)) => page(StatusCode::OK, &who, &typed, &Faults::default(), Some(&plan)),
        Ok(Outcome::Sent(path)) => lead_to(&path),
        Err(error) if matches!(error.code().status(), 400 | 402 | 409 | 422) => {
            page(StatusCode::BAD_REQUEST, &who, &typed, &Faults::of(&error), None)
        }
        Err(error) => refuse(&who, "/messages/new", &error),
    }
}

enum Outcome {
    Plan(Box<Plan>),
    Sent(String),
}

async fn check(app: &App, who: &SignedIn, typed: &Typed) -> Result<Outcome> {
    let plan = app.core.messages().plan(&who.caller, typed.command()?, SendOptions::default()).await?;
    Ok(Outcome::Plan(Box::new(plan)))
}

async fn send(app: &App, who: &SignedIn, typed: &Typed) -> Result<Outcome> {
    let options = SendOptions { idempotency_key: Some(typed.key.clone()).filter(|key| !key.is_empty()), ..SendOptions::default() };
    let message = app.core.messages().send(&who.caller, typed.command()?, options).await?;
    Ok(Outcome::Sent(format!("/messages/{}", message.id)))
}

fn page(status: StatusCode, who: &SignedIn, typed: &Typed, faults: &Faults, plan: Option<&Plan>) -> Response {
    let test = who.session.environment == Environment::Test;
    let line = if test { "The sandbox delivers to every number, and charges nothing." } else { "This goes out for real." };
    let field = |name, label, hint, kind, value, required| Field { name, label, hint, kind, value, autocomplete: "off", required };
    let chosen = if typed.channel.is_empty() { "auto" } else { &typed.channel };
    let content = html! {
        (head(Some(("/messages", "Messages")), html! { "New message" }, html! { (line) }, html! {}))
        div class="aside" {
            form class="panel" method="post" action="/messages/new" {
                (form_key(who))
                input type="hidden" name="once" value=(typed.key);
                div class="body" {
                    (faults.summary())
                    (field("to", "To", "A phone number with its country code, an email address, or a chat id.", "text", &typed.to, true).show(faults))
                    div class="field" { (select("channel", "Channel", &CHANNELS, chosen, true)) }
                    (field("subject", "Subject", "For emails.", "text", &typed.subject, false).show(faults))
                    (field("text", "Message", "", "textarea", &typed.text, true).show(faults))
                }
                footer {
                    button class="btn" name="do" value="check" { "Check" }
                    button class="btn go push" name="do" value="send" { @if test { "Send in the test environment" } @else { "Send" } }
                }
            }
            @if let Some(plan) = plan { (verdict(plan)) }
        }
    };
    framed(status, who, "/messages", "New message", &content)
}

fn verdict(plan: &Plan) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "If you send it now" } }
            div class="body" {
                @if plan.suppressed {
                    div class="note bad" { (icon("alert")) div { b { "It would fail." } p { "The recipient is on the list of those who must not be contacted." } } }
                } @else {
                    div class="note ok" { (icon("check")) div { b { "It can go." } p { "By " (channel(&plan.channel)) @if !plan.from.is_empty() { ", from " (plan.from) } "." } } }
                }
                dl class="facts" {
                    dt { "Why" } dd { (plan.routing.reason) }
                    @if let Some(segments) = plan.segments { dt { "Parts" } dd { (segments) @if let Some(encoding) = plan.encoding { " (" (encoding) ")" } } }
                    @if let Some(fallback) = plan.fallback_channel { dt { "If that fails" } dd { (channel(fallback)) } }
                    @for considered in plan.routing.considered.iter().filter(|considered| considered.channel == plan.channel) { dt { "Cost" } dd { (money(considered.price)) } }
                    @for warning in &plan.routing.warnings { dt { "Note" } dd { (warning) } }
                }
            }
        }
    }
}
