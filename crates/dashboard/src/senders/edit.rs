//! Creates and edits senders and their webhooks.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::senders::{CreateSender, SenderView, UpdateSender};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Redacted, Result, address};

use super::show::{Said, page};
use crate::App;
use crate::components::{Faults, Field, dollars, head, may_change, words};
use crate::form::Form;
use crate::shell::{form_key, framed};
use crate::signed::{Posted, Signed, lead_to, refuse};

pub(crate) async fn new(Signed(who): Signed) -> Response {
    form_page(&who, StatusCode::OK, ("", ""), &Faults::default())
}

fn form_page(who: &SignedIn, status: StatusCode, (name, phone): (&str, &str), faults: &Faults) -> Response {
    let field = |name, label, hint, value, required| Field { name, label, hint, kind: "text", value, autocomplete: "off", required };
    let content = html! {
        (head(Some(("/senders", "Senders")), html! { "New sender" }, html! { "A sender has a name, a number, and one connection for each channel." }, html! {}))
        form class="panel" method="post" action="/senders/new" {
            div class="body" {
                (form_key(who))
                (faults.summary())
                (field("name", "Name", "For your reference.", name, true).show(faults))
                (field("phoneNumber", "Phone number", "With its country code, such as +34 600 111 222, if it has one.", phone, false).show(faults))
                label class="check" { input type="checkbox" name="default"; "Use for messages without a sender" }
            }
            footer { button class="btn go push" { "Create the sender" } }
        }
    };
    framed(status, who, "/senders", "New sender", &content)
}

pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let (name, phone) = (form.get("name"), form.get("phoneNumber"));
    let command = CreateSender {
        name: name.trim().to_owned(),
        phone_number: to_e164(&phone),
        set_as_default: Some(form.get("default") == "on"),
        ..CreateSender::default()
    };
    match app.core.senders().create(&who.caller, command, None).await {
        Ok(sender) => lead_to(&format!("/senders/{}", sender.id)),
        Err(error) if error.code().status() == 400 => form_page(&who, StatusCode::BAD_REQUEST, (&name, &phone), &Faults::of(&error)),
        Err(error) => refuse(&who, "/senders", &error),
    }
}

/// Normalises a phone number to E.164; one that cannot be parsed stays, and is rejected later with its field name.
fn to_e164(phone: &str) -> Option<String> {
    let phone = phone.trim();
    (!phone.is_empty()).then(|| address::typed_phone::<&str>(phone, &[]).unwrap_or_else(|_| phone.to_owned()))
}

/// Edits a sender or its webhook.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let verb = form.get("do");
    let (senders, caller, own) = (app.core.senders(), &who.caller, format!("/senders/{id}"));
    let done: Result<Option<Redacted<String>>> = match verb.as_str() {
        "save" => match details(&form) {
            Ok(change) => senders.update(caller, &id, change).await.map(|_| None),
            Err(error) => Err(error),
        },
        "default" => {
            senders.update(caller, &id, UpdateSender { set_as_default: Some(true), ..UpdateSender::default() }).await.map(|_| None)
        }
        "delete" => match senders.delete(caller, &id).await {
            Ok(()) => return lead_to("/senders"),
            Err(error) => Err(error),
        },
        "webhook" => {
            let url = Some(form.get("webhookUrl").trim().to_owned()).filter(|url| !url.is_empty());
            let change = UpdateSender { webhook_url: Some(url), ..UpdateSender::default() };
            senders.update(caller, &id, change).await.map(|sender| sender.webhook.and_then(|webhook| webhook.secret))
        }
        "try" => app.core.webhooks().test(caller, Some(&id)).await.map(|_| None),
        "replay" => app.core.webhooks().replay_delivery(caller, &form.get("delivery")).await.map(|_| None),
        _ => Err(Error::field("do", "is not an action of a sender")),
    };
    match done {
        Ok(None) => lead_to(&format!("{own}{}", if verb == "save" || verb == "default" { "" } else { "#webhook" })),
        Ok(secret) => page(&app, &who, &id, StatusCode::OK, &Said { secret, ..Said::default() }).await,
        Err(error) if matches!(error.code().status(), 400 | 409) => {
            let url = form.get("webhookUrl");
            let said = Said { faults: Faults::of(&error), url, typed: (verb == "save").then_some(form), ..Said::default() };
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &own, &error),
    }
}

