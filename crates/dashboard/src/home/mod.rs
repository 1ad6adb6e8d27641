//! `/`: pending problems, figures, and first steps for a new project.

mod figures;
mod needs;
mod steps;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::messages::{ListMessages, MessageView};
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;

use crate::App;
use crate::components::{channel, head, made, may_change, message_state, time, words};
use crate::shell::{Live, followed};
use crate::signed::{Asked, Signed, refuse};
use needs::Need;

/// What it means that nothing needs a person.
const CALM: &str = "No connection fails, no message is overdue, no message or broadcast waits for a decision, every webhook responds.";

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match content(&app, &who, asked.get("span").as_deref()).await {
        Ok((title, content)) => followed(StatusCode::OK, &who, "/", &title, &content, Some(Live::Calm)),
        Err(error) => refuse(&who, "/", &error),
    }
}

async fn content(app: &App, who: &SignedIn, span: Option<&str>) -> Result<(String, Markup)> {
    let senders = app.core.senders().all(who.caller.tenant).await?;
    let needs = needs::all(app, who, &senders).await?;
    let newest = app.core.messages().list(&who.caller, &ListMessages { limit: Some(5), ..ListMessages::default() }).await?.0;
    let title = match needs.len() {
        0 => "Nothing needs you".to_owned(),
        1 => "1 thing needs you".to_owned(),
        count => format!("{count} things need you"),
    };
    let steps = steps::look(app, who, &senders, !newest.is_empty()).await?;
    // A page has one primary button: that of the first step, if shown.
    let begins = steps.is_some_and(|steps| steps.begin(who));
    let acts = html! { @if may_change(who) { a class="btn" href="/broadcasts/new" { "New broadcast" } a class=(if begins { "btn" } else { "btn go" }) href="/messages/new" { "New message" } } };
    let figures = figures::panels(app, who, span, newest.is_empty()).await?;
    let content = html! {
        (head(None, html! { (title) }, html! { @if needs.is_empty() { (CALM) " " } "As of " (made(app.core.ids().clock.now())) "." }, acts))
        // What fails comes before what is still to do.
        @if !needs.is_empty() { (attention(&needs)) }
        @if let Some(steps) = steps && may_change(who) { (steps.panel(app, who, &senders)) }
        (figures)
        @if !newest.is_empty() { (newest_messages(&newest)) }
    };
    Ok((title, content))
}

fn attention(needs: &[Need]) -> Markup {
    html! {
        section class="panel" aria-label="What needs you" {
            ul class="attn" {
                @for need in needs {
                    li {
                        i class={ "dot " (need.shape) } {}
                        div { h2 { (need.title) } p { (need.text) } }
                        a class="btn" href=(need.href) { (need.act) }
                    }
                }
            }
        }
    }
}

fn newest_messages(messages: &[MessageView]) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "Newest messages" } a href="/messages" { "All" } }
            table class="rows fix" {
                caption class="sr" { "Newest messages" }
                tbody {
                    @for message in messages {
                        tr {
                            td class="w3" { (message_state(message.status, message.held_reason.is_some())) }
                            td { a class="to clip" href={ "/messages/" (message.id) } { (words(if message.to.is_empty() { message.from.as_deref().unwrap_or("–") } else { &message.to })) } }
                            td class="w" { (channel(message.channel)) }
                            td class="num" { (time(message.created_at)) }
                        }
                    }
                }
            }
        }
    }
}
