//! `/suppressions`: recipients that must not be contacted.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::suppressions::{CreateSuppression, ListSuppressions};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Error, Result};

use crate::App;
use crate::components::{
    Faults, Field, ask_first, channel, choice, data_table, empty, form_key, form_panel, head, may_change, pager, time, words,
};
use crate::filters::found_or_fault;
use crate::form::{Form, recipient};
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, lead_to, page_of_list, refuse, show_or_refuse};

const PLACE: &str = "/suppressions";
const CHANNELS: [(&str, &str); 3] = [("", "By its form"), ("telegram", "Telegram"), ("instagram", "Instagram")];

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    page(&app, &who, &asked, StatusCode::OK, &Form::default(), &Faults::default()).await
}

async fn page(app: &App, who: &SignedIn, asked: &Asked, status: StatusCode, typed: &Form, faults: &Faults) -> Response {
    show_or_refuse(status, who, PLACE, "Suppressions", content(app, who, asked, typed, faults).await, "/")
}

async fn content(app: &App, who: &SignedIn, asked: &Asked, typed: &Form, faults: &Faults) -> Result<Markup> {
    let list = ListSuppressions {
        identifier: asked.get("q").map(|text| recipient(&text)),
        cursor: asked.get("cursor"),
        ..ListSuppressions::default()
    };
    let ((found, next), fault) = found_or_fault(app.core.suppressions().list(&who.caller, &list).await)?;
    let back = asked.this(PLACE);
    Ok(html! {
        (head(None, html! { "Suppressions" }, html! { "Recipients that opted out, and addresses that do not exist" }, html! {}))
        section class="panel" {
            form class="filters" method="get" action=(PLACE) {
                label class="sr" for="of" { "Recipient" }
                input class="in" id="of" name="q" type="search" value=(asked.get("q").unwrap_or_default()) placeholder="Number, address or id";
                button class="btn" { "Find" }
            }
            @if found.is_empty() && asked.get("q").is_some() {
                (empty("search", "Nothing matches", fault.as_deref().unwrap_or("This recipient is not suppressed."), html! { a class="btn" href=(PLACE) { "Clear the filter" } }))
            } @else if found.is_empty() {
                (empty("check", "No suppressions", "Recipients who reply STOP, unsubscribe or complain are added automatically, as are addresses that bounce.", html! {}))
            } @else {
                (data_table("fix", "Suppressions, newest first", &[("", "Recipient"), ("w2", "Why"), ("w w2", "Channel"), ("num w w2", "Since"), ("num w3", "Action")], html! {
                    @for one in &found {
                        tr {
                            td { span class="clip" { (words(&one.identifier)) } }
                            td { (one.reason.as_str().replace('_', " ")) }
                            td class="w" { (one.channel.map_or("all", channel)) }
                            td class="num w" { (time(one.created_at)) }
                            td class="num" {
                                @if may_change(who) {
                                    (ask_first(&one.id.to_string(), "Remove", &format!("Contact {} again?", one.identifier), "Messages to this recipient will be sent again. Do this only if they asked for it.",
                                        &format!("{PLACE}/{}", one.id), html! { (form_key(who)) input type="hidden" name="back" value=(back); }))
                                }
                            }
                        }
                    }
                }))
                (pager(asked.older(PLACE, next)))
            }
        }
        @if may_change(who) {
            (form_panel(who, "Add a recipient", PLACE, html! {
                (faults.summary())
                (Field::new("identifier", "Recipient", "A phone number with its country code, an email address, or a chat id.", &typed.get("identifier")).show(faults))
                (choice("channel", "Channel", &CHANNELS, &typed.get("channel"), "", faults))
                div class="row" { button class="btn go" { "Do not contact" } }
            }))
        }
    })
}

pub(crate) async fn add(State(app): State<App>, Signed(who): Signed, asked: Asked, Posted(form): Posted) -> Response {
    let added = async {
        let channel = match form.get("channel").as_str() {
            "" => None,
            name => Some(Channel::parse(name).ok_or_else(|| Error::field("channel", format!("{name:?} is not a channel")))?),
        };
        let command = CreateSuppression { identifier: recipient(&form.get("identifier")), channel, sender_id: None, reason: None };
        app.core.suppressions().create(&who.caller, command, None).await
    };
    match added.await {
        Ok(_) => lead_to(PLACE),
        Err(error) if error.code().status() == 400 => page(&app, &who, &asked, StatusCode::BAD_REQUEST, &form, &Faults::of(&error)).await,
        Err(error) => refuse(&who, PLACE, &error),
    }
}

pub(crate) async fn remove(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    lead_back_or_refuse(&who, &page_of_list(&form, PLACE), app.core.suppressions().delete(&who.caller, &id).await)
}