/// Renders what a sender is called, its number and its limits: a form, or facts for viewers.
pub(super) fn panel(who: &SignedIn, sender: &SenderView, said: &Said) -> Markup {
    let countries = sender.allowed_countries.as_deref().unwrap_or_default().join(", ");
    let limit = sender.daily_spend_limit.map(|limit| limit.to_string()).unwrap_or_default();
    let or_none = |text: &str, none: &'static str| {
        if text.is_empty() {
            html! { span class="faint" { (none) } }
        } else {
            words(text)
        }
    };
    html! {
        section class="panel" id="details" {
            header { h2 { "Details" } @if sender.whatsapp.is_some() { a href={ "/senders/" (sender.id) "/profile" } { "WhatsApp profile" } } }
            @if may_change(who) { (form(who, sender, said, &countries, &limit)) } @else {
                div class="body" {
                    dl class="facts" {
                        dt { "Phone number" } dd { (or_none(&sender.phone_number, "none")) }
                        dt { "Countries" } dd { (or_none(&countries, "all")) }
                        dt { "Daily limit" } dd { @match sender.daily_spend_limit { Some(limit) => (dollars(limit)), None => { span class="faint" { "none" } } } }
                        dt { "Inbound email" } dd { @if sender.email_receiving_enabled { "accepted" } @else { "not accepted" } }
                        @if let Some(account) = &sender.whatsapp { dt { "On WhatsApp" } dd { (or_none(&account.display_phone_number, "not known yet")) } }
                    }
                }
            }
        }
    }
}

fn form(who: &SignedIn, sender: &SenderView, said: &Said, countries: &str, limit: &str) -> Markup {
    let value = |name: &str, now: &str| said.typed.as_ref().map_or_else(|| now.to_owned(), |typed| typed.get(name));
    let field = |name: &str, label: &str, hint: &str, now: &str| {
        Field { name, label, hint, kind: "text", value: &value(name, now), autocomplete: "off", required: name == "name" }
            .show(&said.faults)
    };
    let receives = said.typed.as_ref().map_or(sender.email_receiving_enabled, |typed| typed.get("emailReceivingEnabled") == "on");
    html! {
        form class="body" method="post" action={ "/senders/" (sender.id) } {
            (form_key(who))
            div class="fields" {
                (field("name", "Name", "", &sender.name))
                (field("phoneNumber", "Phone number", "With its country code, such as +34 600 111 222.", &sender.phone_number))
                (field("allowedCountries", "Countries it can send to", "Such as ES, PT; empty for all.", countries))
                (field("dailySpendLimit", "Spending limit per day", "In US dollars; empty for none.", limit))
            }
            label class="check" { input type="checkbox" name="emailReceivingEnabled" checked[receives]; "Accept inbound email" }
            div class="row" { button class="btn" name="do" value="save" { "Save" } }
        }
    }
}

/// Reads the form.
fn details(form: &Form) -> Result<UpdateSender> {
    let given = |name: &str| Some(form.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let countries: Vec<String> =
        form.get("allowedCountries").split(',').map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty()).collect();
    let limit = given("dailySpendLimit").map(|text| {
        let wrong = || Error::field("dailySpendLimit", format!("is {text:?}; must be an amount such as 25.50"));
        text.parse::<serde_json::Number>().map_err(|_| wrong())
    });
    Ok(UpdateSender {
        name: Some(form.get("name").trim().to_owned()),
        phone_number: Some(to_e164(&form.get("phoneNumber"))),
        allowed_countries: Some(Some(countries).filter(|countries| !countries.is_empty())),
        daily_spend_limit: Some(limit.transpose()?),
        email_receiving_enabled: Some(form.get("emailReceivingEnabled") == "on"),
        ..UpdateSender::default()
    })
}
