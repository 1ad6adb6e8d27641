//! `/money`: balance, spending and prices.

use axum::extract::{Multipart, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;

use super::prices::{self, Imported, PLACE};
use crate::App;
use crate::components::{Faults, head, rounded_money};
use crate::form::of_another_site;
use crate::signed::{Signed, foreign, refuse, show_or_refuse};

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    page(&app, &who, StatusCode::OK, None).await
}

/// Imports prices of the project; a file with an invalid line changes nothing.
pub(crate) async fn import(State(app): State<App>, Signed(who): Signed, headers: HeaderMap, parts: Multipart) -> Response {
    if of_another_site(&app, &headers) {
        return foreign(StatusCode::FORBIDDEN);
    }
    let mut replace = false;
    let (status, result) = match prices::import(&app, &who, parts, &mut replace).await {
        Ok(Some(prices)) => (StatusCode::OK, Ok(prices)),
        Ok(None) => return foreign(StatusCode::FORBIDDEN),
        Err(error) if error.code().status() == 400 => (StatusCode::BAD_REQUEST, Err(Faults::of(&error))),
        Err(error) => return refuse(&who, PLACE, &error),
    };
    page(&app, &who, status, Some(&Imported { result, replace })).await
}

/// Renders the page with the result of an import.
async fn page(app: &App, who: &SignedIn, status: StatusCode, imported: Option<&Imported>) -> Response {
    show_or_refuse(status, who, PLACE, "Money", content(app, who, imported).await, "/")
}

async fn content(app: &App, who: &SignedIn, imported: Option<&Imported>) -> Result<Markup> {
    let billing = app.core.billing();
    let balance = billing.get_balance(&who.caller).await?;
    let limited = billing.balance(who.caller.tenant).await?.limited;
    let (own, general) = (billing.list_prices(Some(who.project.id)).await?, billing.list_prices(None).await?);
    let line = html! { @if limited { "Spending is limited to the available balance" } @else { "Spending is not limited; see " code { "nuncio balance limit" } } };
    Ok(html! {
        (head(None, html! { "Money" }, line, html! { a class="btn" href="/money/ledger" { "Ledger" } }))
        @if let Some(imported) = imported { (imported.result()) }
        section class="panel" aria-label="Balance" {
            dl class="figs" {
                div { dt { "Available" } dd { (rounded_money(balance.available)) } dd { "US dollars" } }
                div { dt { "Reserved" } dd { (rounded_money(balance.reserved)) } dd { "for messages and broadcasts in flight" } }
                div { dt { "Spent" } dd { (rounded_money(balance.total_spent)) } dd { "so far" } }
            }
        }
        (prices::panel(&own, &general))
        @if who.owns_server { (prices::form(who, imported)) }
    })
}
