//! `/numbers`: phone numbers of the project, and available ones.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::numbers::{AcquireNumber, ListAvailable, ListNumbers, PricingView};
use nuncio_core::users::SignedIn;
use nuncio_domain::number::{Capability, NumberPricing, NumberStatus};
use nuncio_domain::{Error, ErrorCode, Result};
use serde_json::json;

use crate::App;
use crate::components::{ask_first, data_table, dollars, empty, form_key, head, may_change, pager, state, time, words};
use crate::filters::found_or_fault;
use crate::messages::new::{key, made, once};
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, show_or_refuse};

const PLACE: &str = "/numbers";

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    show_or_refuse(StatusCode::OK, &who, PLACE, "Phone numbers", content(&app, &who, &asked).await, PLACE)
}

async fn content(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let list = ListNumbers { cursor: asked.get("cursor"), ..ListNumbers::default() };
    let (held, next) = app.core.numbers().list(&who.caller, &list).await?;
    let country = asked.get("country").map(|code| code.to_uppercase());
    let (offered, fault) = match &country {
        Some(code) => {
            let wanted = ListAvailable { country_code: code.clone(), contains: asked.get("contains"), capabilities: None, limit: None };
            let (offered, fault) = found_or_fault(app.core.numbers().available(&who.caller, &wanted).await)?;
            (Some(offered), fault)
        }
        None => (None, None),
    };
    Ok(html! {
        (head(None, html! { "Phone numbers" }, html! { "Numbers that your senders can use" }, html! {}))
        section class="panel" {
            header { h2 { "Yours" } }
            @if held.is_empty() { (empty("hash", "No numbers", "Find one below. An operator fills the inventory with nuncio numbers import FILE.csv.", html! {})) }
            @else {
                (data_table("fix", "Your numbers", &[("w2", "State"), ("", "Number"), ("w w2", "For"), ("num w w2", "Renews"), ("num w3", "Action")], html! {
                    @for number in &held {
                        tr {
                            td { @if number.status == NumberStatus::Active { (state("ok", "Active")) } @else { (state("stop", number.status.as_str())) } }
                            td { b { (number.phone_number) } @if let Some(name) = &number.name { " " (words(name)) } }
                            td class="w" { (purposes(&number.capabilities)) }
                            td class="num w" { @if let Some(at) = number.next_renewal_date { (time(at)) } @else { "–" } }
                            td class="num" {
                                @if number.status == NumberStatus::Active && number.sender_id.is_none() && may_change(who) {
                                    (ask_first(&number.id.to_string(), "Release", &format!("Release {}?", number.phone_number), "Others can acquire it at once.",
                                        &format!("{PLACE}/{}", number.id), form_key(who)))
                                } @else if let Some(sender) = number.sender_id { a class="btn small" href={ "/senders/" (sender) } { "Sender" } }
                            }
                        }
                    }
                }))
                (pager(asked.older(PLACE, next)))
            }
        }
        section class="panel" {
            header { h2 { "Find a number" } }
            form class="filters" method="get" action=(PLACE) {
                label class="sr" for="country" { "Country" }
                input class="in" id="country" name="country" value=(country.unwrap_or_default()) placeholder="Country, such as ES" required;
                label class="sr" for="contains" { "Digits" }
                input class="in" id="contains" name="contains" value=(asked.get("contains").unwrap_or_default()) placeholder="Contains digits";
                button class="btn" { "Find" }
            }
            @if let Some(offered) = &offered {
                @if offered.is_empty() { (empty("search", "No such number", fault.as_deref().unwrap_or("Try another country, or fewer digits."), html! {})) }
                @else {
                    (data_table("fix", "Available numbers", &[("", "Number"), ("w w2", "For"), ("num w w2", "Setup"), ("num w2", "A month"), ("num w3", "Action")], html! {
                        @for number in offered {
                            tr {
                                td { (number.phone_number) }
                                td class="w" { (purposes(&number.capabilities)) }
                                td class="num w" { @if number.pricing.is_free_number { "free" } @else { (dollars(number.pricing.upfront_cost)) } }
                                td class="num" { @if number.pricing.is_free_number { "free" } @else { (dollars(number.pricing.monthly_price)) } }
                                td class="num" {
                                    @if may_change(who) {
                                        (ask_first(&number.phone_number, "Acquire", &format!("Acquire {}?", number.phone_number), &charge(&number.pricing), PLACE, html! {
                                            (form_key(who))
                                            input type="hidden" name="once" value=(once(app));
                                            input type="hidden" name="number" value=(number.phone_number);
                                        }))
                                    }
                                }
                            }
                        }
                    }))
                }
            }
        }
    })
}

/// Says what is charged for a number, now and later.
fn charge(pricing: &PricingView) -> String {
    let PricingView { monthly_price, upfront_cost, monthly_cost, is_free_number: is_free } = *pricing;
    match (NumberPricing { monthly_price, upfront_cost, monthly_cost, is_free }).to_acquire().map(dollars) {
        _ if is_free => "It costs nothing.".to_owned(),
        Some(sum) => format!("{sum} is charged now, for setup and the first month; each further month costs {}.", dollars(monthly_price)),
        None => format!("Each month costs {}.", dollars(monthly_price)),
    }
}

pub(crate) async fn acquire(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let taken = async {
        let asked: AcquireNumber = serde_json::from_value(json!({"phoneNumber": form.get("number")}))
            .map_err(|error| Error::field("number", error.to_string()))?;
        let number = app.core.numbers().acquire(&who.caller, asked, key(&form.get("once")).as_deref()).await;
        made(number.map(|number| number.id), "phoneNumber")
    };
    let taken = taken.await.map_err(|error| match error.code() {
        ErrorCode::Conflict => Error::new(ErrorCode::Conflict, "This number was acquired meanwhile. Find another one."),
        _ => error,
    });
    lead_back_or_refuse(&who, PLACE, taken)
}

pub(crate) async fn release(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, _: Posted) -> Response {
    lead_back_or_refuse(&who, PLACE, app.core.numbers().release(&who.caller, &id).await)
}

fn purposes(capabilities: &[Capability]) -> String {
    capabilities.iter().map(|one| one.as_str()).collect::<Vec<_>>().join(", ")
}
