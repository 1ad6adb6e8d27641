//! `/conversations` and `/conversations/{contact}`: people who wrote, their threads, and replies on the channel last used.

use std::collections::{BTreeSet, HashMap};

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::suppressions::SuppressionView;
use nuncio_core::messages::{ListContactMessages, ListMessages, MessageView, SendMessage, SendOptions};
use nuncio_core::users::SignedIn;
use nuncio_domain::message::{Direction, Status};
use nuncio_domain::{Channel, ContactId, Error, ErrorCode, RequestedChannel, Result, SenderId, limits};

use crate::App;
use crate::components::{
    Faults, Field, channel, counted, data_table, empty, form_key, head, icon, may_change, message_state, pager, sentence, time, words,
};
use crate::contacts::{name, opt_outs};
use crate::form::Form;
use crate::messages::new::{key, made, once};
use crate::plain::shown;
use crate::shell::{Live, followed};
use crate::signed::{Asked, Posted, Signed, lead_to, refuse};

const PLACE: &str = "/conversations";
/// Channel, address and sender of a reply.
type Way = (Channel, String, SenderId);
/// Maximum number of messages shown of a thread.
const SHOWN: u32 = 50;

/// The newest inbound message of a person, and how many inbound messages of theirs are on the page.
struct Talk {
    newest: MessageView,
    messages: u64,
    name: Option<String>,
}

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match talks(&app, &who, &asked).await {
        Ok((talks, older)) => {
            let live = asked.get("cursor").is_none().then_some(Live::Rows);
            followed(StatusCode::OK, &who, PLACE, "Conversations", &newest(&talks, older), live)
        }
        Err(error) => refuse(&who, "/", &error),
    }
}

/// Groups a page of inbound messages by contact, newest first. Returns the URL of the next page, too.
async fn talks(app: &App, who: &SignedIn, asked: &Asked) -> Result<(Vec<Talk>, Option<String>)> {
    let list = ListMessages { direction: Some("inbound".to_owned()), cursor: asked.get("cursor"), ..ListMessages::default() };
    let (messages, next) = app.core.messages().list(&who.caller, &list).await?;
    let people: BTreeSet<ContactId> = messages.iter().filter_map(|message| message.contact_id).collect();
    let mut names = app.core.contacts().names(&who.caller, &Vec::from_iter(people)).await?;
    let mut talks: Vec<Talk> = Vec::new();
    let mut places: HashMap<ContactId, usize> = HashMap::new();
    for message in messages {
        let of = message.contact_id;
        if let Some(talk) = of.and_then(|contact| places.get(&contact)).and_then(|&place| talks.get_mut(place)) {
            talk.messages += 1;
            continue;
        }
        places.extend(of.map(|contact| (contact, talks.len())));
        talks.push(Talk { newest: message, messages: 1, name: of.and_then(|contact| names.remove(&contact)) });
    }
    Ok((talks, asked.older(PLACE, next)))
}

/// Returns the page of a conversation, which opens at its newest message.
pub(crate) fn newest_of(contact: &str) -> String {
    format!("{PLACE}/{contact}#newest")
}

fn newest(talks: &[Talk], older: Option<String>) -> Markup {
    html! {
        (head(None, html! { "Conversations" }, html! { "People who wrote to you, the newest message first" }, html! {}))
        section class="panel" aria-label="List" {
            @if talks.is_empty() { (empty("chat", "No inbound messages yet", "Replies and questions of the people you write to appear here.", html! {})) }
            @else {
                (data_table("rows fix", "People who wrote, the newest message first", &[("w5", "From"), ("w", "Newest message"), ("w w2", "Channel"), ("num w3", "Time")], html! {
                    @for talk in talks {
                        @let message = &talk.newest;
                        tr {
                            @let text = words(&shown(message));
                            @let person = words(talk.name.as_deref().or(message.from.as_deref()).unwrap_or("Unknown"));
                            td {
                                div class="who2" {
                                    @match message.contact_id {
                                        Some(contact) => { a class="to clip" href=(newest_of(&contact.to_string())) { (person) } },
                                        None => { span class="clip" { (person) } },
                                    }
                                    @if talk.messages > 1 { span class="faint" { (counted(talk.messages, "message")) } }
                                }
                                span class="clip soft n" { (text) }
                            }
                            td class="w" { span class="clip" { (text) } }
                            td class="w" { (channel(message.channel)) }
                            td class="num" { (time(message.created_at)) }
                        }
                    }
                }))
                (pager(older))
            }
        }
    }
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, asked: Asked) -> Response {
    page(&app, &who, &id, &asked, StatusCode::OK, "", &Faults::default()).await
}

