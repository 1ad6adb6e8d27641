//! `/settings/people`: people who can sign in to this project. Owners add and remove them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::{NewUser, SignedIn};
use nuncio_domain::user::Role;
use nuncio_domain::{Error, ErrorCode, Redacted, Result};

use crate::App;
use crate::components::{Faults, Field, ask_first, head};
use crate::shell::{form_key, framed};
use crate::signed::{Posted, Signed, lead_to, refuse};

const PLACE: &str = "/settings/people";

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    page(&app, &who, StatusCode::OK, "", &Faults::default()).await
}

async fn page(app: &App, who: &SignedIn, status: StatusCode, email: &str, faults: &Faults) -> Response {
    match content(app, who, email, faults).await {
        Ok(content) => framed(status, who, PLACE, "People", &content),
        Err(error) => refuse(who, "/", &error),
    }
}

async fn content(app: &App, who: &SignedIn, email: &str, faults: &Faults) -> Result<Markup> {
    let people = app.core.users().list(who.project.id).await?;
    let owner = who.user.role == Role::Owner;
    Ok(html! {
        (head(None, html! { "People" }, html! { "People who can sign in to " (who.project.name) }, html! {}))
        section class="panel" {
            table class="fix" {
                caption class="sr" { "People" }
                thead { tr { th scope="col" { "Email address" } th scope="col" class="w2" { "Role" } th scope="col" class="num w3" { span class="sr" { "Action" } } } }
                tbody {
                    @for person in &people {
                        tr {
                            td { (person.email) @if person.id == who.user.id { " " span class="faint" { "you" } } }
                            td { (person.role.as_str()) @if app.core.users().has_factor(person)? { " " span class="faint" { "second factor" } } }
                            td class="num" {
                                @if owner && person.id != who.user.id {
                                    @if app.core.users().has_factor(person)? {
                                        (ask_first(&format!("f-{}", person.id), "Reset factor", &format!("Reset the second factor of {}?", person.email), "They sign in with only their password until they set it up again. Verify that the request is theirs.", PLACE,
                                            html! { (form_key(who)) input type="hidden" name="reset" value=(person.email); }))
                                    }
                                    (ask_first(&person.id.to_string(), "Remove", &format!("Remove {}?", person.email), "They are signed out everywhere at once.", PLACE,
                                        html! { (form_key(who)) input type="hidden" name="remove" value=(person.email); }))
                                }
                            }
                        }
                    }
                }
            }
        }
        @if owner { (new_person(who, email, faults)) }
    })
}

fn new_person(who: &SignedIn, email: &str, faults: &Faults) -> Markup {
    let field = |name, label, hint, kind, value| Field { name, label, hint, kind, value, autocomplete: "off", required: true };
    html! {
        section class="panel" {
            header { h2 { "Add a person" } }
            form class="body" method="post" action=(PLACE) {
                (form_key(who))
                (faults.summary())
                div class="fields" {
                    (field("email", "Email address", "", "email", email).show(faults))
                    (field("password", "First password", "At least 12 characters. Send it to them in a secure way.", "password", "").show(faults))
                }
                fieldset class="field" {
                    legend { "Role" }
                    div class="pick" {
                        label { input type="radio" name="role" value="viewer" checked; "Viewer" span { "Sees everything, changes nothing." } }
                        label { input type="radio" name="role" value="operator"; "Operator" span { "Sends, changes and decides." } }
                        label { input type="radio" name="role" value="owner"; "Owner" span { "Also manages API keys and people." } }
                    }
                }
                div class="row" { button class="btn go" { "Add" } }
            }
        }
    }
}

pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let email = form.get("email");
    let done = async {
        if who.user.role != Role::Owner {
            return Err(Error::new(ErrorCode::Forbidden, "only owners can manage people"));
        }
        let removed = form.get("remove");
        if !removed.is_empty() {
            let of_project = app.core.users().list(who.project.id).await?.iter().any(|person| person.email == removed);
            return if of_project { app.core.users().remove(&removed).await } else { Err(Error::not_found("person")) };
        }
        let reset = form.get("reset");
        if !reset.is_empty() {
            let of_project = app.core.users().list(who.project.id).await?.iter().any(|person| person.email == reset);
            return if of_project { app.core.users().reset_factor(&reset).await } else { Err(Error::not_found("person")) };
        }
        let role = Role::parse(&form.get("role")).ok_or_else(|| Error::field("role", "is viewer, operator or owner"))?;
        let new = NewUser { email: email.clone(), password: Redacted::new(form.get("password")) };
        app.core.users().create(&who.project, role, &new).await.map(drop)
    };
    match done.await {
        Ok(()) => lead_to(PLACE),
        Err(error) if error.code().status() == 400 => page(&app, &who, StatusCode::BAD_REQUEST, &email, &Faults::of(&error)).await,
        Err(error) => refuse(&who, PLACE, &error),
    }
}
