//! `/invitations`: links with which clients connect their own numbers.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::invitations::{CreateInvitation, InvitationView, ListInvitations};
use nuncio_core::users::SignedIn;
use nuncio_domain::invitation::InvitationStatus;
use nuncio_domain::{FieldError, Result};

use crate::App;
use crate::components::{
    Faults, Field, ask_first, data_table, empty, form_key, form_panel, head, icon, link_value, may_change, pager, qr, state, time, words,
};
use crate::form::Form;
use crate::messages::new::{key, made_before, once};
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, lead_to, refuse, show_or_refuse};

const PLACE: &str = "/invitations";

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    page(&app, &who, &asked, StatusCode::OK, &Form::default(), &Faults::default(), None).await
}

async fn page(
    app: &App,
    who: &SignedIn,
    asked: &Asked,
    status: StatusCode,
    typed: &Form,
    faults: &Faults,
    made: Option<&InvitationView>,
) -> Response {
    show_or_refuse(status, who, PLACE, "Invitations", content(app, who, asked, typed, faults, made).await, "/")
}

fn stage(status: InvitationStatus) -> Markup {
    match status {
        InvitationStatus::Pending => state("", "Not begun"),
        InvitationStatus::InProgress => state("move", "Begun"),
        InvitationStatus::Completed => state("ok", "Completed"),
        InvitationStatus::Expired => state("stop", "Expired"),
        InvitationStatus::Cancelled => state("stop", "Withdrawn"),
    }
}

async fn content(app: &App, who: &SignedIn, asked: &Asked, typed: &Form, faults: &Faults, made: Option<&InvitationView>) -> Result<Markup> {
    let list = ListInvitations { cursor: asked.get("cursor"), ..ListInvitations::default() };
    let (found, next) = app.core.invitations().list(&who.caller, &list).await?;
    let shown = match asked.get("link") {
        Some(id) if made.is_none() => Some(app.core.invitations().get(&who.caller, &id).await?).filter(usable),
        _ => None,
    };
    Ok(html! {
        (head(None, html! { "Invitations" }, html! { "A client opens a link, verifies their number by a code, and becomes a sender" }, html! {}))
        @if let Some(invitation) = made.or(shown.as_ref()) { (link(invitation)) }
        section class="panel" {
            @if found.is_empty() { (empty("link", "No invitations", "Create one for a client who wants to send from their own number.", html! {})) }
            @else {
                (data_table("fix", "Invitations, newest first", &[("w2", "State"), ("", "Client"), ("num w w2", "Valid until"), ("num w6", "Actions")], html! {
                    @for one in &found {
                        tr {
                            td { (stage(one.status)) }
                            td {
                                span class="clip" { (words(one.client_name.as_deref().or(one.client_email.as_deref()).unwrap_or("Unnamed"))) }
                                span class="n faint" { "Valid until " (time(one.expires_at)) }
                            }
                            td class="num w" { (time(one.expires_at)) }
                            td class="num" {
                                @if matches!(one.status, InvitationStatus::Pending | InvitationStatus::InProgress) {
                                    div class="row end" {
                                        @if usable(one) { a class="btn small" href={ (PLACE) "?link=" (one.id) } { "Show link" } }
                                        @if may_change(who) {
                                            (ask_first(&one.id.to_string(), "Withdraw", "Withdraw this link?", "It stops working at once. What the client entered is kept.",
                                                &format!("{PLACE}/{}", one.id), form_key(who)))
                                        }
                                    }
                                } @else if let Some(sender) = one.sender_id { a class="btn small" href={ "/senders/" (sender) } { "Sender" } }
                            }
                        }
                    }
                }))
                (pager(asked.older(PLACE, next)))
            }
        }
        @if may_change(who) { (new(app, who, typed, faults)) }
    })
}

/// Returns whether the link still works and is known.
fn usable(invitation: &InvitationView) -> bool {
    matches!(invitation.status, InvitationStatus::Pending | InvitationStatus::InProgress) && !invitation.url.is_empty()
}

/// Renders the link of an invitation.
fn link(invitation: &InvitationView) -> Markup {
    let client = invitation.client_name.as_deref().or(invitation.client_email.as_deref());
    html! {
        section class="panel" {
            header { h2 { "The link" @if let Some(client) = client { " for " (words(client)) } } }
            div class="body" {
                div class="note ok" { (icon("check")) div { b { "Send it to your client." } p { "Anyone who has the link can use it. It is valid until " (time(invitation.expires_at)) "." } } }
                (link_value("invitation-link", "Link", &invitation.url))
                @if let Some(svg) = qr(&invitation.url, "QR code of the link") { (svg) }
            }
        }
    }
}

fn new(app: &App, who: &SignedIn, typed: &Form, faults: &Faults) -> Markup {
    let field = |name: &'static str, label: &'static str, hint: &'static str, kind: &'static str| {
        Field { kind, required: false, ..Field::new(name, label, hint, &typed.get(name)) }.show(faults)
    };
    let body = html! {
        input type="hidden" name="once" value=(once(app));
        (faults.summary())
        div class="fields" {
            (field("clientName", "Client", "Shown to the client.", "text"))
            (field("clientEmail", "Email address", "", "email"))
            (field("allowedPhoneCountries", "Countries of their number", "Such as ES,MX; empty for any.", "text"))
            (field("expiresInDays", "Days", "Validity of the link: 1 to 30, by default 7.", "number"))
        }
        div class="row" { button class="btn go" { "Create the link" } }
    };
    form_panel(who, "Invite a client", PLACE, body)
}

fn command(form: &Form) -> CreateInvitation {
    let given = |name: &str| Some(form.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let mut unreadable = Vec::new();
    let days = given("expiresInDays").and_then(|text| {
        let read = text.parse().ok();
        if read.is_none() {
            unreadable.push(FieldError::new("expiresInDays", format!("is {text:?}; must be 1 to 30")));
        }
        read
    });
    let codes = |list: String| list.split(',').map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty()).collect();
    let countries = given("allowedPhoneCountries").map(codes);
    CreateInvitation {
        client_name: given("clientName"),
        client_email: given("clientEmail"),
        allowed_phone_countries: countries,
        expires_in_days: days,
        unreadable,
        ..CreateInvitation::default()
    }
}

pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, asked: Asked, Posted(form): Posted) -> Response {
    let once = key(&form.get("once"));
    let error = match app.core.invitations().create(&who.caller, command(&form), once.as_deref()).await {
        Ok(created) => return page(&app, &who, &asked, StatusCode::CREATED, &Form::default(), &Faults::default(), Some(&created)).await,
        Err(error) => error,
    };
    match made_before(error, "invitation") {
        Ok(id) => lead_to(&format!("{PLACE}?link={id}")),
        Err(error) if error.code().status() == 400 => {
            page(&app, &who, &asked, StatusCode::BAD_REQUEST, &form, &Faults::of(&error), None).await
        }
        Err(error) => refuse(&who, PLACE, &error),
    }
}

pub(crate) async fn cancel(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, _: Posted) -> Response {
    lead_back_or_refuse(&who, PLACE, app.core.invitations().cancel(&who.caller, &id).await)
}