async fn page(app: &App, who: &SignedIn, id: &str, asked: &Asked, status: StatusCode, typed: &str, faults: &Faults) -> Response {
    match content(app, who, id, asked, typed, faults).await {
        Ok((title, content)) => {
            // A reload would lose the rejected input, and older messages do not change.
            let live = (status == StatusCode::OK && asked.get("cursor").is_none()).then_some(Live::Whole);
            followed(status, who, PLACE, &title, &content, live)
        }
        Err(error) => refuse(who, PLACE, &error),
    }
}

/// Returns a page of messages of a contact, newest first, and the cursor of the next one.
async fn thread(app: &App, who: &SignedIn, id: &str, cursor: Option<String>) -> Result<(Vec<MessageView>, Option<String>)> {
    let asked = ListContactMessages { limit: Some(SHOWN), cursor, ..ListContactMessages::default() };
    app.core.messages().list_of_contact(&who.caller, id, &asked).await
}

async fn content(app: &App, who: &SignedIn, id: &str, asked: &Asked, typed: &str, faults: &Faults) -> Result<(String, Markup)> {
    let contact = app.core.contacts().get(&who.caller, id).await?;
    let cursor = asked.get("cursor");
    let past = cursor.is_some();
    let (messages, next) = thread(app, who, id, cursor).await?;
    let own = format!("{PLACE}/{}", contact.id);
    let older = asked.older(&own, next);
    let title = name(&contact);
    // The channel follows from the newest messages, which an older page does not have.
    let answer = if past { None } else { answer_to(&messages) };
    let field = Field { kind: "textarea", ..Field::new("text", "Your reply", "", typed) };
    let refused = match &answer {
        Some(way) => opt_outs(app, who, &contact).await?.into_iter().find(|one| applies(one, way)),
        None => None,
    };
    let by = match &answer {
        Some((by, _, sender)) => sender_name(app, who, *sender, *by).await?,
        None => None,
    };
    let content = html! {
        (head(Some((PLACE, "Conversations")), words(&title), html! { @if let Some((by, to, _)) = &answer { (channel(*by)) ", " (words(to)) } }, html! { a class="btn" href={ "/contacts/" (contact.id) } { "Contact" } }))
        section class="panel" {
            header {
                h2 { "Messages" }
                @if past { a href=(newest_of(id)) { "Newest messages" } } @else if older.is_some() { span class="faint" { "the newest " (messages.len()) } }
                @if let Some(older) = &older { a href=(older) { "Older messages" } }
            }
            @if messages.is_empty() { (empty("chat", "No messages", "No messages to or from this person.", html! {})) }
            @else { div class="thread" { @for (age, message) in messages.iter().enumerate().rev() { (bubble(message, age == 0 && !past)) } } }
            @if let Some(refused) = &refused {
                div class="body" { div class="note warn" { (icon("alert")) div { b { "This person does not want messages here." } p { (sentence(&refused.reason.as_str().replace('_', " "))) " Since " (time(refused.created_at)) "; a reply would fail." } } } }
            }
            @if let Some((channel_of, to, sender)) = answer.as_ref().filter(|_| may_change(who)) {
                @match &by { None => { (no_sender(*channel_of, typed)) }, Some(name) => { form class="body" method="post" action=(own) {
                    (form_key(who))
                    input type="hidden" name="once" value=(once(app));
                    input type="hidden" name="way" value=(way(*channel_of, to, *sender));
                    (faults.summary())
                    (field.show(faults))
                    div class="row" { button class="btn go" { "Reply by " (channel(*channel_of)) " from " (words(name)) } }
                } } }
            }
        }
    };
    Ok((title, content))
}

/// Returns the name of the sender of a reply; `None` if it can no longer send on the channel.
async fn sender_name(app: &App, who: &SignedIn, sender: SenderId, by: Channel) -> Result<Option<String>> {
    let config = app.core.tenant_config(who.caller.tenant).await?;
    let connected = config.sender(sender).filter(|_| config.connection(sender, by).is_some());
    Ok(connected.map(|sender| sender.name.clone()))
}

/// Returns whether a suppression applies to a reply.
fn applies(suppression: &SuppressionView, (by, to, sender): &Way) -> bool {
    suppression.identifier == *to
        && suppression.channel.is_none_or(|channel| channel == *by)
        && suppression.sender_id.is_none_or(|only| only == *sender)
}

