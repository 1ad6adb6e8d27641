//! `/invite/{token}`: the client's side of an invitation. All steps share this URL; a form field names the step.

mod pages;
mod words;

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use nuncio_core::Core;
use nuncio_core::invitations::{Details, Invitee};
use nuncio_domain::invitation::Stage;
use nuncio_domain::{Error, ErrorCode};

use crate::form::Form;
use crate::page::{failed, page};
use crate::{App, address};
use pages::Faults;
use words::Language;

/// Description of these requests in the log.
const ASKED: &str = "a page of an invitation";

type Token = Result<Path<String>, PathRejection>;

/// Returns the token; `""`, which matches no invitation, if it is malformed.
fn readable(token: Token) -> String {
    token.map(|Path(token)| token).unwrap_or_default()
}

/// Shows the next step, or the details again with `?edit`. `?sent` confirms that another code was sent.
pub(crate) async fn show(State(app): State<App>, token: Token, request: Request) -> Response {
    let token = readable(token);
    // HEAD is not a view by a person.
    let opened = request.method() == Method::GET;
    let mut guest = match app.core.invitations().guest(&token, opened).await {
        Ok(guest) => guest,
        Err(error) => return refuse(&app, &request, &error),
    };
    if request.uri().query() == Some("edit") && matches!(guest.stage, Stage::Code | Stage::Agree) {
        guest.stage = Stage::Details;
    }
    let resent = request.uri().query() == Some("sent");
    page(StatusCode::OK, pages::stage(&guest, &Faults::default(), resent, Language::of(request.headers())))
}

/// Processes a step and redirects, so that reloading repeats nothing.
pub(crate) async fn act(State(app): State<App>, token: Token, request: Request) -> Response {
    let token = readable(token);
    let guest = match app.core.invitations().guest(&token, false).await {
        Ok(guest) => guest,
        Err(error) => return refuse(&app, &request, &error),
    };
    let language = Language::of(request.headers());
    let form = match Form::read(&app, request).await {
        Ok(form) if app.core.invitations().is_form_key(&token, &form.get("key")) => form,
        Ok(_) => return page(StatusCode::FORBIDDEN, pages::foreign_form(language)),
        Err(status) => return page(status, pages::foreign_form(language)),
    };
    match take_step(&app.core, &token, &form, language).await {
        Ok(()) if form.get("step") == "resend" => back(&format!("{token}?sent")),
        Ok(()) => back(&token),
        // The step was already taken, perhaps by a double submission: shows the current one.
        Err(error) if error.details().contains_key("currentStatus") => back(&token),
        Err(error) if error.code() == ErrorCode::InvalidRequest => with_faults(guest, &form, &error, language),
        Err(error) => failed(ASKED, &error),
    }
}

async fn take_step(core: &Core, token: &str, form: &Form, language: Language) -> Result<(), Error> {
    match form.get("step").as_str() {
        "begin" => core.invitations().begin(token).await,
        "details" => {
            let details = Details { name: form.get("name"), email: form.get("email"), phone: form.get("phone") };
            core.invitations().give_details(token, details, language.tag()).await
        }
        "resend" => core.invitations().resend_code(token, language.tag()).await,
        "code" => core.invitations().enter_code(token, &form.get("code")).await,
        "finish" => core.invitations().finish(token, form.get("agree") == "yes").await.map(drop),
        _ => Ok(()), // unknown step: shows the current one
    }
}

/// Shows the page again with the input and its errors.
fn with_faults(mut guest: Invitee, form: &Form, error: &Error, language: Language) -> Response {
    let faults = Faults::of(error, language);
    if form.get("step") == "details" {
        // Stays on the details, even if they were stored and only sending the code failed.
        guest.stage = Stage::Details;
        (guest.name, guest.email, guest.phone) = (form.get("name"), form.get("email"), form.get("phone"));
    }
    page(StatusCode::UNPROCESSABLE_ENTITY, pages::stage(&guest, &faults, false, language))
}

/// Rejects an unknown token. Each is a guess: an address has a few per minute.
fn refuse(app: &App, request: &Request, error: &Error) -> Response {
    if error.code() != ErrorCode::NotFound {
        return failed(ASKED, error);
    }
    let language = Language::of(request.headers());
    let now = app.core.ids().clock.monotonic();
    let Some(wait) = app.guesses.take(address(request), now).and_then(|taken| taken.wait) else {
        return page(StatusCode::NOT_FOUND, pages::unknown(language));
    };
    let mut response = page(StatusCode::TOO_MANY_REQUESTS, pages::too_many(language));
    response.headers_mut().insert(RETRY_AFTER, wait.as_secs().max(1).into());
    response
}

fn back(page: &str) -> Response {
    // Relative, so that a proxy can add a path prefix. Valid tokens are plain ASCII.
    let location = HeaderValue::from_str(page).unwrap_or(HeaderValue::from_static("."));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}
