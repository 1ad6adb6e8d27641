//! `/settings/account`: a person's password, second factor and signed-in browsers.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::{Browser, SignedIn};
use nuncio_domain::{Error, ErrorCode, Redacted, Result};

use crate::components::{Faults, Field, ask_first, data_table, form_key, form_panel, head, time};
use crate::form::Form;
use crate::shell::{ACCOUNT, framed};
use crate::sign_in::begin_session;
use crate::signed::{Signed, form, lead_back_or_refuse, lead_to, refuse};
use crate::{App, address, factor};

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    page(&app, &who, StatusCode::OK, &Faults::default(), false).await
}

/// Renders the page. `faults` are those of the second factor if `of_factor`, otherwise of the password.
async fn page(app: &App, who: &SignedIn, status: StatusCode, faults: &Faults, of_factor: bool) -> Response {
    let found = async {
        let browsers = app.core.users().browsers(who).await?;
        Ok((browsers, app.core.users().factor_state(who)?))
    };
    match found.await {
        Ok((browsers, factor)) => {
            let none = Faults::default();
            let (factor_faults, faults) = if of_factor { (faults, &none) } else { (&none, faults) };
            let factor = factor::section(who, &factor, factor_faults);
            framed(status, who, ACCOUNT, "Your account", &content(who, &browsers, &factor, faults))
        }
        Err(error) => refuse(who, "/", &error),
    }
}

fn content(who: &SignedIn, browsers: &[Browser], factor: &Markup, faults: &Faults) -> Markup {
    html! {
        (head(None, html! { "Your account" }, html! { (who.user.email) ", " (who.role.as_str()) " of " (who.project.name) }, html! {}))
        section class="panel" {
            header { h2 { "Signed-in browsers" } }
            (data_table("fix", "Browsers", &[("", "Since"), ("w3", "Until"), ("num w3", "Action")], html! {
                @for browser in browsers {
                    tr {
                        td { (time(browser.since)) @if browser.is_this { " " span class="faint" { "this browser" } } }
                        td { (time(browser.until)) }
                        td class="num" {
                            @if !browser.is_this {
                                (ask_first(&browser.id, "Sign out", "Sign this browser out?", "Its user must sign in again.", ACCOUNT,
                                    html! { (form_key(who)) input type="hidden" name="browser" value=(browser.id); }))
                            }
                        }
                    }
                }
            }))
        }
        (factor)
        (password(who, faults))
    }
}

fn password(who: &SignedIn, faults: &Faults) -> Markup {
    let field = |name, label, hint, autocomplete| Field { kind: "password", autocomplete, ..Field::new(name, label, hint, "") };
    let body = html! {
        (faults.summary())
        div class="fields" {
            (field("current", "Current password", "", "current-password").show(faults))
            (field("password", "New password", "At least 12 characters. All other browsers are signed out.", "new-password").show(faults))
        }
        div class="row" { button class="btn go" { "Change password" } }
    };
    form_panel(who, "Password", ACCOUNT, body)
}

/// Signs out another browser, or changes the second factor or the password.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, request: Request) -> Response {
    let slow_down = app.tries.take(address(&request), app.core.ids().clock.monotonic()).is_some_and(|taken| taken.wait.is_some());
    let form = match form(&app, &who, request).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let browser = form.get("browser");
    if !browser.is_empty() {
        return lead_back_or_refuse(&who, ACCOUNT, app.core.users().sign_out_browser(&who, &browser).await);
    }
    if !form.get("factor").is_empty() {
        return if slow_down { refuse(&who, ACCOUNT, &too_many()) } else { change_factor(&app, &who, &form).await };
    }
    let (current, new) = (Redacted::new(form.get("current")), Redacted::new(form.get("password")));
    match change(&app, &who, slow_down, &current, &new).await {
        Ok(cookie) => begin_session(&app, &cookie, ACCOUNT),
        Err(error) if error.code().status() == 400 => page(&app, &who, StatusCode::BAD_REQUEST, &Faults::of(&error), false).await,
        Err(error) => refuse(&who, ACCOUNT, &error),
    }
}

async fn change_factor(app: &App, who: &SignedIn, form: &Form) -> Response {
    match factor::change(app, who, form).await {
        Ok(codes) if codes.is_empty() => lead_to(ACCOUNT),
        Ok(codes) => framed(StatusCode::OK, who, ACCOUNT, "Recovery codes", &factor::shown_once(&codes)),
        Err(error) if error.code().status() == 400 => {
            let named = |path: &str| if path == "current" { factor::id_of_password(&form.get("factor")) } else { path.to_owned() };
            page(app, who, StatusCode::BAD_REQUEST, &Faults::of(&error).renamed(named), true).await
        }
        Err(error) => refuse(who, ACCOUNT, &error),
    }
}

fn too_many() -> Error {
    Error::new(ErrorCode::RateLimitExceeded, "too many attempts; wait a minute, then try again")
}

/// Tries are limited: a browser left signed in must not be used to guess the password.
async fn change(
    app: &App,
    who: &SignedIn,
    slow_down: bool,
    current: &Redacted<String>,
    new: &Redacted<String>,
) -> Result<Redacted<String>> {
    if slow_down {
        return Err(too_many());
    }
    app.core.users().change_password(who, current, new).await
}
