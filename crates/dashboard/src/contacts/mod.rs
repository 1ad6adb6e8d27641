//! `/contacts` and `/contacts/{id}`: people who sent or received messages.

mod edit;
mod file;
mod merge;
mod metadata;
mod show;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::file::ImportedPeople;
use nuncio_core::contacts::{ContactView, ListContacts};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};
use serde_json::Value;

use crate::App;
use crate::components::{Faults, channel, data_table, empty, figure, head, icon, may_change, pager, time, words};
use crate::filters::found_or_fault;
use crate::form::{Form, recipient};
use crate::signed::{Asked, Signed, show_or_refuse};
use crate::upload::invalid_rows;

pub(crate) use edit::{create, new};
pub(crate) use file::{export, import};
pub(crate) use merge::{compare, merge};
pub(crate) use show::{act, opt_outs, show};

const NOBODY: &str =
    "No contact has this name, number or address. A number might need its country code, and an email address its capital letters.";

/// Input of the last change, and what is wrong with it.
#[derive(Debug, Default)]
struct Said {
    faults: Faults,
    typed: Form,
    /// The contact that has the address.
    owner: Option<String>,
}

impl Said {
    fn of(error: &Error, typed: Form) -> Self {
        let owner = error.details().get("contactId").and_then(Value::as_str).map(str::to_owned);
        Self { faults: edit::faults(error), typed, owner }
    }
}

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    show_or_refuse(StatusCode::OK, &who, "/contacts", "Contacts", people(&app, &who, &asked, &Said::default(), None).await, "/contacts")
}

/// Renders the list, with the result of adding people.
async fn people(app: &App, who: &SignedIn, asked: &Asked, said: &Said, imported: Option<&ImportedPeople>) -> Result<Markup> {
    let sought = asked.get("q");
    let mut list = ListContacts { cursor: asked.get("cursor"), ..ListContacts::default() };
    match &sought {
        Some(q) if q.contains('@') => list.email = Some(q.clone()),
        Some(q) if recipient(q).starts_with('+') => list.phone_number = Some(recipient(q)),
        q => list.name.clone_from(q),
    }
    let ((contacts, next), fault) = found_or_fault(matching(app, who, sought.as_deref(), &list).await)?;
    Ok(html! {
        (head(None, html! { "Contacts" }, html! { "Newest first" }, html! { @if may_change(who) { a class="btn" href="#file" { "Add people" } } a class="btn" href="/contacts.csv" { "Export as CSV" } }))
        (said.faults.summary())
        @if let Some(imported) = imported { (rows(imported)) }
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
                @if sought.is_some() { (empty("search", "Nothing matches", fault.as_deref().unwrap_or(NOBODY), html! { a class="btn" href="/contacts" { "Clear the filter" } })) }
                @else { (empty("person", "No contacts yet", "People you write to, and people who write to you, appear here. A contact has all addresses of a person.", html! {})) }
            } @else {
                (data_table("rows fix", "Contacts, newest first", &[("w5", "Name"), ("w", "Channels"), ("w w2", "Country"), ("num w3", "Since")], html! {
                    @for contact in &contacts {
                        tr {
                            td { a class="to clip" href={ "/contacts/" (contact.id) } { (words(&name(contact))) @if contact.suggested_merge_with.is_some() { " " span class="tag" { "possible duplicate" } } } }
                            td class="w" { (contact.available_channels.iter().map(|one| channel(*one)).collect::<Vec<_>>().join(", ")) }
                            td class="w" { (contact.country_code.as_deref().unwrap_or("–")) }
                            td class="num" { (time(contact.created_at)) }
                        }
                    }
                }))
                (pager(asked.older("/contacts", next)))
            }
        }
        @if may_change(who) { div class="cols" { (edit::new_form(app, who, said)) (file::form(who, said)) } }
    })
}

/// Returns the contact that has the address sought, otherwise a page of the list.
async fn matching(app: &App, who: &SignedIn, sought: Option<&str>, list: &ListContacts) -> Result<(Vec<ContactView>, Option<String>)> {
    let contacts = app.core.contacts();
    match sought {
        Some(text) => match contacts.find_typed(&who.caller, text, "query.q").await? {
            Some((_, contact)) => Ok((vec![contacts.get(&who.caller, &contact.to_string()).await?], None)),
            None => contacts.list(&who.caller, list).await,
        },
        None => contacts.list(&who.caller, list).await,
    }
}

/// Shows the result of an import.
fn rows(imported: &ImportedPeople) -> Markup {
    html! {
        section class="panel" role="status" {
            header { h2 { (figure(imported.added as u64)) " of " (figure(imported.rows as u64)) " people are new" } }
            div class="body" { p class="soft" { "Already known: " (figure(imported.known as u64)) ". Invalid rows: " (figure(imported.errors.len() as u64)) "." } }
            @if !imported.errors.is_empty() { (invalid_rows(imported.errors.iter().map(|(line, reason)| (line, reason.as_str())))) }
        }
    }
}

/// Returns a contact's name, or else an address.
pub(crate) fn name(contact: &ContactView) -> String {
    let named = contact.display_name.clone().or_else(|| contact.profile_name.clone());
    let address = || contact.channels.first().map(|channel| channel.identifier.clone());
    named.or_else(address).unwrap_or_else(|| contact.id.to_string())
}
