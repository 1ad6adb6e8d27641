//! `/sign-in/oidc` and `/sign-in/oidc/back`: sign-in by an OpenID provider.

use axum::extract::{Request, State};
use axum::http::header::SET_COOKIE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use maud::html;
use nuncio_core::Act;
use nuncio_core::users::SignInStep;
use nuncio_domain::{Error, ErrorCode};

use crate::components::icon;
use crate::page::failed;
use crate::shell::guest;
use crate::sign_in::{begin_session, form_for_code};
use crate::signed::{Asked, cookie_named, lead_to, own_page};
use crate::{App, address};

/// Cookie during the redirect to the provider: the seed, and the page to open afterwards.
const COOKIE: &str = "nuncio_oidc";

/// Redirects to the provider. Limited per client address, like passwords.
pub(crate) async fn begin(State(app): State<App>, asked: Asked, request: Request) -> Response {
    let now = app.core.ids().clock.monotonic();
    if app.tries.take(address(&request), now).is_some_and(|taken| taken.wait.is_some()) {
        return again(StatusCode::TOO_MANY_REQUESTS, "Too many attempts. Wait a minute, then try again.");
    }
    match app.core.users().oidc_begin().await {
        Ok(begun) => {
            let to = asked.get("to").unwrap_or_default();
            let value = format!("{}.{}", begun.seed.expose(), URL_SAFE_NO_PAD.encode(own_page(&to)));
            set_cookie(&app, lead_to(&begun.url), &value, 600)
        }
        Err(error) => refuse(&error),
    }
}

/// Signs in after the provider's redirect.
pub(crate) async fn back(State(app): State<App>, asked: Asked, request: Request) -> Response {
    let kept = cookie_named(request.headers(), COOKIE).unwrap_or_default().to_owned();
    let (seed, to) = kept.split_once('.').unwrap_or_default();
    let to = URL_SAFE_NO_PAD.decode(to).ok().and_then(|to| String::from_utf8(to).ok()).unwrap_or_default();
    let response = match (asked.get("state"), asked.get("code")) {
        (Some(state), Some(code)) => {
            let act = Act::unknown(address(&request).to_string(), app.core.ids().clone());
            match act.run(app.core.users().oidc_finish(seed, &state, &code)).await {
                Ok(SignInStep::Done(cookie)) => begin_session(&app, &cookie, own_page(&to)),
                Ok(SignInStep::SecondStep(ticket)) => guest(StatusCode::OK, "Sign in", &form_for_code(ticket.expose(), &to, None)),
                Err(error) => refuse(&error),
            }
        }
        _ => again(StatusCode::UNAUTHORIZED, "The provider rejected the sign-in."),
    };
    set_cookie(&app, response, "", 0)
}

fn set_cookie(app: &App, mut response: Response, value: &str, seconds: u32) -> Response {
    let secure = if app.core.public_url().starts_with("https:") { "; Secure" } else { "" };
    let line = format!("{COOKIE}={value}; Path=/sign-in; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}");
    if let Ok(value) = HeaderValue::try_from(line) {
        response.headers_mut().append(SET_COOKIE, value);
    }
    response
}

fn refuse(error: &Error) -> Response {
    match error.code() {
        ErrorCode::Unauthorized => again(StatusCode::UNAUTHORIZED, error.message()),
        ErrorCode::Unavailable => again(StatusCode::SERVICE_UNAVAILABLE, error.message()),
        ErrorCode::NotFound => again(StatusCode::NOT_FOUND, "This server has no OpenID provider."),
        _ => failed("signing in", error),
    }
}

fn again(status: StatusCode, why: &str) -> Response {
    let content = html! {
        h1 { "Not signed in" }
        div class="note bad" role="alert" { (icon("alert")) div { b { (why) } } }
        a class="btn go wide" href="/sign-in" { "Back to sign-in" }
    };
    guest(status, "Sign in", &content)
}
