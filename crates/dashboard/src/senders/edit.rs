//! Creates and edits senders and their webhooks.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;
use nuncio_core::is_changed_meanwhile;
use nuncio_core::senders::{CreateSender, UpdateSender};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Redacted, Result};

use super::details;
use super::show::{Said, page};
use crate::App;
use crate::components::{Faults, Field, form_key, head};
use crate::form::Form;
use crate::messages::new::{key, made, once};
use crate::shell::framed;
use crate::signed::{MayChange, Posted, Signed, lead_to, refuse};
use crate::webhook::tested;

pub(crate) async fn new(State(app): State<App>, MayChange(who): MayChange) -> Response {
    form_page(&app, &who, StatusCode::OK, &Form::default(), &Faults::default())
}

fn form_page(app: &App, who: &SignedIn, status: StatusCode, typed: &Form, faults: &Faults) -> Response {
    let content = html! {
        (head(Some(("/senders", "Senders")), html! { "New sender" }, html! { "A sender has a name, a number, and one connection for each channel." }, html! {}))
        form class="panel" method="post" action="/senders/new" {
            div class="body" {
                (form_key(who))
                input type="hidden" name="once" value=(once(app));
                (faults.summary())
                (Field::new("name", "Name", "For your reference.", &typed.get("name")).show(faults))
                (Field { required: false, ..Field::new("phoneNumber", "Phone number", "With its country code, such as +34 600 111 222, if it has one.", &typed.get("phoneNumber")) }.show(faults))
                label class="check" { input type="checkbox" name="default" checked[typed.get("default") == "on"]; "Use for messages without a sender" }
            }
            footer { button class="btn go push" { "Create the sender" } }
        }
    };
    framed(status, who, "/senders", "New sender", &content)
}

pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let command = CreateSender {
        name: form.get("name").trim().to_owned(),
        phone_number: details::to_e164(&form.get("phoneNumber")),
        set_as_default: Some(form.get("default") == "on"),
        ..CreateSender::default()
    };
    let created = app.core.senders().create(&who.caller, command, key(&form.get("once")).as_deref()).await;
    match made(created.map(|sender| sender.id), "sender") {
        Ok(id) => lead_to(&format!("/senders/{id}")),
        Err(error) if error.code().status() == 400 => form_page(&app, &who, StatusCode::BAD_REQUEST, &form, &Faults::of(&error)),
        Err(error) => refuse(&who, "/senders", &error),
    }
}

/// Edits a sender or its webhook.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let verb = form.get("do");
    let (senders, caller, own) = (app.core.senders(), &who.caller, format!("/senders/{id}"));
    let done: Result<Option<Redacted<String>>> = match verb.as_str() {
        "save" => senders.update(caller, &id, details::read(&form)).await.map(|_| None),
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
        "enable" => senders.update(caller, &id, UpdateSender { webhook_active: Some(true), ..UpdateSender::default() }).await.map(|_| None),
        "try" => app.core.webhooks().test(caller, Some(&id)).await.map(|_| None),
        "replay" => app.core.webhooks().replay_delivery(caller, &form.get("delivery")).await.map(|_| None),
        _ => Err(Error::field("do", "is not an action of a sender")),
    };
    match done {
        Ok(None) if verb == "try" => lead_to(&tested(&own)),
        Ok(None) => lead_to(&format!("{own}{}", if verb == "save" || verb == "default" { "" } else { "#webhook" })),
        Ok(secret) => page(&app, &who, &id, StatusCode::OK, &Said { secret, ..Said::default() }).await,
        Err(error) if is_changed_meanwhile(&error) => {
            let said = Said { typed: Some(form), changed_meanwhile: true, ..Said::default() };
            page(&app, &who, &id, StatusCode::CONFLICT, &said).await
        }
        Err(error) if matches!(error.code().status(), 400 | 409) => {
            let url = form.get("webhookUrl");
            let said = Said { faults: Faults::of(&error), url, typed: (verb == "save").then_some(form), ..Said::default() };
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &own, &error),
    }
}
