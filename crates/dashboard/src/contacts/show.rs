//! `/contacts/{id}`: one contact with channels, consent and messages.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::ContactView;
use nuncio_core::contacts::suppressions::{CreateSuppression, ListSuppressions, SuppressionView};
use nuncio_core::messages::{ListContactMessages, MessageView};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Error, Result};
use url::form_urlencoded;

use super::{Said, edit, metadata, name};
use crate::App;
use crate::components::{
    ask_first, channel, counted, data_table, empty, figure, form_key, head, icon, may_change, message_state, panel, state, time, words,
};
use crate::conversations::newest_of;
use crate::plain::shown;
use crate::shell::framed;
use crate::signed::{Posted, Signed, lead_to, refuse};

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    page(&app, &who, &id, StatusCode::OK, &Said::default()).await
}

async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said) -> Response {
    match person(app, who, id, said).await {
        Ok((title, content)) => framed(status, who, "/contacts", &title, &content),
        Err(error) => refuse(who, "/contacts", &error),
    }
}

async fn person(app: &App, who: &SignedIn, id: &str, said: &Said) -> Result<(String, Markup)> {
    let contact = app.core.contacts().get(&who.caller, id).await?;
    let asked = ListContactMessages { limit: Some(50), ..ListContactMessages::default() };
    let (messages, older) = app.core.messages().list_of_contact(&who.caller, id, &asked).await?;
    let title = name(&contact);
    let opt_outs = opt_outs(app, who, &contact).await?;
    // Each form shows its own errors.
    let (verb, nothing) = (said.typed.get("do"), Said::default());
    let of = |verbs: &[&str]| if verbs.contains(&verb.as_str()) { said } else { &nothing };
    let content = html! {
        (head(Some(("/contacts", "Contacts")), words(&title), html! { "Known since " (time(contact.created_at)) }, html! {
            a class="btn" href=(newest_of(id)) { "Conversation" }
            @if may_change(who) { a class="btn go" href=(write_to(&contact)) { "Write" } }
        }))
        @if let Some(other) = contact.suggested_merge_with { (suggestion(who, &contact, &other.to_string())) }
        div class="aside" {
            section class="panel" {
                header { h2 { "Messages" } @if older.is_some() { span class="faint" { "the newest " (messages.len()) } } a href={ "/messages?contact=" (contact.id) } { "All messages" } }
                @if messages.is_empty() { (empty("msg", "No messages", "No messages to or from this person.", html! {})) } @else { (table(&messages)) }
            }
            div class="stack" {
                (panel("Channels", html! {
                    @for own in &contact.channels {
                        dl class="facts" {
                            dt { (channel(own.channel)) @if own.is_primary { " " span class="tag" { "primary" } } }
                            dd { (words(&own.identifier)) @if own.verified { " " (state("ok", "verified")) } }
                            @if let Some(at) = own.last_inbound_at { dt { "Last wrote" } dd { (time(at)) } }
                            dt { "Delivered" } dd { (figure(own.metrics.success_count.unsigned_abs())) " of " (counted(own.metrics.total_attempts.unsigned_abs(), "attempt")) }
                        }
                    }
                }))
                (consent(who, &contact, &opt_outs))
                @if may_change(who) { (edit::forms(who, &contact, of(&["rename"]), of(&["add"]), of(&["compare"]))) }
                (metadata::panel(who, &contact, of(&["new", "set", "unset"])))
            }
        }
    };
    Ok((title, content))
}

/// Returns the page that writes to a contact.
fn write_to(contact: &ContactView) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    if let Some(first) = contact.channels.first() {
        query.append_pair("to", &first.identifier);
        // A chat id does not tell its channel.
        if is_chat(first.channel) {
            query.append_pair("channel", first.channel.as_str());
        }
    }
    format!("/messages/new?{}", query.finish())
}

/// Returns whether the identifiers of a channel are chat ids.
const fn is_chat(channel: Channel) -> bool {
    matches!(channel, Channel::Telegram | Channel::Instagram)
}

/// The person is the same in all rows: it has the text in place of the address.
fn table(messages: &[MessageView]) -> Markup {
    let rows = html! {
        @for message in messages {
            @let state = message_state(message.status, message.held_reason.is_some());
            tr {
                td class="w" { (state) }
                td {
                    a class="to plain clip" href={ "/messages/" (message.id) } { (words(&shown(message))) }
                    span class="n" { (state) " " span class="faint" { "· " (channel(message.channel)) } }
                }
                td class="w" { (channel(message.channel)) }
                td class="num" { (time(message.created_at)) }
            }
        }
    };
    data_table("rows fix", "Messages, newest first", &[("w w2", "Status"), ("", "Text"), ("w w2", "Channel"), ("num w3", "Time")], rows)
}

