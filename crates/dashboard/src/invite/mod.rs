//! `/invite/{token}`: a client goes through an invitation. One address for all steps; each form says in a field which step it is.

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

/// What is asked for here, in words for the log.
const ASKED: &str = "a page of an invitation";

type Token = Result<Path<String>, PathRejection>;

/// The token of a link; what cannot be read is of no invitation.
fn readable(token: Token) -> String {
    token.map(|Path(token)| token).unwrap_or_default()
}

/// The page of the step that is next, or that of the details once more with `?edit`.
pub(crate) async fn show(State(app): State<App>, token: Token, request: Request) -> Response {
    let token = readable(token);
    // A HEAD request asks without anybody looking.
    let opened = request.method() == Method::GET;
    let mut guest = match app.core.invitations().guest(&token, opened).await {
        Ok(guest) => guest,
        Err(error) => return refuse(&app, &request, &error),
    };
    if request.uri().query() == Some("edit") && matches!(guest.stage, Stage::Code | Stage::Agree) {
        guest.stage = Stage::Details;
    }
    page(StatusCode::OK, pages::stage(&guest, &Faults::default(), Language::of(request.headers())))
}

/// Takes a step, and leads back to the page: reloading it repeats nothing.
pub(crate) async fn act(State(app): State<App>, token: Token, request: Request) -> Response {
    let token = readable(token);
    let guest = match app.core.invitations().guest(&token, false).await {
        Ok(guest) => guest,
        Err(error) => return refuse(&app, &request, &error),
    };
    let language = Language::of(request.headers());
    let form = match Form::read(request).await {
        Ok(form) if app.core.invitations().is_form_key(&token, &form.get("key")) => form,
        Ok(_) => return page(StatusCode::FORBIDDEN, pages::foreign_form(language)),
        Err(status) => return page(status, pages::foreign_form(language)),
    };
    match take_step(&app.core, &token, &form).await {
        Ok(()) => back(&token),
        // Somebody was here meanwhile, perhaps the same person twice: the page shows where things stand.
        Err(error) if error.details().contains_key("currentStatus") => back(&token),
        Err(error) if error.code() == ErrorCode::InvalidRequest => with_faults(guest, &form, &error, language),
        Err(error) => failed(ASKED, &error),
    }
}

async fn take_step(core: &Core, token: &str, form: &Form) -> Result<(), Error> {
    match form.get("step").as_str() {
        "begin" => core.invitations().begin(token).await,
        "details" => {
            let details = Details { name: form.get("name"), email: form.get("email"), phone: form.get("phone") };
            core.invitations().give_details(token, details).await
        }
        "resend" => core.invitations().resend_code(token).await,
        "code" => core.invitations().enter_code(token, &form.get("code")).await,
        "finish" => core.invitations().finish(token, form.get("agree") == "yes").await.map(drop),
        _ => Ok(()), // no form of ours; the page shows what there is to do
    }
}

/// The same page again, with what was typed and what is wrong with it.
fn with_faults(mut guest: Invitee, form: &Form, error: &Error, language: Language) -> Response {
    let faults = Faults::of(error, language);
    if form.get("step") == "details" {
        // Details that were taken although the code could not be sent are shown with the faults all the same.
        guest.stage = Stage::Details;
        (guest.name, guest.email, guest.phone) = (form.get("name"), form.get("email"), form.get("phone"));
    }
    page(StatusCode::UNPROCESSABLE_ENTITY, pages::stage(&guest, &faults, language))
}

/// No such invitation: a guess, of which each address has a few a minute.
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

fn back(token: &str) -> Response {
    // Relative to `/invite/…`, so that a proxy may put a folder before it. A token that was found has plain characters only.
    let location = HeaderValue::from_str(token).unwrap_or(HeaderValue::from_static("."));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}
