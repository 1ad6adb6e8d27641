//! The pages of an invitation. Everything that comes from people is escaped by the template.

use maud::{Markup, html};
use nuncio_core::invitations::Guest;
use nuncio_domain::invitation::Stage;
use nuncio_domain::{Environment, Error};

use crate::page::{layout, plain};

/// What is wrong with a form: field and sentence. `form` is the form as a whole.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(String, String)>);

impl Faults {
    pub(super) fn of(error: &Error) -> Self {
        let listed = error.details().get("errors").and_then(|errors| errors.as_array());
        let text = |fault: &str, value: Option<&str>| value.unwrap_or(fault).to_owned();
        let faults = listed.into_iter().flatten();
        Self(faults.map(|f| (text("form", f["path"].as_str()), text("Something is wrong.", f["message"].as_str()))).collect())
    }

    fn get(&self, field: &str) -> Option<&str> {
        self.0.iter().find(|(path, _)| path == field).map(|(_, message)| message.as_str())
    }

    fn summary(&self) -> Markup {
        html! {
            @if !self.0.is_empty() {
                div class="faults" role="alert" {
                    ul {
                        @for (field, message) in &self.0 {
                            li { @if field == "form" { (message) } @else { a href={ "#" (field) } { (message) } } }
                        }
                    }
                }
            }
        }
    }
}

/// The page of a guest's stage.
pub(super) fn stage(guest: &Guest, faults: &Faults) -> Markup {
    let project = &guest.project;
    let (title, body) = match guest.stage {
        Stage::Welcome => (format!("{project} invites you"), welcome(guest)),
        Stage::Details => ("Your details".to_owned(), details(guest, faults)),
        Stage::Code => ("Enter the code".to_owned(), code(guest, faults)),
        Stage::Agree => ("Check and agree".to_owned(), agree(guest, faults)),
        Stage::Completed => {
            ("You are done".to_owned(), ended(&format!("{project} can send messages in your name from now on. You can close this page.")))
        }
        Stage::Expired => ("This invitation has expired".to_owned(), ended(&format!("Ask {project} for a new one."))),
        Stage::Cancelled => ("This invitation was withdrawn".to_owned(), ended(&format!("If you did not expect that, ask {project}."))),
    };
    let prefix = if faults.0.is_empty() { "" } else { "Error: " };
    layout(
        &format!("{prefix}{title}"),
        &html! {
            h1 { (title) }
            (faults.summary())
            (body)
            @if guest.environment == Environment::Test {
                p class="note" { "This is a test. No message leaves the sandbox, and nothing costs money."
                @if guest.stage == Stage::Code { " The code stands in the text of the message, as the API shows it to a test key." }
            }
            }
        },
    )
}

fn welcome(guest: &Guest) -> Markup {
    html! {
        p { (guest.project) " wants to send messages in your name. To set that up, you give a name and an email address"
            @if guest.assigned.is_none() { ", and prove your phone number with a code that we send to it" }
            ". It takes two minutes." }
        p { "The invitation is good until " time datetime=(guest.expires_at) { (day(guest)) } "." }
        (form(guest, "begin", html! { button { "Begin" } }))
    }
}

fn details(guest: &Guest, faults: &Faults) -> Markup {
    let fields = html! {
        (field("name", "text", "Name", "The company or person that messages come from.", &guest.name, "organization", faults))
        (field("email", "email", "Email address", "Where we can reach you about this.", &guest.email, "email", faults))
        @match &guest.assigned {
            Some(number) => { p { "You will use the phone number " strong { (number) } ", which was set aside for you." } }
            None => { (field("phone", "tel", "Phone number", &phone_hint(guest), &guest.phone, "tel", faults)) }
        }
        button { "Continue" }
    };
    html! {
        p { "Step 1 of " (steps(guest)) }
        (form(guest, "details", fields))
    }
}

fn phone_hint(guest: &Guest) -> String {
    let countries = if guest.countries.is_empty() { String::new() } else { format!(" Countries: {}.", guest.countries.join(", ")) };
    format!("With its country code, such as +34 600 111 222. We send a code to it.{countries}")
}

