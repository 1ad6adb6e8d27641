//! `/contacts` and `/contacts/{id}`: who was written to and who wrote.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::{ContactView, ListContacts};
use nuncio_core::messages::ListContactMessages;
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;

use crate::App;
use crate::components::{channel, empty, head, icon, pager, state, time, value, words};
use crate::messages::list::table;
use crate::shell::shell;
use crate::signed::{Asked, Signed, refuse};

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match people(&app, &who, &asked).await {
        Ok(content) => shell(&who, "/contacts", "Contacts", &content),
        Err(error) => refuse(&who, "/contacts", &error),
    }
}

async fn people(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let sought = asked.get("q");
    let mut list = ListContacts { cursor: asked.get("cursor"), ..ListContacts::default() };
    match &sought {
        Some(q) if q.contains('@') => list.email = Some(q.clone()),
        Some(q) if q.starts_with('+') => list.phone_number = Some(q.clone()),
        q => list.name.clone_from(q),
    }
    let (contacts, next) = app.core.contacts().list(&who.caller, &list).await?;
    Ok(html! {
        (head(None, html! { "Contacts" }, html! { "Newest first" }, html! {}))
        section class="panel" aria-label="List" {
            form class="filters" method="get" action="/contacts" {
                div class="find" {
                    label class="sr" for="f" { "Name, number or email address" }
                    (icon("search"))
                    input class="in" id="f" name="q" type="search" value=(sought.as_deref().unwrap_or_default()) placeholder="Name, number or email address";
                }
                button class="btn" { "Filter" }
            }
            @if contacts.is_empty() {
                @if sought.is_some() { (empty("search", "Nothing matches", "Nobody has this name, number or address.", html! { a class="btn" href="/contacts" { "Clear the filter" } })) }
                @else { (empty("person", "No contacts yet", "Whoever you write to, and whoever writes to you, shows here. A person keeps all their addresses.", html! {})) }
            } @else {
                table class="rows fix" {
                    caption class="sr" { "Contacts, newest first" }
                    thead { tr { th scope="col" class="w5" { "Name" } th scope="col" class="w" { "Channels" } th scope="col" class="w w2" { "Country" } th scope="col" class="num w3" { "Since" } } }
                    tbody {
                        @for contact in &contacts {
                            tr {
                                td { a class="to clip" href={ "/contacts/" (contact.id) } { (words(&name(contact))) } }
                                td class="w" { (contact.available_channels.iter().map(|name| channel(name)).collect::<Vec<_>>().join(", ")) }
                                td class="w" { (contact.country_code.as_deref().unwrap_or("–")) }
                                td class="num" { (time(contact.created_at)) }
                            }
                        }
                    }
                }
                (pager(asked.older("/contacts", next)))
            }
        }
    })
}

/// The name of a contact, or an address.
pub(crate) fn name(contact: &ContactView) -> String {
    let named = contact.display_name.clone().or_else(|| contact.profile_name.clone());
    let address = || contact.channels.first().map(|channel| channel.identifier.clone());
    named.or_else(address).unwrap_or_else(|| contact.id.to_string())
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    match person(&app, &who, &id).await {
        Ok((title, content)) => shell(&who, "/contacts", &title, &content),
        Err(error) => refuse(&who, "/contacts", &error),
    }
}

async fn person(app: &App, who: &SignedIn, id: &str) -> Result<(String, Markup)> {
    let contact = app.core.contacts().get(&who.caller, id).await?;
    let asked = ListContactMessages { limit: Some(50), ..ListContactMessages::default() };
    let messages = app.core.messages().list_of_contact(&who.caller, id, &asked).await?.0;
    let title = name(&contact);
    let write_to = contact.channels.first().map(|channel| channel.identifier.clone()).unwrap_or_default();
    let write: String = url::form_urlencoded::byte_serialize(write_to.as_bytes()).collect();
    let content = html! {
        (head(Some(("/contacts", "Contacts")), words(&title), html! { "Known since " (time(contact.created_at)) }, html! { a class="btn" href={ "/conversations/" (contact.id) } { "Conversation" } a class="btn go" href={ "/messages/new?to=" (write) } { "Write" } }))
        div class="aside" {
            section class="panel" {
                header { h2 { "Messages" } }
                @if messages.is_empty() { (empty("msg", "No messages", "Nothing was sent to this person, and nothing came.", html! {})) } @else { (table(&messages)) }
            }
            div class="stack" {
                section class="panel" {
                    header { h2 { "Channels" } }
                    div class="body" {
                        @for own in &contact.channels {
                            dl class="facts" {
                                dt { (channel(own.channel)) @if own.is_primary { " " span class="tag" { "primary" } } }
                                dd { (words(&own.identifier)) @if own.verified { " " (state("ok", "verified")) } }
                                @if let Some(at) = own.last_inbound_at { dt { "Last wrote" } dd { (time(at)) } }
                                dt { "Arrived" } dd { (own.metrics.success_count) " of " (own.metrics.total_attempts) }
                            }
                        }
                    }
                }
                section class="panel" {
                    header { h2 { "Details" } }
                    div class="body" {
                        dl class="facts" { @for (key, value) in &contact.metadata { dt { (words(key)) } dd { code { (value.to_string()) } } } }
                        (value(&contact.id.to_string()))
                    }
                }
            }
        }
    };
    Ok((title, content))
}
