//! `/broadcasts/{id}/recipients`: the recipients of a broadcast one by one.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastContactView, ListBroadcastContacts};
use nuncio_core::users::SignedIn;
use nuncio_domain::broadcast::{ContactStatus, Status};
use nuncio_domain::message::FailureCode;
use nuncio_domain::{ErrorCode, Result};

use super::act::{is_too_late, lead_to_too_late};
use crate::App;
use crate::components::{
    ask_first, channel, count, data_table, empty, form_key, head, may_change, money, pager, select, state, time, words,
};
use crate::form::recipient;
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, lead_to, page_of_list, show_or_refuse};

const STATUSES: [(&str, &str); 7] = [
    ("", "Any status"),
    ("pending", "Waiting"),
    ("queued", "Queued"),
    ("sending", "In flight"),
    ("delivered", "Delivered"),
    ("failed", "Failed"),
    ("skipped", "Skipped"),
];

/// Lists the recipients, by status or by address.
pub(crate) async fn recipients(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, asked: Asked) -> Response {
    show_or_refuse(StatusCode::OK, &who, "/broadcasts", "Recipients", content(&app, &who, &id, &asked).await, &format!("/broadcasts/{id}"))
}

/// Removes a recipient from a draft.
pub(crate) async fn remove(
    State(app): State<App>,
    Signed(who): Signed,
    Path((id, contact)): Path<(String, String)>,
    Posted(form): Posted,
) -> Response {
    let list = page_of_list(&form, &format!("/broadcasts/{id}/recipients"));
    match app.core.broadcasts().delete_contact(&who.caller, &id, &contact).await {
        Err(error) if is_too_late(&error) => lead_to_too_late(&id),
        // A second click.
        Err(error) if error.code() == ErrorCode::NotFound => lead_to(&list),
        removed => lead_back_or_refuse(&who, &list, removed),
    }
}

/// Removes all recipients from a draft.
pub(crate) async fn remove_all(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, _: Posted) -> Response {
    match app.core.broadcasts().delete_contacts(&who.caller, &id).await {
        Err(error) if is_too_late(&error) => lead_to_too_late(&id),
        removed => lead_back_or_refuse(&who, &format!("/broadcasts/{id}"), removed),
    }
}

async fn content(app: &App, who: &SignedIn, id: &str, asked: &Asked) -> Result<Markup> {
    let broadcasts = app.core.broadcasts();
    let broadcast = broadcasts.get(&who.caller, id).await?;
    let (sought, status) = (asked.get("q"), asked.get("status"));
    let (found, next) = match &sought {
        Some(sought) => (broadcasts.find_contacts(&who.caller, id, &recipient(sought)).await?, None),
        None => {
            let list = ListBroadcastContacts { status: status.clone(), cursor: asked.get("cursor"), ..ListBroadcastContacts::default() };
            broadcasts.list_contacts(&who.caller, id, &list).await?
        }
    };
    let (page, place) = (format!("/broadcasts/{}", broadcast.id), format!("/broadcasts/{}/recipients", broadcast.id));
    let older = asked.older(&place, next);
    let removal = (broadcast.status == Status::Draft && may_change(who)).then(|| Removal { who, place: &place, back: asked.this(&place) });
    let all = || html! { a class="btn" href=(place) { "All recipients" } };
    Ok(html! {
        (head(Some((&page, &broadcast.name)), html! { "Recipients" }, html! { "Newest first" }, html! {
            @if let Some(Removal { who, .. }) = removal.as_ref().filter(|_| broadcast.total_contacts > 0) {
                (ask_first("remove-all", "Remove all recipients", &format!("Remove {} recipients?", count(broadcast.total_contacts)), "The draft stays, without recipients.",
                    &format!("{page}/no-recipients"), form_key(who)))
            }
        }))
        section class="panel" aria-label="List" {
            form class="filters" method="get" action=(place) {
                (select("status", "Status", &STATUSES, status.as_deref().unwrap_or_default(), false))
                button class="btn" { "Filter" }
            }
            form class="filters" method="get" action=(place) {
                label class="sr" for="of" { "Number or address" }
                input class="in" id="of" name="q" type="search" value=(sought.as_deref().unwrap_or_default()) placeholder="Whole number or address";
                button class="btn" { "Find" }
            }
            @if !found.is_empty() { (table(&found, removal.as_ref())) (pager(older)) }
            @else if let Some(older) = older { (empty("search", "Nothing so far", "None of the newest recipients has this status. There are older ones.", html! { a class="btn" href=(older) { "Search older recipients" } (all()) })) }
            @else if sought.is_some() { (empty("search", "Not a recipient", "This broadcast has no recipient with this number or address.", all())) }
            @else if status.is_some() { (empty("search", "Nothing matches", "No recipient has this status.", all())) }
            @else { (empty("person", "No recipients yet", "Add them from a file or from your contacts.", html! { a class="btn" href=(page) { "The broadcast" } })) }
        }
    })
}

/// How to remove recipients: as whom, the page to post to, and the one to come back to.
struct Removal<'a> {
    who: &'a SignedIn,
    place: &'a str,
    back: String,
}

/// Renders the recipients, with `removal` if they can be removed.
fn table(recipients: &[BroadcastContactView], removal: Option<&Removal<'_>>) -> Markup {
    let rows = html! {
        @for one in recipients { (row(one, removal)) }
    };
    let mut columns =
        vec![("w5", "Recipient"), ("w w2", "Status"), ("w", "Reason"), ("w w2", "Channel"), ("num w w1", "Cost"), ("num w2", "Time")];
    columns.extend(removal.map(|_| ("num w2", "Action")));
    data_table("rows fix", "Recipients, newest first", &columns, rows)
}

fn row(one: &BroadcastContactView, removal: Option<&Removal<'_>>) -> Markup {
    let shown = shown(one.status);
    let address = if one.recipient.is_empty() { "erased" } else { &one.recipient };
    let reason = one.error_message.as_deref().or(one.error_code.map(FailureCode::as_str));
    html! {
        tr {
            td {
                @if let Some(message) = one.message_id { a class="to clip" href={ "/messages/" (message) } { (words(address)) } }
                @else { span class="clip" { (words(address)) } }
                @if let Some(reason) = reason { span class="clip soft n" { (words(reason)) } }
                span class="n" { (shown) }
            }
            td class="w" { (shown) }
            td class="w" { @if let Some(reason) = reason { span class="clip soft" { (words(reason)) } } }
            td class="w" { @if let Some(name) = one.channel { (channel(name)) } }
            td class="num w" { (money(one.cost)) }
            td class="num" { (time(one.processed_at.unwrap_or(one.created_at))) }
            @if let Some(Removal { who, place, back }) = removal {
                td class="num" {
                    form class="plain" method="post" action={ (place) "/" (one.id) } {
                        (form_key(who))
                        input type="hidden" name="back" value=(back);
                        button class="btn small quiet" { "Remove" span class="sr" { " " (address) } }
                    }
                }
            }
        }
    }
}

fn shown(status: ContactStatus) -> Markup {
    match status {
        ContactStatus::Pending => state("", "Waiting"),
        ContactStatus::Queued => state("", "Queued"),
        ContactStatus::Sending => state("move", "In flight"),
        ContactStatus::Delivered => state("ok", "Delivered"),
        ContactStatus::Skipped => state("stop", "Skipped"),
        ContactStatus::Failed => state("bad", "Failed"),
    }
}
