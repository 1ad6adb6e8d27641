//! `/senders` and `/senders/{id}`: senders and the health of their connections.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::senders::{ListSenders, SenderView};
use nuncio_core::users::SignedIn;
use nuncio_core::webhooks::{DeliveryAttemptView, DeliveryView, ListDeliveries, WebhookView};
use nuncio_domain::health::{Health, HealthState};
use nuncio_domain::{Channel, Redacted, Result};

use super::details;
use crate::App;
use crate::components::{
    Faults, ask_first, channel, empty, head, icon, may_change, pager, resource_page, shortened, state, time, value, words,
};
use crate::form::Form;
use crate::shell::{form_key, framed};
use crate::signed::{Asked, Signed, refuse, show_or_refuse};

/// Maximum number of characters shown of a webhook's response, and of its first line.
const RESPONSE: (usize, usize) = (1_000, 80);

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    show_or_refuse(StatusCode::OK, &who, "/senders", "Senders", senders(&app, &who, &asked).await, "/senders")
}

async fn senders(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let list = ListSenders { cursor: asked.get("cursor"), ..ListSenders::default() };
    let (senders, next) = app.core.senders().list(&who.caller, &list).await?;
    Ok(html! {
        (head(None, html! { "Senders" }, html! { "Profiles that send messages, and their connections" }, html! { @if may_change(who) { a class="btn go" href="/senders/new" { "New sender" } } }))
        section class="panel" aria-label="List" {
            @if senders.is_empty() { (empty("plug", "No senders", "A sender has connections to providers, one for each channel.", html! {})) }
            @else {
                table class="rows fix" {
                    caption class="sr" { "Senders" }
                    thead { tr { th scope="col" class="w5" { "Name" } th scope="col" { "Connections" } } }
                    tbody {
                        @for sender in &senders {
                            tr {
                                td { a class="to clip" href={ "/senders/" (sender.id) } { (words(&sender.name)) } @if sender.is_default { " " span class="tag" { "default" } } }
                                td { @for own in &sender.connections { span class="row" { (health(&own.health)) span class="faint" { (channel(own.channel)) span class="w" { " · " (own.kind) } } } } @if sender.connections.is_empty() { span class="faint" { "nothing connected" } } }
                            }
                        }
                    }
                }
                (pager(asked.older("/senders", next)))
            }
        }
    })
}

pub(super) fn health(health: &Health) -> Markup {
    match health.state {
        HealthState::Ok => state("ok", "Works"),
        HealthState::Resting => state("held", "Rests"),
        HealthState::Failing => state("bad", "Fails"),
        HealthState::Stopped => state("bad", "Stopped"),
    }
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    page(&app, &who, &id, StatusCode::OK, &Said::default()).await
}

/// Result of the last action on a sender; a secret is shown once.
#[derive(Default)]
pub(crate) struct Said {
    pub(super) faults: Faults,
    pub(super) secret: Option<Redacted<String>>,
    pub(super) url: String,
    /// Details as entered.
    pub(super) typed: Option<Form>,
}

/// Renders the page with the result of the last action.
pub(super) async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said) -> Response {
    match sender(app, who, id, said).await {
        Ok((title, content)) => framed(status, who, "/senders", &title, &content),
        Err(error) => refuse(who, "/senders", &error),
    }
}

