//! Pages of an invitation. The template escapes all input.

use maud::{Markup, html};
use nuncio_core::invitations::Invitee;
use nuncio_domain::invitation::Stage;
use nuncio_domain::{Environment, Error};
use serde_json::Value;

use super::words::Language;
use crate::page::layout_in;

/// Errors of a form, by field; `form` is the form as a whole.
#[derive(Debug, Default)]
pub(super) struct Faults(Vec<(String, String)>);

impl Faults {
    pub(super) fn of(error: &Error, language: Language) -> Self {
        let listed = error.details().get("errors").and_then(|errors| errors.as_array());
        let fault = |fault: &Value| Some((fault["path"].as_str()?.to_owned(), language.translated(fault["message"].as_str()?)));
        Self(listed.into_iter().flatten().filter_map(fault).collect())
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

/// Renders the page of the client's stage. `resent`: another code was just sent.
pub(super) fn stage(guest: &Invitee, faults: &Faults, resent: bool, language: Language) -> Markup {
    View { guest, faults, resent, language }.page()
}

/// An invitation in one language.
struct View<'a> {
    guest: &'a Invitee,
    faults: &'a Faults,
    resent: bool,
    language: Language,
}

impl View<'_> {
    fn say(&self, english: &'static str) -> &'static str {
        self.language.say(english)
    }

    /// Returns a phrase with the project's name.
    fn of_project(&self, english: &'static str) -> String {
        self.language.with(english, &self.guest.project)
    }

    fn page(&self) -> Markup {
        let (title, body) = match self.guest.stage {
            Stage::Welcome => (self.of_project("{} invites you"), self.welcome()),
            Stage::Details => (self.say("Your details").to_owned(), self.details()),
            Stage::Code => (self.say("Enter the code").to_owned(), self.code()),
            Stage::Agree => (self.say("Check and agree").to_owned(), self.agree()),
            Stage::Completed => self.ended("You are done", "{} can send messages in your name from now on. You can close this page."),
            Stage::Expired => self.ended("This invitation has expired", "Ask {} for a new one."),
            Stage::Cancelled => self.ended("This invitation was withdrawn", "If you did not expect that, ask {}."),
        };
        let prefix = if self.faults.0.is_empty() { "" } else { self.say("Error: ") };
        layout_in(
            self.language.tag(),
            &format!("{prefix}{title}"),
            self.guest.colour,
            &html! {
                @if self.guest.colour.is_some() { p class="brand" { bdi { (self.guest.project) } } }
                h1 { (title) }
                (self.faults.summary())
                (body)
                @if self.guest.environment == Environment::Test {
                    p class="note" {
                        (self.say("This is a test. No message leaves the sandbox, and nothing costs money."))
                        @if self.guest.stage == Stage::Code { " " (self.say("The code is in the text of the message, which the API shows to a test key.")) }
                    }
                }
            },
        )
    }

    fn ended(&self, title: &'static str, text: &'static str) -> (String, Markup) {
        (self.say(title).to_owned(), html! { p { (self.of_project(text)) } })
    }

    fn welcome(&self) -> Markup {
        let (until, end) = self.language.around("The invitation is valid until {}.");
        let what = match self.guest.assigned {
            Some(_) => {
                "{} wants to send messages in your name. To set that up, you enter a name and an email address. It takes two minutes."
            }
            None => {
                "{} wants to send messages in your name. To set that up, you enter a name and an email address, and verify your phone number \
                 with a code that we send to it. It takes two minutes."
            }
        };
        html! {
            p { (self.of_project(what)) }
            p { (until) time datetime=(self.guest.expires_at) { (self.language.date(self.guest.expires_at)) } (end) }
            (self.form("begin", html! { button { (self.say("Begin")) } }))
        }
    }

    fn details(&self) -> Markup {
        let guest = self.guest;
        let (before, after) = self.language.around("You will use the phone number {}, which is reserved for you.");
        let name_hint = self.say("The company or person that messages come from.");
        let email_hint = self.say("Where we can reach you about this.");
        let fields = html! {
            (self.field("name", "text", "Name", name_hint, &guest.name, "organization"))
            (self.field("email", "email", "Email address", email_hint, &guest.email, "email"))
            @match &guest.assigned {
                Some(number) => { p { (before) strong { (number) } (after) } }
                None => { (self.field("phone", "tel", "Phone number", &self.phone_hint(), &guest.phone, "tel")) }
            }
            button { (self.say("Continue")) }
        };
        html! {
            (self.step(1))
            (self.form("details", fields))
        }
    }

    fn phone_hint(&self) -> String {
        let mut hint = self.say("With its country code, such as +34 600 111 222. We send a code to it.").to_owned();
        if !self.guest.countries.is_empty() {
            hint.push(' ');
            hint.push_str(&self.language.with("Countries: {}.", &self.guest.countries.join(", ")));
        }
        hint
    }

    fn code(&self) -> Markup {
        let fields = html! {
            div class="field" {
                label for="code" { (self.say("Code")) }
                p class="hint" id="code-hint" { (self.language.with("The six digits of the message that we sent to {}.", &self.guest.phone)) }
                (self.fault("code"))
                input class="code" id="code" name="code" type="text" inputmode="numeric" autocomplete="one-time-code" maxlength="12" required
                    aria-describedby=(self.described("code")) aria-invalid=[self.invalid("code")];
            }
            button { (self.say("Continue")) }
        };
        html! {
            (self.step(2))
            @if self.resent { p class="note" role="status" { (self.say("A new code was sent.")) " " (self.codes_left()) } }
            (self.form("code", fields))
            p { (self.say("No message? Wait a moment, then request another code.")) }
            (self.form("resend", html! { button class="plain" { (self.say("Send another code")) } }))
            p { a href="?edit" { (self.say("Change the phone number")) } }
        }
    }

    fn codes_left(&self) -> String {
        match self.guest.codes_left {
            0 => self.say("It was the last one within an hour.").to_owned(),
            1 => self.say("One more can be sent within an hour.").to_owned(),
            left => self.language.with("{} more can be sent within an hour.", &left.to_string()),
        }
    }

    fn agree(&self) -> Markup {
        let number = self.guest.assigned.as_ref().unwrap_or(&self.guest.phone);
        let fields = html! {
            div class="field" {
                (self.fault("agree"))
                div class="agree" {
                    input id="agree" name="agree" type="checkbox" value="yes" required
                        aria-describedby=[self.faults.get("agree").map(|_| "agree-fault")] aria-invalid=[self.invalid("agree")];
                    label for="agree" { (self.of_project("I agree that {} sends and receives messages in this name and with this number.")) }
                }
            }
            button { (self.say("Finish")) }
        };
        html! {
            (self.step(self.steps()))
            dl {
                dt { (self.say("Name")) } dd { bdi { (self.guest.name) } }
                dt { (self.say("Email address")) } dd { (self.guest.email) }
                dt { (self.say("Phone number")) } dd { (number) }
            }
            p { a href="?edit" { (self.say("Change")) } }
            (self.form("finish", fields))
        }
    }

    fn steps(&self) -> u8 {
        if self.guest.assigned.is_some() { 2 } else { 3 }
    }

    /// Renders the progress.
    fn step(&self, step: u8) -> Markup {
        let text = self.language.with("Step {} of {}", &step.to_string()).replacen("{}", &self.steps().to_string(), 1);
        html! { p class="step" { (text) progress value=(step - 1) max=(self.steps()) aria-hidden="true" {} } }
    }

    /// Renders the form of a step, submitted to the same URL.
    fn form(&self, step: &str, fields: Markup) -> Markup {
        html! {
            form method="post" {
                input type="hidden" name="key" value=(self.guest.form_key.expose());
                input type="hidden" name="step" value=(step);
                (fields)
            }
        }
    }

    fn field(&self, name: &str, kind: &str, label: &'static str, hint: &str, value: &str, autocomplete: &str) -> Markup {
        html! {
            div class="field" {
                label for=(name) { (self.say(label)) }
                p class="hint" id={ (name) "-hint" } { (hint) }
                (self.fault(name))
                input id=(name) name=(name) type=(kind) value=(value) autocomplete=(autocomplete) required
                    aria-describedby=(self.described(name)) aria-invalid=[self.invalid(name)];
            }
        }
    }

    fn fault(&self, name: &str) -> Markup {
        html! { @if let Some(message) = self.faults.get(name) { p class="fault" id={ (name) "-fault" } { (message) } } }
    }

    fn described(&self, name: &str) -> String {
        if self.faults.get(name).is_some() { format!("{name}-hint {name}-fault") } else { format!("{name}-hint") }
    }

    fn invalid(&self, name: &str) -> Option<&'static str> {
        self.faults.get(name).map(|_| "true")
    }
}

fn plain(language: Language, title: &'static str, text: &'static str) -> Markup {
    let title = language.say(title);
    layout_in(language.tag(), title, None, &html! { h1 { (title) } p { (language.say(text)) } })
}

pub(super) fn unknown(language: Language) -> Markup {
    plain(
        language,
        "There is no such invitation",
        "Check that the whole link was copied. If it was, contact the person who sent it to you.",
    )
}

pub(super) fn too_many(language: Language) -> Markup {
    plain(language, "Too many attempts", "Wait a minute, then open the link again.")
}

/// The form came from another site, or is too large.
pub(super) fn foreign_form(language: Language) -> Markup {
    plain(language, "The form could not be read", "Open the link of your invitation again, and fill in the form there.")
}
