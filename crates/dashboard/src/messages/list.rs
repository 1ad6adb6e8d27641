//! `/messages`: lists messages, newest first. Filters are part of the URL.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::{ContactView, ListContacts};
use nuncio_core::messages::{ListMessages, MessageView};
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;
use nuncio_domain::message::Direction;
use url::form_urlencoded;

use crate::App;
use crate::components::{
    channel, channels, empty, head, icon, may_change, message_state, money, pager, resource_page, select, time, words,
};
use crate::contacts::name;
use crate::filters::found_or_fault;
use crate::form::recipient;
use crate::plain::shown;
use crate::shell::{Live, followed};
use crate::signed::{Asked, Signed, lead_to, refuse};

/// The value of the status filter that stands for held messages, whatever their status.
const HELD: &str = "held";
const STATUSES: [(&str, &str); 9] = [
    ("", "Any status"),
    ("queued,scheduled", "Waiting"),
    (HELD, "Held for a decision"),
    ("sending,sent", "In flight"),
    ("delivered,read", "Delivered"),
    ("failed", "Failed"),
    ("cancelled", "Cancelled"),
    ("received", "Received"),
    ("sent", "Sent, no receipt yet"),
];
const PLACES: [(&str, &str); 4] = [("", "Automatic"), ("to", "Recipients"), ("text", "Texts"), ("metadata", "Metadata")];
const CHANNELS: [(&str, &str); 7] = channels(("", "Any channel"));

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    if let Some(page) = asked.get("q").as_deref().and_then(resource_page) {
        return lead_to(&page);
    }
    match content(&app, &who, &asked).await {
        // Only the newest page is refreshed.
        Ok(content) => {
            let live = asked.get("cursor").is_none().then_some(Live::Rows);
            followed(StatusCode::OK, &who, "/messages", "Messages", &content, live)
        }
        Err(error) => refuse(&who, "/messages", &error),
    }
}

/// Maximum number of people shown above the messages that match.
const PEOPLE: u32 = 5;

/// People with this name, if the search may mean one.
async fn people(app: &App, who: &SignedIn, asked: &Asked) -> Result<Vec<ContactView>> {
    let Some(name) = asked.get("q").filter(|sought| search_field(sought) == "text") else { return Ok(Vec::new()) };
    if asked.get("cursor").is_some() || asked.get("in").is_some_and(|chosen| !chosen.is_empty()) {
        return Ok(Vec::new());
    }
    let named = ListContacts { name: Some(name), limit: Some(PEOPLE), ..ListContacts::default() };
    Ok(app.core.contacts().list(&who.caller, &named).await?.0)
}

