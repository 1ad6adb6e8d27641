//! Fields of a broadcast's content, for a new one and for one that is edited.

use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastView, UpdateBroadcast};
use nuncio_core::users::SignedIn;

use super::draft::Said;
use crate::components::{Faults, Field, changed_meanwhile, form_key, version_field};
use crate::form::Form;

/// The fields as entered.
#[derive(Default)]
pub(super) struct Content {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) subject: String,
    pub(super) html: String,
    pub(super) links: bool,
    /// The version of the broadcast that the form showed.
    pub(super) version: Option<i64>,
}

impl Content {
    pub(super) fn of(form: &Form) -> Self {
        let [name, text, subject, html] = ["name", "text", "emailSubject", "emailHtmlBody"].map(|name| form.get(name));
        Self { name, text, subject, html, links: form.get("links") == "on", version: form.get("version").parse().ok() }
    }

    fn of_broadcast(broadcast: &BroadcastView) -> Self {
        let [text, subject, html] =
            [&broadcast.text, &broadcast.email_subject, &broadcast.email_html_body].map(|text| text.clone().unwrap_or_default());
        let (name, version) = (broadcast.name.clone(), Some(broadcast.version));
        Self { name, text, subject, html, links: broadcast.track_links, version }
    }

    /// The change that saves the fields.
    pub(super) fn update(&self) -> UpdateBroadcast {
        UpdateBroadcast {
            name: Some(self.name.trim().to_owned()),
            text: Some(given(&self.text)),
            email_subject: Some(given(&self.subject)),
            email_html_body: Some(given(&self.html)),
            track_links: Some(self.links),
            expected_version: self.version,
            ..UpdateBroadcast::default()
        }
    }

    /// The field of the name.
    pub(super) fn name_field(&self, faults: &Faults) -> Markup {
        Field::new("name", "Name", "Not visible to recipients.", &self.name).show(faults)
    }

    /// The fields of the text and of emails.
    pub(super) fn text_fields(&self, faults: &Faults) -> Markup {
        let hint = "{{name}} stands for a column of your file. Include a way to opt out, such as: Reply STOP.";
        html! {
            (Field { kind: "textarea", required: false, ..Field::new("text", "Text", hint, &self.text) }.show(faults))
            @let has_faults = faults.has("emailSubject") || faults.has("emailHtmlBody");
            details open[has_faults || !self.subject.is_empty() || !self.html.is_empty()] {
                summary { "Email and links" }
                (Field { required: false, ..Field::new("emailSubject", "Subject", "Required for email.", &self.subject) }.show(faults))
                (Field { kind: "textarea", required: false, ..Field::new("emailHtmlBody", "HTML", "Sent in addition to the text.", &self.html) }.show(faults))
                label class="check" { input type="checkbox" name="links" checked[self.links]; "Count clicks on links, which then redirect through this server." }
            }
        }
    }
}

/// A text without its blanks; `None` if nothing is left.
pub(super) fn given(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.trim().is_empty())
}

/// Renders the form that edits a draft or a rejected broadcast, with what was entered if that was wrong.
pub(super) fn editor(who: &SignedIn, broadcast: &BroadcastView, said: &Said) -> Markup {
    let (stored, faults) = (Content::of_broadcast(broadcast), &said.faults);
    let content = said.edited.as_ref().unwrap_or(&stored);
    html! {
        section class="panel" {
            header { h2 { "Edit" } span class="faint" { "Channel and sender stay. For others, create another broadcast." } }
            form class="body" method="post" action={ "/broadcasts/" (broadcast.id) } {
                (form_key(who))
                (version_field(content.version, said.changed_meanwhile, broadcast.version))
                @if said.changed_meanwhile { (changed_meanwhile("Content")) }
                (content.name_field(faults))
                (content.text_fields(faults))
                div class="row" { button class="btn" name="do" value="update" { "Save" } }
            }
        }
    }
}

/// Shows what was entered in the form of a broadcast that can no longer be edited.
pub(super) fn unsaved(edited: &Content) -> Markup {
    let entered = [("Name", &edited.name), ("Text", &edited.text), ("Subject", &edited.subject), ("HTML", &edited.html)];
    html! {
        section class="panel" {
            header { h2 { "What you entered" } span class="faint" { "It was not saved." } }
            div class="body" {
                @for (label, text) in entered.into_iter().filter(|(_, text)| !text.is_empty()) {
                    p class="soft" { (label) }
                    pre class="said" tabindex="0" dir="auto" { (text) }
                }
            }
        }
    }
}
