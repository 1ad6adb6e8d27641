//! `/conversations` and `/conversations/{contact}`: threads, and replies on the channel last used.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::messages::{ListContactMessages, ListMessages, MessageView, SendMessage, SendOptions};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Error, RequestedChannel, Result};

use crate::App;
use crate::components::{Faults, Field, channel, empty, head, message_state, pager, time, words};
use crate::contacts::name;
use crate::form::Form;
use crate::messages::new::once;
use crate::shell::{Live, followed, form_key};
use crate::signed::{Asked, Posted, Signed, lead_to, refuse};

const PLACE: &str = "/conversations";
/// Maximum number of messages shown of a thread.
const SHOWN: u32 = 50;

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    let list = ListMessages { direction: Some("inbound".to_owned()), cursor: asked.get("cursor"), ..ListMessages::default() };
    match app.core.messages().list(&who.caller, &list).await {
        Ok((messages, next)) => {
            let live = asked.get("cursor").is_none().then_some(Live::Rows);
            followed(StatusCode::OK, &who, PLACE, "Conversations", &newest(&messages, asked.older(PLACE, next)), live)
        }
        Err(error) => refuse(&who, "/", &error),
    }
}

fn newest(messages: &[MessageView], older: Option<String>) -> Markup {
    html! {
        (head(None, html! { "Conversations" }, html! { "Inbound messages, newest first" }, html! {}))
        section class="panel" aria-label="List" {
            @if messages.is_empty() { (empty("chat", "No inbound messages yet", "Replies and questions of the people you write to appear here.", html! {})) }
            @else {
                table class="rows fix" {
                    caption class="sr" { "Inbound messages, newest first" }
                    thead { tr { th scope="col" class="w4" { "From" } th scope="col" class="w" { "Message" } th scope="col" class="w w2" { "Channel" } th scope="col" class="num w3" { "Time" } } }
                    tbody {
                        @for message in messages {
                            tr {
                                @let text = words(message.text.as_deref().unwrap_or(message.message_type));
                                td { @match message.contact_id {
                                    Some(contact) => { a class="to clip" href={ (PLACE) "/" (contact) } { (words(message.from.as_deref().unwrap_or("Unknown"))) } },
                                    None => (words(message.from.as_deref().unwrap_or("Unknown"))),
                                } span class="clip soft n" { (text) } }
                                td class="w" { span class="clip" { (text) } }
                                td class="w" { (channel(message.channel)) }
                                td class="num" { (time(message.created_at)) }
                            }
                        }
                    }
                }
                (pager(older))
            }
        }
    }
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    page(&app, &who, &id, StatusCode::OK, "", &Faults::default()).await
}

async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, typed: &str, faults: &Faults) -> Response {
    match content(app, who, id, typed, faults).await {
        // A reload would lose the rejected input.
        Ok((title, content)) => followed(status, who, PLACE, &title, &content, (status == StatusCode::OK).then_some(Live::Whole)),
        Err(error) => refuse(who, PLACE, &error),
    }
}

/// Returns the messages of a contact, newest first.
async fn thread(app: &App, who: &SignedIn, id: &str) -> Result<Vec<MessageView>> {
    let asked = ListContactMessages { limit: Some(SHOWN), ..ListContactMessages::default() };
    Ok(app.core.messages().list_of_contact(&who.caller, id, &asked).await?.0)
}

async fn content(app: &App, who: &SignedIn, id: &str, typed: &str, faults: &Faults) -> Result<(String, Markup)> {
    let contact = app.core.contacts().get(&who.caller, id).await?;
    let messages = thread(app, who, id).await?;
    let title = name(&contact);
    let answer = answer_to(&messages);
    let field = Field { name: "text", label: "Your reply", hint: "", kind: "textarea", value: typed, autocomplete: "off", required: true };
    let content = html! {
        (head(Some((PLACE, "Conversations")), words(&title), html! { @if let Some((by, to)) = &answer { (channel(by)) ", " (words(to)) } }, html! { a class="btn" href={ "/contacts/" (contact.id) } { "Contact" } }))
        section class="panel" {
            header { h2 { "Messages" } span class="faint" { "the newest " (messages.len()) } }
            @if messages.is_empty() { (empty("chat", "No messages", "No messages to or from this person.", html! {})) }
            @else { div class="thread" { @for message in messages.iter().rev() { (bubble(message)) } } }
            @if answer.is_some() {
                form class="body" method="post" action={ (PLACE) "/" (contact.id) } {
                    (form_key(who))
                    input type="hidden" name="once" value=(once(app));
                    (faults.summary())
                    (field.show(faults))
                    div class="row" { button class="btn go" { "Reply by " (answer.as_ref().map_or("", |(by, _)| channel(by))) } }
                }
            }
        }
    };
    Ok((title, content))
}

fn bubble(message: &MessageView) -> Markup {
    let class = match (message.direction, message.status) {
        ("inbound", _) => "bub",
        (_, "failed" | "cancelled") => "bub out lost",
        _ => "bub out",
    };
    html! {
        div class=(class) dir="auto" {
            (message.text.as_deref().unwrap_or(message.message_type))
            br;
            small class="faint" { a href={ "/messages/" (message.id) } { (time(message.created_at)) } " · " (channel(message.channel)) @if message.direction != "inbound" { " · " (message_state(message.status, message.held_reason.is_some())) } }
        }
    }
}

/// Returns channel and address for a reply: of the newest inbound message, or else the newest outbound one.
fn answer_to(messages: &[MessageView]) -> Option<(&'static str, String)> {
    let came =
        messages.iter().find(|message| message.direction == "inbound").and_then(|message| Some((message.channel, message.from.clone()?)));
    came.or_else(|| messages.first().map(|message| (message.channel, message.to.clone())))
}

/// Sends a reply.
pub(crate) async fn answer(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    match send(&app, &who, &id, &form).await {
        Ok(()) => lead_to(&format!("{PLACE}/{id}")),
        Err(error) if matches!(error.code().status(), 400 | 402 | 409 | 422) => {
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &form.get("text"), &Faults::of(&error)).await
        }
        Err(error) => refuse(&who, &format!("{PLACE}/{id}"), &error),
    }
}

async fn send(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<()> {
    let messages = thread(app, who, id).await?;
    let (by, to) = answer_to(&messages).ok_or_else(|| Error::not_found("message to answer"))?;
    let by = Channel::parse(by).ok_or_else(|| Error::not_found("channel"))?;
    let subject = messages
        .iter()
        .find_map(|message| message.subject.clone())
        .map(|subject| if subject.starts_with("Re: ") { subject } else { format!("Re: {subject}") });
    let subject = subject.filter(|_| by == Channel::Email);
    let message = SendMessage { channel: Some(RequestedChannel::Only(by)), subject, ..SendMessage::text(&to, form.get("text")) };
    let options = SendOptions { idempotency_key: Some(form.get("once")).filter(|key| !key.is_empty()), ..SendOptions::default() };
    app.core.messages().send(&who.caller, message, options).await.map(drop)
}
