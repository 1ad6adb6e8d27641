//! `/begin/{token}`, `/sign-in`, `/sign-out` and `/world`: sessions and their environment.

use axum::extract::{Path, Request, State};
use axum::http::header::{RETRY_AFTER, SET_COOKIE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::{NewUser, SignIn, SignInStep};
use nuncio_domain::{Environment, Error, ErrorCode, Redacted};
use url::form_urlencoded;

use crate::components::{Faults, Field, icon};
use crate::form::Form;
use crate::page::failed;
use crate::shell::guest;
use crate::signed::{Asked, PostedAnywhere, SESSION, Signed, foreign, lead_to, own_page, refuse};
use crate::{App, address};

/// Shows the sign-in page. On a server without an owner, it explains how to begin.
pub(crate) async fn show(State(app): State<App>, asked: Asked) -> Response {
    match app.core.users().first_run_token().await {
        Ok(Some(_)) => guest(
            StatusCode::OK,
            "Become the owner",
            &html! {
                h1 { "This server has no owner yet" }
                p { "Open the link that " code { "nuncio serve" } " printed when it started. It begins with " code { "/begin/" } "." }
            },
        ),
        Ok(None) => {
            let ended = asked.get("ended").map(|_| "Your session ended. What you entered was not sent, and nothing was changed.");
            guest(StatusCode::OK, "Sign in", &form_to_sign_in(&app, "", &asked.get("to").unwrap_or_default(), ended))
        }
        Err(error) => failed("looking for people", &error),
    }
}

fn form_to_sign_in(app: &App, email: &str, to: &str, wrong: Option<&str>) -> Markup {
    let field = |name, label, kind, value, autocomplete| Field { kind, autocomplete, ..Field::new(name, label, "", value) };
    html! {
        h1 { "Sign in" }
        @if let Some(wrong) = wrong { div class="note bad" role="alert" { (icon("alert")) div { b { (wrong) } } } }
        form class="stack" method="post" action="/sign-in" {
            input type="hidden" name="to" value=(own_page(to));
            (field("email", "Email address", "email", email, "username").show(&Faults::default()))
            (field("password", "Password", "password", "", "current-password").show(&Faults::default()))
            button class="btn go wide" { "Sign in" }
        }
        @if let Some(name) = app.core.users().oidc_name() {
            @let to: String = form_urlencoded::byte_serialize(own_page(to).as_bytes()).collect();
            a class="btn wide" href={ "/sign-in/oidc?to=" (to) } { "Sign in with " (name) }
        }
        p class="hint" { "Forgot it? The operator of this server can set a new one with " code { "nuncio people password" } "." }
    }
}

/// Signs in. Attempts are limited per client address.
pub(crate) async fn act(State(app): State<App>, request: Request) -> Response {
    let now = app.core.ids().clock.monotonic();
    let slow_down = app.tries.take(address(&request), now).and_then(|taken| taken.wait);
    let form = match Form::read(&app, request).await {
        Ok(form) => form,
        Err(status) => return foreign(status),
    };
    let (email, to) = (form.get("email"), form.get("to"));
    if let Some(wait) = slow_down {
        let content = form_to_sign_in(&app, &email, &to, Some("Too many attempts. Wait a minute, then try again."));
        let mut response = guest(StatusCode::TOO_MANY_REQUESTS, "Sign in", &content);
        response.headers_mut().insert(RETRY_AFTER, wait.as_secs().max(1).into());
        return response;
    }
    let ticket = form.get("ticket");
    if !ticket.is_empty() {
        return second_step(&app, &ticket, &form.get("code"), &to).await;
    }
    let entered = SignIn { email: email.clone(), password: Redacted::new(form.get("password")) };
    match app.core.users().sign_in(&entered).await {
        Ok(SignInStep::Done(cookie)) => begin_session(&app, &cookie, own_page(&to)),
        Ok(SignInStep::SecondStep(ticket)) => guest(StatusCode::OK, "Sign in", &form_for_code(ticket.expose(), &to, None)),
        Err(error) if error.code() == ErrorCode::Unauthorized => guest(
            StatusCode::UNAUTHORIZED,
            "Sign in",
            &form_to_sign_in(&app, &email, &to, Some("The email address or the password is wrong.")),
        ),
        Err(error) => failed("signing in", &error),
    }
}

pub(crate) fn form_for_code(ticket: &str, to: &str, wrong: Option<&str>) -> Markup {
    let field =
        Field { autocomplete: "one-time-code", ..Field::new("code", "Code", "The six digits in your app, or a recovery code.", "") };
    html! {
        h1 { "Enter your code" }
        @if let Some(wrong) = wrong { div class="note bad" role="alert" { (icon("alert")) div { b { (wrong) } } } }
        form class="stack" method="post" action="/sign-in" {
            input type="hidden" name="ticket" value=(ticket);
            input type="hidden" name="to" value=(own_page(to));
            (field.show(&Faults::default()))
            button class="btn go wide" { "Sign in" }
        }
        p class="hint" { "Lost both? An owner resets your second factor on " i { "People" } "." }
    }
}

/// The second step of signing in. Attempts are limited per person, whatever the client address.
async fn second_step(app: &App, ticket: &str, code: &str, to: &str) -> Response {
    let again = |status, wrong| guest(status, "Sign in", &form_for_code(ticket, to, Some(wrong)));
    let now = app.core.ids().clock.monotonic();
    let holder = match app.core.users().ticket_holder(ticket).await {
        Ok(holder) => holder,
        Err(error) if error.code() == ErrorCode::Unauthorized => {
            return guest(StatusCode::UNAUTHORIZED, "Sign in", &form_to_sign_in(app, "", to, Some("That took too long. Sign in again.")));
        }
        Err(error) => return failed("signing in", &error),
    };
    if app.codes.take(holder.id, now).is_some_and(|taken| taken.wait.is_some()) {
        return again(StatusCode::TOO_MANY_REQUESTS, "Too many codes. Wait a few minutes, then try again.");
    }
    match app.core.users().second_step(&holder, code).await {
        Ok(cookie) => begin_session(app, &cookie, own_page(to)),
        Err(error) if error.code().status() == 400 => again(StatusCode::UNAUTHORIZED, "This code is not valid. Wait for the next one."),
        Err(error) => failed("signing in", &error),
    }
}

/// Sets the cookie of a new session and redirects.
pub(crate) fn begin_session(app: &App, cookie: &Redacted<String>, to: &str) -> Response {
    let secure = if app.core.public_url().starts_with("https:") { "; Secure" } else { "" };
    let line = format!("{SESSION}={}; Path=/; HttpOnly; SameSite=Lax; Max-Age=1209600{secure}", cookie.expose());
    let mut response = lead_to(to);
    if let Ok(value) = HeaderValue::try_from(line) {
        response.headers_mut().insert(SET_COOKIE, value);
    }
    response
}

pub(crate) async fn sign_out(State(app): State<App>, Signed(who): Signed, _: PostedAnywhere) -> Response {
    if let Err(error) = app.core.users().sign_out(&who).await {
        return refuse(&who, "/", &error);
    }
    let mut response = lead_to("/sign-in");
    let gone = HeaderValue::from_static("nuncio_session=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0");
    response.headers_mut().insert(SET_COOKIE, gone);
    response
}

/// Switches the session to the other environment.
pub(crate) async fn world(State(app): State<App>, Signed(who): Signed, PostedAnywhere(form): PostedAnywhere) -> Response {
    let environment = if form.get("world") == "live" { Environment::Live } else { Environment::Test };
    match app.core.users().look_at(&who, who.project.id, environment).await {
        Ok(()) => lead_to(own_page(&form.get("to"))),
        Err(error) => refuse(&who, "/", &error),
    }
}

/// Shows the page that creates the first person.
pub(crate) async fn begin(State(app): State<App>, Path(token): Path<String>, request: Request) -> Response {
    match app.core.users().may_begin(&token).await {
        Ok(true) => guest(StatusCode::OK, "Become the owner", &form_to_begin("", "", &Faults::default())),
        Ok(false) => used_link(&app, &request),
        Err(error) => failed("looking at the first link", &error),
    }
}

fn used_link(app: &App, request: &Request) -> Response {
    crate::refused::link(app, request, "beginning", &Error::not_found("link"))
}

fn form_to_begin(project: &str, email: &str, faults: &Faults) -> Markup {
    let field = |name, label, hint, kind, value, autocomplete| Field { kind, autocomplete, ..Field::new(name, label, hint, value) };
    html! {
        div { h1 { "Become the owner" } p class="soft" { "This link works once. You will own this server." } }
        (faults.summary())
        form class="stack" method="post" {
            (field("project", "Project", "What your messages are for, such as the name of your shop. You can rename it later.", "text", project, "organization").show(faults))
            (field("email", "Your email address", "", "email", email, "username").show(faults))
            (field("password", "Password", "At least 12 characters. A few words that you can remember are best.", "password", "", "new-password").show(faults))
            button class="btn go wide" { "Begin" }
        }
    }
}

/// Creates the first person.
pub(crate) async fn own(State(app): State<App>, Path(token): Path<String>, request: Request) -> Response {
    match app.core.users().may_begin(&token).await {
        Ok(true) => {}
        Ok(false) => return used_link(&app, &request),
        Err(error) => return failed("looking at the first link", &error),
    }
    let form = match Form::read(&app, request).await {
        Ok(form) => form,
        Err(status) => return foreign(status),
    };
    let (project, email) = (form.get("project"), form.get("email"));
    let new = NewUser { email: email.clone(), password: Redacted::new(form.get("password")) };
    match app.core.users().begin(&token, &project, &new).await {
        Ok(cookie) => begin_session(&app, &cookie, "/"),
        Err(error) if error.code().status() < 500 => {
            guest(StatusCode::BAD_REQUEST, "Become the owner", &form_to_begin(&project, &email, &Faults::of(&error)))
        }
        Err(error) => failed("beginning", &error),
    }
}