fn people_panel(people: &[ContactView], name: &str) -> Markup {
    let all: String = form_urlencoded::byte_serialize(name.as_bytes()).collect();
    html! {
        section class="panel" aria-label="People" {
            header { h2 { "People with this name" } a href={ "/contacts?q=" (all) } { "All" } }
            table class="rows fix" {
                caption class="sr" { "People with this name" }
                tbody {
                    @for person in people {
                        @let name = person.display_name.as_deref().or(person.profile_name.as_deref()).unwrap_or_default();
                        tr {
                            td { a class="to clip" href={ "/contacts/" (person.id) } { (words(name)) } }
                            td { span class="clip" { (words(person.primary_phone.as_deref().or(person.primary_email.as_deref()).unwrap_or_default())) } }
                            td class="num" { a href={ "/messages?contact=" (person.id) } { "Messages" } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the broadcast or contact that the list is limited to: its field in the query, its name and its id.
async fn scopes(app: &App, who: &SignedIn, asked: &Asked) -> Vec<(&'static str, String, String)> {
    let mut scopes = Vec::new();
    if let Some(id) = asked.get("broadcast") {
        let named = app.core.broadcasts().get(&who.caller, &id).await;
        scopes.push(("broadcast", named.map_or_else(|_| id.clone(), |broadcast| broadcast.name), id));
    }
    if let Some(id) = asked.get("contact") {
        let named = app.core.contacts().get(&who.caller, &id).await;
        scopes.push(("contact", named.map_or_else(|_| id.clone(), |contact| name(&contact)), id));
    }
    scopes
}

/// Returns the field to search by default: metadata for `name=value`, the recipient for a phone number or address, otherwise the text.
fn search_field(sought: &str) -> &'static str {
    let names = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c));
    let digits = sought.chars().filter(char::is_ascii_digit).count();
    let number = digits >= 5 && sought.chars().all(|c| c.is_ascii_digit() || "+()-./ ".contains(c));
    if sought.split_once('=').is_some_and(|(name, _)| names(name)) {
        "metadata"
    } else if number || (sought.contains('@') && !sought.contains(' ')) {
        "to"
    } else {
        "text"
    }
}

async fn content(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let sought = asked.get("q");
    let mut list = ListMessages {
        status: asked.get("status").filter(|status| status != HELD),
        held_reason: asked.get("status").filter(|status| status == HELD).map(|_| ListMessages::any_held_reason()),
        channel: asked.get("channel"),
        broadcast_id: asked.get("broadcast"),
        contact_id: asked.get("contact"),
        cursor: asked.get("cursor"),
        ..ListMessages::default()
    };
    let chosen = asked.get("in").unwrap_or_default();
    let mut recipient_sought = None;
    if let Some(sought) = &sought {
        match (if chosen.is_empty() { search_field(sought) } else { chosen.as_str() }, sought.split_once('=')) {
            ("to", _) => recipient_sought = Some(sought),
            ("metadata", Some((name, value))) => drop(list.metadata.insert(name.trim().to_owned(), value.trim().to_owned())),
            _ => list.text = Some(sought.clone()),
        }
    }
    let filtered = asked.get("status").is_some()
        || list.channel.is_some()
        || sought.is_some()
        || list.broadcast_id.is_some()
        || list.contact_id.is_some();
    let listed = async {
        if let Some(typed) = recipient_sought {
            let known = app.core.contacts().find_typed(&who.caller, typed, "query.q").await?;
            list.to = Some(known.map_or_else(|| recipient(typed), |(address, _)| address.identifier));
        }
        app.core.messages().list(&who.caller, &list).await
    };
    let ((messages, next), fault) = found_or_fault(listed.await)?;
    let people = if fault.is_none() { people(app, who, asked).await? } else { Vec::new() };
    let name = sought.clone().unwrap_or_default();
    let scopes = scopes(app, who, asked).await;
    let status = asked.get("status").unwrap_or_default();
    let on = asked.get("channel").unwrap_or_default();
    Ok(html! {
        (head(None, html! { "Messages" }, html! { "Newest first" }, html! { @if may_change(who) { a class="btn go" href="/messages/new" { "New message" } } }))
        @if !people.is_empty() { (people_panel(&people, &name)) }
        section class="panel" aria-label="List" {
            @for (field, name, id) in &scopes {
                header {
                    p { "Only messages of the " (field) " " a href={ "/" (field) "s/" (id) } { (words(name)) } }
                    a href=(asked.without("/messages", field)) { "Show all" }
                }
            }
            form class="filters" method="get" action="/messages" {
                @for (field, _, id) in &scopes { input type="hidden" name=(field) value=(id); }
                div class="find" {
                    label class="sr" for="f" { "Number, address, person, id, text, or name=value of metadata" }
                    (icon("search"))
                    input class="in" id="f" name="q" type="search" value=(sought.unwrap_or_default()) placeholder="Number, address, person, id, text";
                }
                (select("in", "Look in", &PLACES, &chosen, false))
                (select("status", "Status", &STATUSES, &status, false))
                (select("channel", "Channel", &CHANNELS, &on, false))
                button class="btn" { "Filter" }
            }
            @if messages.is_empty() {
                @if let Some(older) = asked.older("/messages", next.clone()) {
                    (empty("search", "Nothing so far", "None of the newest messages matches. There are older ones.", html! { a class="btn" href=(older) { "Search older messages" } a class="btn" href="/messages" { "Clear all filters" } }))
                } @else if filtered {
                    (empty("search", "Nothing matches", fault.as_deref().unwrap_or("No message matches all of these filters."), html! { a class="btn" href="/messages" { "Clear all filters" } }))
                } @else {
                    (empty("msg", "No messages yet", "All messages that you send and receive appear here, with their status.", html! { @if may_change(who) { a class="btn go" href="/messages/new" { "Send the first one" } } }))
                }
            } @else {
                (table(&messages))
                (pager(asked.older("/messages", next)))
            }
        }
    })
}

pub(crate) fn table(messages: &[MessageView]) -> Markup {
    html! {
        table class="rows fix" {
            caption class="sr" { "Messages, newest first" }
            thead {
                tr {
                    th scope="col" class="w w2" { "Status" }
                    th scope="col" class="w5" { "To or from" }
                    th scope="col" class="w" { "Text" }
                    th scope="col" class="w w2" { "Channel" }
                    th scope="col" class="num w w1" { "Cost" }
                    th scope="col" class="num w2" { "Time" }
                }
            }
            tbody { @for message in messages { (row(message)) } }
        }
    }
}

fn row(message: &MessageView) -> Markup {
    let inbound = message.direction == Direction::Inbound;
    let person = if inbound { message.from.as_deref().unwrap_or("–") } else { &message.to };
    let text = shown(message);
    let state = message_state(message.status, message.held_reason.is_some());
    html! {
        tr {
            td class="w" { (state) }
            td {
                a class="to clip" href={ "/messages/" (message.id) } { @if inbound { span { "from " } } (words(person)) }
                span class="clip soft n" { (words(&text)) }
                span class="n" { (state) " " span class="faint" { "· " (channel(message.channel)) } }
            }
            td class="w" { span class="clip soft" { (words(&text)) } }
            td class="w" { (channel(message.channel)) }
            td class="num w" { (money(message.cost_total)) }
            td class="num" { (time(message.created_at)) }
        }
    }
}
