//! `/money/ledger`: every movement of money in the environment.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::billing::{LedgerCause, LedgerEntryView, ListLedger};
use nuncio_core::users::SignedIn;
use nuncio_domain::ledger::Purpose;
use nuncio_domain::{Error, Result};

use crate::App;
use crate::components::{data_table, dollars, empty, head, pager, select, time, words};
use crate::filters::{span, span_fields};
use crate::signed::{Asked, Signed, show_or_refuse};

const PLACE: &str = "/money/ledger";
const KINDS: [(&str, &str); 7] = [
    ("", "Every kind"),
    ("deposit", "Added"),
    ("withdrawal", "Withdrawn"),
    ("reserve", "Reserved"),
    ("settle", "Paid from the reserved"),
    ("release", "Released"),
    ("charge", "Paid"),
];

/// Lists the entries, filtered by kind and day.
pub(crate) async fn ledger(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    show_or_refuse(StatusCode::OK, &who, "/money", "Ledger", content(&app, &who, &asked).await, PLACE)
}

async fn content(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let kind = asked.get("kind").unwrap_or_default();
    let purpose = match kind.as_str() {
        "" => None,
        name => Some(Purpose::parse(name).ok_or_else(|| Error::field("kind", format!("{name:?} is not a kind of entry")))?),
    };
    let (since, until) = span(asked)?;
    let list = ListLedger { purpose, since, until, cursor: asked.get("cursor") };
    let (entries, next) = app.core.billing().list_ledger(&who.caller, &list).await?;
    let filtered = ["kind", "since", "until"].iter().any(|name| asked.get(name).is_some());
    Ok(html! {
        (head(Some(("/money", "Money")), html! { "Ledger" }, html! { "Every movement of money, newest first. A message reserves the most that it can cost; then it pays, and releases the rest." }, html! {}))
        section class="panel" {
            form class="filters" method="get" action=(PLACE) {
                div class="field" { (select("kind", "Kind", &KINDS, &kind, true)) }
                (span_fields(asked))
                button class="btn" { "Filter" }
            }
            @if !entries.is_empty() { (table(&entries)) (pager(asked.older(PLACE, next))) }
            @else if filtered { (empty("search", "Nothing matches", "No entry matches all of these filters.", html! { a class="btn" href=(PLACE) { "Clear all filters" } })) }
            @else { (empty("coin", "No entries yet", "What is added, reserved, paid and released is listed here. Without prices, nothing is.", html! { a class="btn" href="/money" { "Prices" } })) }
        }
    })
}

fn table(entries: &[LedgerEntryView]) -> Markup {
    let rows = html! {
        @for entry in entries {
            tr {
                td { (cause(&entry.cause)) span class="n faint" { (word(entry.purpose)) } }
                td class="w" { (word(entry.purpose)) }
                td class="num" { (dollars(entry.amount)) }
                td class="num" { (time(entry.recorded_at)) }
            }
        }
    };
    data_table("fix", "Entries, newest first", &[("", "For"), ("w w4", "Kind"), ("num w2", "Amount"), ("num w2", "Time")], rows)
}

/// Returns the word that the filter has for a purpose.
fn word(purpose: Purpose) -> &'static str {
    KINDS.iter().find(|(name, _)| *name == purpose.as_str()).map_or(purpose.as_str(), |(_, word)| word)
}

fn cause(cause: &LedgerCause) -> Markup {
    html! {
        @match cause {
            LedgerCause::Operator => "The operator",
            LedgerCause::Message(id) => { a class="clip" href={ "/messages/" (id) } { "Message " (id) } }
            LedgerCause::Broadcast(id, name) => { a class="clip" href={ "/broadcasts/" (id) } { span { "Broadcast " } (words(name)) } }
            LedgerCause::Number(Some(number)) => { a class="clip" href="/numbers" { "Number " (number) } }
            LedgerCause::Number(None) => "A number, since released",
        }
    }
}
