//! `/money`: balance, spending and prices.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;
use nuncio_domain::price::Price;

use crate::App;
use crate::components::{channel, empty, figure, head, money, rounded_money, time};
use crate::shell::shell;
use crate::signed::{Signed, refuse};

/// Maximum number of prices shown.
const SHOWN: usize = 200;

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    match content(&app, &who).await {
        Ok(content) => shell(&who, "/money", "Money", &content),
        Err(error) => refuse(&who, "/", &error),
    }
}

async fn content(app: &App, who: &SignedIn) -> Result<Markup> {
    let billing = app.core.billing();
    let balance = billing.get_balance(&who.caller).await?;
    let limited = billing.balance(who.caller.tenant).await?.limited;
    let mut prices = billing.list_prices(Some(who.project.id)).await?;
    prices.extend(billing.list_prices(None).await?);
    Ok(html! {
        (head(None, html! { "Money" }, html! { @if limited { "Spending is limited to the available balance" } @else { "Spending is not limited; see " code { "nuncio balance limit" } } }, html! {}))
        section class="panel" aria-label="Balance" {
            dl class="figs" {
                div { dt { "Available" } dd { (rounded_money(balance.available)) } dd { "US dollars" } }
                div { dt { "Reserved" } dd { (rounded_money(balance.reserved)) } dd { "for messages and broadcasts in flight" } }
                div { dt { "Spent" } dd { (rounded_money(balance.total_spent)) } dd { "so far" } }
            }
        }
        section class="panel" {
            header { h2 { "Prices" } @if prices.len() > SHOWN { span class="faint" { "the first " (SHOWN) " of " (figure(prices.len() as u64)) } } }
            @if prices.is_empty() {
                (empty("coin", "No prices", "Nothing is charged without them. An operator imports a list with nuncio prices import FILE.csv.", html! {}))
            } @else { (list(&prices)) }
        }
    })
}

fn list(prices: &[Price]) -> Markup {
    html! {
        table class="fix" {
            caption class="sr" { "Prices" }
            thead { tr { th scope="col" { "Channel" } th scope="col" class="w1" { "Country" } th scope="col" class="w w2" { "For each" } th scope="col" class="num w2" { "Carrier" } th scope="col" class="num w2" { "Fee" } th scope="col" class="num w w3" { "From" } } }
            tbody {
                @for price in prices.iter().take(SHOWN) {
                    tr {
                        td { (channel(price.channel.as_str())) }
                        td { (price.country) }
                        td class="w" { (price.unit) }
                        td class="num" { (money(Some(price.cost.provider))) }
                        td class="num" { (money(Some(price.cost.fee))) }
                        td class="num w" { (time(price.effective_from)) }
                    }
                }
            }
        }
    }
}
