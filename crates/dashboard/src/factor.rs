//! The second factor on `/settings/account`: QR code, recovery codes, removal.

use maud::{Markup, html};
use nuncio_core::users::{FactorState, PendingFactor, SignedIn};
use nuncio_domain::{Error, Redacted, Result};

use crate::App;
use crate::components::{Faults, Field, form_key, head, icon, qr, value};
use crate::form::Form;
use crate::shell::ACCOUNT;

pub(crate) fn section(who: &SignedIn, state: &FactorState, faults: &Faults) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "Second factor" } }
            (faults.summary())
            @match state {
                FactorState::Off => (password_form(who, "begin", "Set up", faults, "An app on your phone shows a code that you enter when you sign in. The password alone is then not enough.")),
                FactorState::Pending(pending) => (confirm(who, pending, faults)),
                FactorState::On(left) => {
                    (password_form(who, "renew", "New recovery codes", faults, &format!("It is on. {left} recovery codes are left.")))
                    (password_form(who, "remove", "Disable it", faults, "Without it, the password alone is enough to sign in."))
                }
            }
        }
    }
}

/// Returns the id of the password in the form of an action: the page has several.
pub(crate) fn id_of_password(act: &str) -> String {
    format!("{act}-current")
}

/// Renders a form that asks for the password again.
fn password_form(who: &SignedIn, act: &str, button: &str, faults: &Faults, text: &str) -> Markup {
    let id = id_of_password(act);
    let field = Field { id: &id, kind: "password", autocomplete: "current-password", ..Field::new("current", "Your password", "", "") };
    html! {
        form class="body" method="post" action=(ACCOUNT) {
            (form_key(who))
            input type="hidden" name="factor" value=(act);
            p { (text) }
            (field.show(faults))
            div class="row" { button class="btn" { (button) } }
        }
    }
}

fn confirm(who: &SignedIn, pending: &PendingFactor, faults: &Faults) -> Markup {
    let field = Field { autocomplete: "one-time-code", ..Field::new("code", "Code in the app", "Six digits.", "") };
    html! {
        form class="body" method="post" action=(ACCOUNT) {
            (form_key(who))
            input type="hidden" name="factor" value="confirm";
            p { "Scan this with an authenticator app, or enter the key by hand." }
            @if let Some(svg) = qr(pending.uri.expose(), "QR code of the key below") { (svg) }
            (value(pending.secret.expose()))
            (field.show(faults))
            div class="row" { button class="btn go" { "Enable it" } }
        }
    }
}

/// Carries out the action of the form; returns the recovery codes to show.
pub(crate) async fn change(app: &App, who: &SignedIn, form: &Form) -> Result<Vec<Redacted<String>>> {
    let (users, current) = (app.core.users(), Redacted::new(form.get("current")));
    match form.get("factor").as_str() {
        "begin" => users.begin_factor(who, &current).await.map(|()| Vec::new()),
        "confirm" => users.confirm_factor(who, &form.get("code")).await,
        "renew" => users.renew_codes(who, &current).await,
        "remove" => users.remove_factor(who, &current).await.map(|()| Vec::new()),
        other => Err(Error::field("factor", format!("is {other:?}; must be begin, confirm, renew or remove"))),
    }
}

pub(crate) fn shown_once(codes: &[Redacted<String>]) -> Markup {
    let all: Vec<&str> = codes.iter().map(|code| code.expose().as_str()).collect();
    html! {
        (head(Some((ACCOUNT, "Your account")), html! { "Recovery codes" }, html! { "Each can replace the app for one sign-in. They are not shown again" }, html! {}))
        section class="panel" {
            div class="body" {
                div class="note" { (icon("alert")) div { b { "Keep them separate from your phone." } p { "Without app and codes, an owner must reset your second factor." } } }
                ul { @for code in &all { li { code { (code) } } } }
                (value(&all.join(" ")))
                div class="row" { a class="btn go" href=(ACCOUNT) { "I have them" } }
            }
        }
    }
}