/// Returns the suppressions of all identifiers of a contact.
pub(crate) async fn opt_outs(app: &App, who: &SignedIn, contact: &ContactView) -> Result<Vec<SuppressionView>> {
    let mut found: Vec<SuppressionView> = Vec::new();
    for (_, identifier) in identifiers(contact) {
        let asked = ListSuppressions { identifier: Some(identifier.to_owned()), ..ListSuppressions::default() };
        let new = app.core.suppressions().list(&who.caller, &asked).await?.0;
        found.extend(new.into_iter().filter(|one| one.identifier == identifier));
    }
    found.dedup_by_key(|one| one.id);
    Ok(found)
}

/// Returns each identifier once, with one of its channels.
fn identifiers(contact: &ContactView) -> Vec<(Channel, &str)> {
    let mut found: Vec<(Channel, &str)> = Vec::new();
    for own in &contact.channels {
        if !found.iter().any(|(_, known)| *known == own.identifier) {
            found.push((own.channel, &own.identifier));
        }
    }
    found
}

/// Shows whether each address accepts messages, with a button to change it.
fn consent(who: &SignedIn, contact: &ContactView, opt_outs: &[SuppressionView]) -> Markup {
    let body = html! {
        @for (by, identifier) in identifiers(contact) {
            @let of: Vec<_> = opt_outs.iter().filter(|one| one.identifier == identifier).collect();
            p { b { (words(identifier)) } }
            @if of.is_empty() { p { (state("ok", "May be contacted")) } }
            @for one in &of { p { (state("stop", "Not to be contacted")) " " span class="soft" { (one.reason.as_str().replace('_', " ")) @if let Some(by) = one.channel { " by " (channel(by)) } ", since " (time(one.created_at)) } } }
            @if may_change(who) { div class="row" {
                @if of.is_empty() {
                    form class="plain" method="post" action={ "/contacts/" (contact.id) } {
                        (form_key(who))
                        input type="hidden" name="channel" value=(by);
                        input type="hidden" name="identifier" value=(identifier);
                        button class="btn small" name="do" value="stop" { "Do not contact" }
                    }
                }
                @for one in &of {
                    (ask_first(&one.id.to_string(), "Contact again", &format!("Contact {identifier} again?"), "Messages to this address will be sent again. Do this only if they asked for it.",
                        &format!("/suppressions/{}", one.id), form_key(who)))
                }
            } }
        }
    };
    panel("Consent", body)
}

/// Suggests merging a contact that seems to be the same person.
fn suggestion(who: &SignedIn, contact: &ContactView, other: &str) -> Markup {
    html! {
        div class="note" {
            (icon("person"))
            div { b { "There might be a second contact of the same person." } p { "They have the same name, or one has the other\u{2019}s address in its metadata." } }
            @if may_change(who) {
                form class="row" method="post" action={ "/contacts/" (contact.id) } {
                    (form_key(who))
                    a class="btn" href={ "/contacts/" (contact.id) "/merge?with=" (other) } { "Compare" }
                    button class="btn quiet" name="do" value="dismiss" { "Not the same" }
                }
            }
        }
    }
}

/// Changes a contact, dismisses a merge suggestion, or suppresses an address.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let (verb, page) = (form.get("do"), format!("/contacts/{id}"));
    let done = match verb.as_str() {
        "rename" => edit::rename(&app, &who, &id, &form).await,
        "add" => edit::add(&app, &who, &id, &form).await,
        "new" | "set" | "unset" => metadata::change(&app, &who, &id, &form, &verb).await,
        "compare" => match edit::other(&app, &who, &id, &form).await {
            Ok(other) => return lead_to(&format!("{page}/merge?with={other}")),
            Err(error) => Err(error),
        },
        "erase" => match app.core.contacts().delete(&who.caller, &id).await {
            Ok(()) => return lead_to("/contacts"),
            Err(error) => Err(error),
        },
        "dismiss" => app.core.contacts().dismiss_merge_suggestion(&who.caller, &id).await,
        "stop" => {
            // Chat ids belong to one channel; phone numbers and email addresses are suppressed on all of theirs.
            let channel = Channel::parse(&form.get("channel")).filter(|channel| is_chat(*channel));
            let command = CreateSuppression { identifier: form.get("identifier"), channel, sender_id: None, reason: None };
            app.core.suppressions().create(&who.caller, command, None).await.map(drop)
        }
        _ => Err(Error::field("do", "is not an action of a contact")),
    };
    match done {
        Ok(()) => lead_to(&format!("{page}{}", if matches!(verb.as_str(), "new" | "set" | "unset") { "#details" } else { "" })),
        Err(error) if error.code().status() == 400 && matches!(verb.as_str(), "rename" | "add" | "compare" | "new" | "set" | "unset") => {
            let said = Said::of(&error, form);
            self::page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &page, &error),
    }
}
