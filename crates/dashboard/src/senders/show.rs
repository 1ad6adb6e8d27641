//! `/senders` and `/senders/{id}`: senders and the health of their connections.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::senders::{ListSenders, SenderView};
use nuncio_core::users::SignedIn;
use nuncio_domain::health::{Health, HealthState};
use nuncio_domain::{Channel, Redacted, Result};

use super::details;
use crate::App;
use crate::components::{Faults, ask_first, channel, data_table, empty, form_key, head, may_change, pager, state, time, value, words};
use crate::form::Form;
use crate::shell::{Live, followed};
use crate::signed::{Asked, Signed, refuse, show_or_refuse};
use crate::webhook::{Panel, is_tested, new_secret};

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
                (data_table("rows fix", "Senders", &[("w5", "Name"), ("", "Connections")], html! {
                    @for sender in &senders {
                        tr {
                            td { a class="to clip" href={ "/senders/" (sender.id) } { (words(&sender.name)) } @if sender.is_default { " " span class="tag" { "default" } } }
                            td { @for own in &sender.connections { span class="row" { (health(&own.health)) span class="faint" { (channel(own.channel)) span class="w" { " · " (own.kind) } } } } @if sender.connections.is_empty() { span class="faint" { "nothing connected" } } }
                        }
                    }
                }))
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

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, asked: Asked) -> Response {
    page(&app, &who, &id, StatusCode::OK, &Said { tested: is_tested(&asked), ..Said::default() }).await
}

/// Result of the last action on a sender; a secret is shown once.
#[derive(Default)]
pub(crate) struct Said {
    pub(super) faults: Faults,
    pub(super) secret: Option<Redacted<String>>,
    pub(super) url: String,
    /// Details as entered.
    pub(super) typed: Option<Form>,
    /// Whether they were not saved because the sender was changed since the form was opened.
    pub(super) changed_meanwhile: bool,
    /// Whether a test event was just sent to the webhook.
    pub(super) tested: bool,
}

/// Renders the page with the result of the last action.
pub(super) async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said) -> Response {
    match sender(app, who, id, said).await {
        Ok((title, content)) => followed(status, who, "/senders", &title, &content, said.tested.then_some(Live::Whole)),
        Err(error) => refuse(who, "/senders", &error),
    }
}

async fn sender(app: &App, who: &SignedIn, id: &str, said: &Said) -> Result<(String, Markup)> {
    let sender = app.core.senders().get(&who.caller, id).await?;
    let own = format!("/senders/{id}");
    let webhook =
        Panel::load(app, who, &own, Some(sender.id), said.tested).await?.show(who, sender.webhook.as_ref(), &said.url, &said.faults);
    let content = html! {
        (head(Some(("/senders", "Senders")), words(&sender.name), html! { @if sender.is_default { "The default sender" } }, html! {
            @if !sender.is_default && may_change(who) {
                form class="plain" method="post" action=(own) { (form_key(who)) button class="btn" name="do" value="default" { "Make it the default" } }
                (ask_first("delete", "Delete", "Delete this sender?", "Its messages stay readable. It must have no unsent messages.", &own,
                    html! { (form_key(who)) input type="hidden" name="do" value="delete"; }))
            }
        }))
        (said.faults.summary())
        @if let Some(secret) = &said.secret { (new_secret(secret)) }
        (connections(&sender, may_change(who)))
        (webhook)
        (details::panel(who, &sender, said))
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
                (data_table("fix", "Connections", &[("", "Channel"), ("w w2", "Kind"), ("", "Health"), ("w w5", "Error")], html! {
                    @for own in &sender.connections {
                        tr {
                            td { a class="to" href={ "/senders/" (sender.id) "/channels/" (own.channel) } { (channel(own.channel)) } }
                            td class="w" { (own.kind) }
                            @let why = html! { @if let Some(reason) = &own.health.reason { (words(reason)) @if let Some(since) = own.health.since { span class="faint" { " since " (time(since)) } } } };
                            td { (health(&own.health)) @if own.health.reason.is_some() { span class="n" { (why) } } }
                            td class="w" { (why) }
                        }
                    }
                }))
            }
            @let missing = unconnected(sender);
            @if may_connect && !missing.is_empty() { footer {
                span class="faint" { "Connect" }
                @for one in missing { a class="btn small" href={ "/senders/" (sender.id) "/channels/" (one) } { (channel(one)) } }
            } }
        }
    }
}

/// Returns the channels without a connection.
fn unconnected(sender: &SenderView) -> Vec<Channel> {
    let connected = |channel: &Channel| sender.connections.iter().any(|own| own.channel == *channel);
    Channel::ALL.iter().copied().filter(|channel| !connected(channel)).collect()
}