async fn sender(app: &App, who: &SignedIn, id: &str, said: &Said) -> Result<(String, Markup)> {
    let sender = app.core.senders().get(&who.caller, id).await?;
    let asked = ListDeliveries { sender_id: Some(id.to_owned()), limit: Some(20), ..ListDeliveries::default() };
    let deliveries = app.core.webhooks().list_deliveries(&who.caller, &asked).await?.0;
    let own = format!("/senders/{id}");
    let content = html! {
        (head(Some(("/senders", "Senders")), words(&sender.name), html! { @if sender.is_default { "The default sender" } }, html! {
            @if !sender.is_default && may_change(who) {
                form class="plain" method="post" action=(own) { (form_key(who)) button class="btn" name="do" value="default" { "Make it the default" } }
                (ask_first("delete", "Delete", "Delete this sender?", "Its messages stay readable. It must have no unsent messages.", &own,
                    html! { (form_key(who)) input type="hidden" name="do" value="delete"; }))
            }
        }))
        (said.faults.summary())
        @if let Some(secret) = &said.secret {
            section class="panel" {
                header { h2 { "The webhook's secret" } }
                div class="body" {
                    div class="note ok" { (icon("key")) div { b { "Copy it now." } p { "It proves that events come from this server. It is not shown again." } } }
                    (value(secret.expose()))
                }
            }
        }
        (connections(&sender, may_change(who)))
        (webhook(who, &sender, said, &deliveries))
        (details::panel(who, &sender, &said.faults, said.typed.as_ref()))
        section class="panel" { header { h2 { "Id" } } div class="body" { (value(&sender.id.to_string())) } }
    };
    Ok((sender.name.clone(), content))
}

fn connections(sender: &SenderView, may_connect: bool) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "Connections" } }
            @if sender.connections.is_empty() {
                (empty("plug", "Nothing is connected", "Choose a channel and connect a provider.", html! {}))
            } @else {
                table class="fix" {
                    caption class="sr" { "Connections" }
                    thead { tr { th scope="col" { "Channel" } th scope="col" class="w w2" { "Kind" } th scope="col" { "Health" } th scope="col" class="w w5" { "Error" } } }
                    tbody {
                        @for own in &sender.connections {
                            tr {
                                td { a class="to" href={ "/senders/" (sender.id) "/channels/" (own.channel) } { (channel(own.channel)) } }
                                td class="w" { (own.kind) }
                                td { (health(&own.health)) }
                                td class="w" { @if let Some(reason) = &own.health.reason { (words(reason)) @if let Some(since) = own.health.since { span class="faint" { " since " (time(since)) } } } }
                            }
                        }
                    }
                }
            }
            @let missing = unconnected(sender);
            @if may_connect && !missing.is_empty() { footer {
                span class="faint" { "Connect" }
                @for name in missing { a class="btn small" href={ "/senders/" (sender.id) "/channels/" (name) } { (channel(name)) } }
            } }
        }
    }
}

/// Returns the channels without a connection.
fn unconnected(sender: &SenderView) -> Vec<&'static str> {
    let connected = |name: &str| sender.connections.iter().any(|own| own.channel == name);
    Channel::ALL.iter().map(|channel| channel.as_str()).filter(|name| !connected(name)).collect()
}

fn webhook(who: &SignedIn, sender: &SenderView, said: &Said, deliveries: &[DeliveryView]) -> Markup {
    let own = format!("/senders/{}", sender.id);
    let webhook = sender.webhook.as_ref();
    let now = webhook.map(|webhook| webhook.url.as_str()).unwrap_or_default();
    let off = webhook.filter(|webhook| !webhook.active);
    let url = if said.url.is_empty() { now } else { &said.url };
    html! {
        section class="panel" id="webhook" {
            header { h2 { "Webhook" } @if off.is_some() { (state("stop", "Switched off")) } }
            @if let Some(off) = off { (switched_off(who, &own, off)) }
            @if may_change(who) {
                form class="body" method="post" action=(own) {
                    (form_key(who))
                    p class="soft" { "Signed events of this sender are posted there." }
                    div class="row" {
                        label class="sr" for="webhookUrl" { "Address" }
                        input class="in" id="webhookUrl" name="webhookUrl" type="url" value=(url) placeholder="https://example.com/hooks";
                        button class="btn" name="do" value="webhook" { "Save" }
                    }
                }
                // A separate form: with this button, the other one would lose an address that is not saved yet.
                @if !now.is_empty() && off.is_none() {
                    form class="body" method="post" action=(own) {
                        (form_key(who))
                        div class="row" { button class="btn" name="do" value="try" { "Send a test event" } }
                    }
                }
            } @else {
                div class="body" { @if now.is_empty() { p class="soft" { "No webhook is set." } } @else { (value(now)) } }
            }
            @if !deliveries.is_empty() { (posted(who, &own, deliveries, !now.is_empty() && off.is_none())) }
        }
    }
}

