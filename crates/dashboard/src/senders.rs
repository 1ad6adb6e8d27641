//! `/senders` and `/senders/{id}`: what is connected, and how it is doing.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::senders::{ListSenders, SenderView};
use nuncio_core::users::SignedIn;
use nuncio_core::webhooks::{DeliveryView, ListDeliveries};
use nuncio_domain::Result;
use nuncio_domain::health::{Health, HealthState};

use crate::App;
use crate::components::{channel, empty, head, pager, state, time, value, words};
use crate::shell::shell;
use crate::signed::{Asked, Signed, refuse};

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match senders(&app, &who, &asked).await {
        Ok(content) => shell(&who, "/senders", "Senders", &content),
        Err(error) => refuse(&who, "/senders", &error),
    }
}

async fn senders(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let list = ListSenders { cursor: asked.get("cursor"), ..ListSenders::default() };
    let (senders, next) = app.core.senders().list(&who.caller, &list).await?;
    Ok(html! {
        (head(None, html! { "Senders" }, html! { "Who messages come from, and what carries them" }, html! {}))
        section class="panel" aria-label="List" {
            @if senders.is_empty() { (empty("plug", "No senders", "A sender holds the connections to carriers, one for each channel.", html! {})) }
            @else {
                table class="rows fix" {
                    caption class="sr" { "Senders" }
                    thead { tr { th scope="col" class="w5" { "Name" } th scope="col" { "Connections" } } }
                    tbody {
                        @for sender in &senders {
                            tr {
                                td { a class="to clip" href={ "/senders/" (sender.id) } { (words(&sender.name)) } @if sender.is_default { " " span class="tag" { "default" } } }
                                td { @for own in &sender.connections { span class="row" { (health(&own.health)) span class="faint" { (channel(own.channel)) " · " (own.kind) } } } @if sender.connections.is_empty() { span class="faint" { "nothing connected" } } }
                            }
                        }
                    }
                }
                (pager(asked.older("/senders", next)))
            }
        }
    })
}

fn health(health: &Health) -> Markup {
    match health.state {
        HealthState::Ok => state("ok", "Works"),
        HealthState::Resting => state("held", "Rests"),
        HealthState::Failing => state("bad", "Fails"),
        HealthState::Stopped => state("bad", "Stopped"),
    }
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    match sender(&app, &who, &id).await {
        Ok((title, content)) => shell(&who, "/senders", &title, &content),
        Err(error) => refuse(&who, "/senders", &error),
    }
}

async fn sender(app: &App, who: &SignedIn, id: &str) -> Result<(String, Markup)> {
    let sender = app.core.senders().get(&who.caller, id).await?;
    let asked = ListDeliveries { sender_id: Some(id.to_owned()), limit: Some(20), ..ListDeliveries::default() };
    let deliveries = app.core.webhooks().list_deliveries(&who.caller, &asked).await?.0;
    let content = html! {
        (head(Some(("/senders", "Senders")), words(&sender.name), html! { @if sender.is_default { "The default sender" } }, html! {}))
        (connections(&sender))
        section class="panel" id="webhook" {
            header { h2 { "Webhook" } }
            div class="body" {
                @match &sender.webhook {
                    Some(webhook) => { p { "Events go to " code { (webhook.url) } "." } }
                    None => { p class="soft" { "No webhook of its own. Set one with " code { "PATCH /v1/senders/{id}" } "; events go to the webhook of the world otherwise." } }
                }
            }
            @if !deliveries.is_empty() { (posted(&deliveries)) }
        }
        section class="panel" { header { h2 { "Id" } } div class="body" { (value(&sender.id.to_string())) } }
    };
    Ok((sender.name.clone(), content))
}

fn connections(sender: &SenderView) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "Connections" } }
            @if sender.connections.is_empty() {
                (empty("plug", "Nothing is connected", "Connect a carrier with PUT /v1/senders/{id}/channels/{channel}, or with nuncio connections.", html! {}))
            } @else {
                table class="fix" {
                    caption class="sr" { "Connections" }
                    thead { tr { th scope="col" class="w2" { "Channel" } th scope="col" class="w2" { "Kind" } th scope="col" class="w2" { "Health" } th scope="col" { "What is wrong" } } }
                    tbody {
                        @for own in &sender.connections {
                            tr {
                                td { (channel(own.channel)) }
                                td { (own.kind) }
                                td { (health(&own.health)) }
                                td { @if let Some(reason) = &own.health.reason { (words(reason)) @if let Some(since) = own.health.since { span class="faint" { " since " (time(since)) } } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn posted(deliveries: &[DeliveryView]) -> Markup {
    html! {
        table class="fix" {
            caption { "Newest events" }
            thead { tr { th scope="col" class="w4" { "Event" } th scope="col" class="w2" { "State" } th scope="col" { "Answer" } th scope="col" class="num w3" { "Time" } } }
            tbody {
                @for delivery in deliveries {
                    tr {
                        td { (delivery.event_type) }
                        td { @match delivery.status { "delivered" => (state("ok", "Delivered")), "dead" => (state("bad", "Given up")), _ => (state("", "Waiting")) } }
                        td {
                            @if let Some(newest) = delivery.attempts.last() {
                                @match (newest.response_status, &newest.error) { (Some(status), _) => { (status) }, (None, Some(error)) => (words(error)), _ => { "–" } }
                            }
                        }
                        td class="num" { (time(delivery.created_at)) }
                    }
                }
            }
        }
    }
}
