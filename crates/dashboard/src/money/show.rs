//! `/money`: balance, spending and prices.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;

use super::prices::{self, Imported};
use crate::App;
use crate::components::{head, rounded_money};
use crate::shell::framed;
use crate::signed::{Signed, refuse};

pub(super) const PLACE: &str = "/money";

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    page(&app, &who, StatusCode::OK, None).await
}

/// Renders the page with the result of an import.
pub(super) async fn page(app: &App, who: &SignedIn, status: StatusCode, imported: Option<&Imported>) -> Response {
    match content(app, who, imported).await {
        Ok(content) => framed(status, who, PLACE, "Money", &content),
        Err(error) => refuse(who, "/", &error),
    }
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
        @if who.owns_server { (prices::form(who)) }
    })
}