/// Says why a webhook gets no events, with the button that changes it.
fn switched_off(who: &SignedIn, own: &str, off: &WebhookView) -> Markup {
    html! {
        div class="body" {
            div class="note bad" {
                (icon("alert"))
                div {
                    b { "It gets no events." }
                    p {
                        @match &off.disabled_reason { Some(reason) => { "It was switched off automatically: " (words(reason)) }, None => "A person switched it off" }
                        @if let Some(since) = off.failing_since { ". It has failed since " (time(since)) }
                        ". Events that occur until it is switched on are not delivered."
                    }
                }
            }
            @if may_change(who) {
                form class="row" method="post" action=(own) { (form_key(who)) button class="btn" name="do" value="enable" { "Switch it on" } }
            }
        }
    }
}

/// Lists deliveries. Without a webhook that is on, none can be repeated.
fn posted(who: &SignedIn, own: &str, deliveries: &[DeliveryView], is_on: bool) -> Markup {
    let repeats = is_on && may_change(who);
    html! {
        table class="fix" {
            caption { "Newest events" }
            thead { tr { th scope="col" class="w2" { "State" } th scope="col" class="w5" { "Event" } th scope="col" class="w" { "Response" } th scope="col" class="num w3" { "Time" } } }
            tbody {
                @for delivery in deliveries {
                    @let newest = delivery.attempts.last();
                    tr {
                        td { @match delivery.status { "delivered" => (state("ok", "Delivered")), "dead" => (state("bad", "Given up")), "failed" => (state("held", "Failing")), _ => (state("", "Waiting")) } }
                        td {
                            @match delivery.resource_id.as_deref().and_then(resource_page) {
                                Some(page) => { a class="clip" href=(page) { (delivery.event_type) } },
                                None => { span class="clip" { (delivery.event_type) } },
                            }
                            @if let Some(newest) = newest { span class="n faint" { (status(newest)) @if delivery.status != "delivered" { @if let Some(said) = said(newest) { " · " (words(&shortened(said, RESPONSE.1 / 2))) } } } }
                        }
                        td class="w" { @match newest { Some(newest) => (response(newest)), None => "–" } }
                        td class="num" {
                            (time(delivery.created_at))
                            @if repeats && matches!(delivery.status, "dead" | "failed") {
                                form class="plain" method="post" action=(own) { (form_key(who)) input type="hidden" name="delivery" value=(delivery.id); button class="btn small" name="do" value="replay" { "Send again" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn status(attempt: &DeliveryAttemptView) -> Markup {
    html! {
        @match (attempt.response_status, &attempt.error) {
            (Some(status), _) => { "Status " (status) },
            (None, Some(error)) => (words(error)),
            (None, None) => "No response",
        }
    }
}

/// Returns the text of the response, if there is one.
fn said(attempt: &DeliveryAttemptView) -> Option<&str> {
    attempt.response_body.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// Renders the status and the beginning of the response, which opens.
fn response(attempt: &DeliveryAttemptView) -> Markup {
    html! {
        @match said(attempt) {
            Some(said) => {
                details {
                    summary { (status(attempt)) " · " (words(&shortened(said, RESPONSE.1))) }
                    pre class="said" tabindex="0" { (words(said.get(..said.char_indices().nth(RESPONSE.0).map_or(said.len(), |(end, _)| end)).unwrap_or_default())) }
                }
            },
            None => (status(attempt)),
        }
    }
}
