//! Fields of a broadcast's content, for a new one and for one that is edited.

use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastView, UpdateBroadcast};
use nuncio_core::users::SignedIn;

use crate::components::{Faults, Field, form_key};
use crate::form::Form;

/// The fields as entered.
#[derive(Default)]
pub(super) struct Content {
    pub(super) name: String,
    pub(super) text: String,
    pub(super) subject: String,
    pub(super) html: String,
    pub(super) links: bool,
}

impl Content {
    pub(super) fn of(form: &Form) -> Self {
        let [name, text, subject, html] = ["name", "text", "emailSubject", "emailHtmlBody"].map(|name| form.get(name));
        Self { name, text, subject, html, links: form.get("links") == "on" }
    }

    fn of_broadcast(broadcast: &BroadcastView) -> Self {
        let [text, subject, html] =
            [&broadcast.text, &broadcast.email_subject, &broadcast.email_html_body].map(|text| text.clone().unwrap_or_default());
        Self { name: broadcast.name.clone(), text, subject, html, links: broadcast.track_links }
    }

    /// The change that saves the fields.
    pub(super) fn update(&self) -> UpdateBroadcast {
        UpdateBroadcast {
            name: Some(self.name.trim().to_owned()),
            text: Some(given(&self.text)),
            email_subject: Some(given(&self.subject)),
            email_html_body: Some(given(&self.html)),
            track_links: Some(self.links),
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
pub(super) fn editor(who: &SignedIn, broadcast: &BroadcastView, edited: Option<&Content>, faults: &Faults) -> Markup {
    let stored;
    let content = match edited {
        Some(edited) => edited,
        None => {
            stored = Content::of_broadcast(broadcast);
            &stored
        }
    };
    html! {
        section class="panel" {
            header { h2 { "Edit" } span class="faint" { "Channel and sender stay. For others, create another broadcast." } }
            form class="body" method="post" action={ "/broadcasts/" (broadcast.id) } {
                (form_key(who))
                (content.name_field(faults))
                (content.text_fields(faults))
                div class="row" { button class="btn" name="do" value="update" { "Save" } }
            }
        }
    }
}