fn code(guest: &Guest, faults: &Faults) -> Markup {
    let fields = html! {
        div class="field" {
            label for="code" { "Code" }
            p class="hint" id="code-hint" { "The six digits of the message that we sent to " (guest.phone) "." }
            (fault("code", faults))
            input class="code" id="code" name="code" type="text" inputmode="numeric" autocomplete="one-time-code" maxlength="12" required
                aria-describedby=(described("code", faults)) aria-invalid=[invalid("code", faults)];
        }
        button { "Continue" }
    };
    html! {
        p { "Step 2 of " (steps(guest)) }
        (form(guest, "code", fields))
        p { "No message came? Wait a moment, then ask for another code." }
        (form(guest, "resend", html! { button class="plain" { "Send another code" } }))
        p { a href="?edit" { "Change the phone number" } }
    }
}

fn agree(guest: &Guest, faults: &Faults) -> Markup {
    let number = guest.assigned.as_ref().unwrap_or(&guest.phone);
    let fields = html! {
        div class="field" {
            (fault("agree", faults))
            div class="agree" {
                input id="agree" name="agree" type="checkbox" value="yes" required
                    aria-describedby=[faults.get("agree").map(|_| "agree-fault")] aria-invalid=[invalid("agree", faults)];
                label for="agree" { "I agree that " (guest.project) " sends and receives messages in this name and with this number." }
            }
        }
        button { "Finish" }
    };
    html! {
        p { "Step " (steps(guest)) " of " (steps(guest)) }
        dl {
            dt { "Name" } dd { (guest.name) }
            dt { "Email address" } dd { (guest.email) }
            dt { "Phone number" } dd { (number) }
        }
        p { a href="?edit" { "Change" } }
        (form(guest, "finish", fields))
    }
}

fn steps(guest: &Guest) -> u8 {
    if guest.assigned.is_some() { 2 } else { 3 }
}

fn day(guest: &Guest) -> String {
    let text = guest.expires_at.to_string();
    format!("{} {} UTC", text.get(..10).unwrap_or_default(), text.get(11..16).unwrap_or_default())
}

/// A form of one step. It has no address of its own: it is sent to the page that it stands on.
fn form(guest: &Guest, step: &str, fields: Markup) -> Markup {
    html! {
        form method="post" {
            input type="hidden" name="key" value=(guest.form_key.expose());
            input type="hidden" name="step" value=(step);
            (fields)
        }
    }
}

fn field(name: &str, kind: &str, label: &str, hint: &str, value: &str, autocomplete: &str, faults: &Faults) -> Markup {
    html! {
        div class="field" {
            label for=(name) { (label) }
            p class="hint" id={ (name) "-hint" } { (hint) }
            (fault(name, faults))
            input id=(name) name=(name) type=(kind) value=(value) autocomplete=(autocomplete) required
                aria-describedby=(described(name, faults)) aria-invalid=[invalid(name, faults)];
        }
    }
}

fn fault(name: &str, faults: &Faults) -> Markup {
    html! { @if let Some(message) = faults.get(name) { p class="fault" id={ (name) "-fault" } { (message) } } }
}

fn described(name: &str, faults: &Faults) -> String {
    if faults.get(name).is_some() { format!("{name}-hint {name}-fault") } else { format!("{name}-hint") }
}

fn invalid(name: &str, faults: &Faults) -> Option<&'static str> {
    faults.get(name).map(|_| "true")
}

fn ended(text: &str) -> Markup {
    html! { p { (text) } }
}

/// No invitation has this link.
pub(super) fn unknown() -> Markup {
    plain("There is no such invitation", "Check that the whole link was copied. If it was, ask who sent it to you.")
}

/// Too many links were tried.
pub(super) fn too_many() -> Markup {
    plain("Too many tries", "Wait a minute, then open the link again.")
}

/// A form that did not come from our page, or is too large.
pub(super) fn foreign_form() -> Markup {
    plain("The form could not be read", "Open the link of your invitation again, and fill in the form there.")
}