/// Why nobody can reply.
fn sender_is_gone(by: Channel) -> String {
    format!("The sender of this conversation was deleted, or is no longer connected for {}.", channel(by))
}

/// Shows in place of the form that nobody can reply, and what was entered before.
fn no_sender(by: Channel, typed: &str) -> Markup {
    html! {
        div class="body" {
            div class="note warn" {
                (icon("alert"))
                div { b { "You cannot reply here." } p { (sender_is_gone(by)) " Open the contact to write by another." } }
            }
            @if !typed.is_empty() { p class="soft" { "What you entered:" } pre class="said" tabindex="0" dir="auto" { (typed) } }
        }
    }
}

fn bubble(message: &MessageView, is_newest: bool) -> Markup {
    let class = match (message.direction, message.status) {
        (Direction::Inbound, _) => "bub",
        (_, Status::Failed | Status::Cancelled) => "bub out lost",
        _ => "bub out",
    };
    html! {
        div class=(class) id=[is_newest.then_some("newest")] dir="auto" {
            (shown(message))
            br;
            small class="faint" { a href={ "/messages/" (message.id) } { (time(message.created_at)) } " · " (channel(message.channel)) @if message.direction != Direction::Inbound { " · " (message_state(message.status, message.held_reason.is_some())) } }
            @if let Some(why) = message.error_message.as_deref().filter(|_| message.status == Status::Failed) { br; small { (words(&sentence(why))) } }
        }
    }
}

/// Returns channel, address and sender for a reply: of the newest inbound message, or else the newest outbound one.
fn answer_to(messages: &[MessageView]) -> Option<Way> {
    let inbound = messages.iter().find(|message| message.direction == Direction::Inbound);
    let came = inbound.and_then(|message| Some((message.channel, message.from.clone()?, message.sender_id)));
    came.or_else(|| messages.first().map(|message| (message.channel, message.to.clone(), message.sender_id)))
}

/// What the form of a reply promises: channel, address and sender.
fn way(by: Channel, to: &str, sender: SenderId) -> String {
    format!("{} {to} {sender}", by.as_str())
}

/// Sends a reply.
pub(crate) async fn answer(
    State(app): State<App>,
    Signed(who): Signed,
    Path(id): Path<String>,
    asked: Asked,
    Posted(form): Posted,
) -> Response {
    match send(&app, &who, &id, &form).await {
        Ok(()) => lead_to(&newest_of(&id)),
        Err(error) if matches!(error.code().status(), 400 | 402 | 409 | 422) => {
            page(&app, &who, &id, &asked, StatusCode::BAD_REQUEST, &form.get("text"), &Faults::of(&error)).await
        }
        Err(error) => refuse(&who, &format!("{PLACE}/{id}"), &error),
    }
}

/// Returns the subject of a reply to an email with this one. An email may come without a subject, and none goes out without one.
fn reply_subject(of: Option<&str>) -> String {
    let subject: String = of.unwrap_or_default().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let is_reply = subject.get(..3).is_some_and(|begin| begin.eq_ignore_ascii_case("re:"));
    let whole = if is_reply { subject } else { format!("Re: {subject}") };
    whole.trim_end().chars().take(limits::SUBJECT).collect()
}

async fn send(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<()> {
    let (messages, _) = thread(app, who, id, None).await?;
    let (by, to, sender) = answer_to(&messages).ok_or_else(|| Error::not_found("message to answer"))?;
    // The page does not change while somebody types in it.
    let promised = form.get("way");
    if !promised.is_empty() && promised != way(by, &to, sender) {
        let message = format!(
            "A message came in meanwhile: the reply would now go by {} to {to}, from the sender named below. Send it again if that is right.",
            channel(by)
        );
        return Err(Error::field("text", message));
    }
    let subject = (by == Channel::Email).then(|| reply_subject(messages.iter().find_map(|message| message.subject.as_deref())));
    let message = SendMessage { channel: Some(RequestedChannel::Only(by)), subject, ..SendMessage::text(&to, form.get("text")) };
    if sender_name(app, who, sender, by).await?.is_none() {
        return Err(Error::new(ErrorCode::SenderNotConfigured, sender_is_gone(by)));
    }
    let options = SendOptions { sender: Some(sender.to_string()), idempotency_key: key(&form.get("once")), ..SendOptions::default() };
    let sent = app.core.messages().send_by_hand(&who.caller, message, options).await;
    made(sent.map(|message| message.id), "message").map(drop)
}
