//! Creates, names, extends and erases a contact.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::{AddChannel, ContactChannelIn, ContactView, CreateContact, UpdateContact};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Error, Result};

use super::{Said, people};
use crate::App;
use crate::components::{Faults, Field, ask_first, channels, choice, form_key};
use crate::form::{Form, recipient};
use crate::messages::new::{key, made, once};
use crate::signed::{Asked, Posted, Signed, lead_to, refuse, show_or_refuse};

const CHANNELS: [(&str, &str); 7] = channels(("", "By its form: SMS or email"));

/// Renders the form for a new contact.
pub(super) fn new_form(app: &App, who: &SignedIn, said: &Said) -> Markup {
    html! {
        section class="panel" id="new" {
            header { h2 { "One person" } }
            form class="body" method="post" action="/contacts/new" {
                (form_key(who))
                input type="hidden" name="once" value=(once(app));
                (Field { required: false, ..Field::new("name", "Name", "", &said.typed.get("name")) }.show(&said.faults))
                (address_fields(said, None))
                div class="row" { button class="btn" { "Add this person" } }
            }
        }
    }
}

/// Leads to the form. Browsers ask for this path after a form with errors, such as from the address bar.
pub(crate) async fn new(_: Signed) -> Response {
    lead_to("/contacts#new")
}

/// Renders the forms that change a contact: its name, its addresses, and a merge.
pub(super) fn forms(who: &SignedIn, contact: &ContactView, renamed: &Said, added: &Said, merged: &Said) -> Markup {
    let action = format!("/contacts/{}", contact.id);
    let stored = contact.display_name.clone().unwrap_or_default();
    let name = if renamed.typed.get("do").is_empty() { stored } else { renamed.typed.get("name") };
    html! {
        section class="panel" {
            header { h2 { "Change" } }
            form class="body" method="post" action=(action) {
                (form_key(who))
                (renamed.faults.summary())
                (Field { required: false, ..Field::new("name", "Name", "Empty for none.", &name) }.show(&renamed.faults))
                div class="row" { button class="btn" name="do" value="rename" { "Save the name" } }
            }
            form class="body" method="post" action=(action) {
                (form_key(who))
                (added.faults.summary())
                (address_fields(added, Some(contact)))
                div class="row" { button class="btn" name="do" value="add" { "Add the address" } }
            }
            form class="body" method="post" action=(action) {
                (form_key(who))
                (merged.faults.summary())
                (Field::new("other", "Address of the other contact", "To merge two contacts of one person. Nothing is merged before you have compared them.", &merged.typed.get("other")).show(&merged.faults))
                div class="row" { button class="btn" name="do" value="compare" { "Compare the two" } }
            }
            footer {
                (ask_first("erase", "Erase", "Erase this person?", "The contact, the texts of its messages and its addresses in them are erased. This cannot be undone.", &action,
                    html! { (form_key(who)) input type="hidden" name="do" value="erase"; }))
            }
        }
    }
}

/// A number or address and its channel, with a way to the contact that has it: for `contact`, to merge with it.
fn address_fields(said: &Said, contact: Option<&ContactView>) -> Markup {
    html! {
        @match (&said.owner, contact) {
            (Some(owner), Some(contact)) => p { a href={ "/contacts/" (contact.id) "/merge?with=" (owner) } { "Compare the two contacts, and merge them" } },
            (Some(owner), None) => p { a href={ "/contacts/" (owner) } { "Open the contact that has it" } },
            (None, _) => {},
        }
        (Field::new("identifier", "Number or address", "A phone number with its country code, an email address, or a chat ID.", &said.typed.get("identifier")).show(&said.faults))
        (choice("channel", "Channel", &CHANNELS, &said.typed.get("channel"), "", &said.faults))
    }
}

/// Returns the errors under the names of the form fields.
pub(super) fn faults(error: &Error) -> Faults {
    Faults::of(error).renamed(|path| match path.rsplit('.').next() {
        Some("displayName") => "name".to_owned(),
        field => field.unwrap_or_default().to_owned(),
    })
}

/// Creates a contact.
pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, asked: Asked, Posted(form): Posted) -> Response {
    let name = Some(form.get("name").trim().to_owned()).filter(|name| !name.is_empty());
    let created = async {
        let command = CreateContact { channels: vec![address(&form)?], display_name: name, metadata: None };
        let contact = app.core.contacts().create(&who.caller, command, key(&form.get("once")).as_deref()).await;
        made(contact.map(|contact| contact.id), "contact")
    };
    match created.await {
        Ok(id) => lead_to(&format!("/contacts/{id}")),
        Err(error) if error.code().status() == 400 => {
            let said = Said::of(&error, form);
            let content = people(&app, &who, &asked, &said, None).await;
            show_or_refuse(StatusCode::BAD_REQUEST, &who, "/contacts", "Contacts", content, "/contacts")
        }
        Err(error) => refuse(&who, "/contacts", &error),
    }
}

pub(super) async fn rename(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<()> {
    let display_name = Some(form.get("name").trim().to_owned());
    app.core.contacts().update(&who.caller, id, UpdateContact { display_name, default_channel: None, metadata: None }).await.map(drop)
}

pub(super) async fn add(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<()> {
    app.core.contacts().add_channel(&who.caller, id, address(form)?, None).await.map(drop)
}

/// Returns the other contact, to compare and merge.
pub(super) async fn other(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<String> {
    let found = app.core.contacts().find_typed(&who.caller, &form.get("other"), "other").await?;
    match found.map(|(_, contact)| contact.to_string()) {
        Some(other) if other == id => Err(Error::field("other", "belongs to this contact; enter one of the other")),
        Some(other) => Ok(other),
        None => Err(Error::field("other", "belongs to no contact")),
    }
}

fn address(form: &Form) -> Result<AddChannel> {
    let identifier = recipient(&form.get("identifier"));
    let channel = match form.get("channel").as_str() {
        "" if identifier.contains('@') => Channel::Email,
        "" => Channel::Sms,
        name => Channel::parse(name).ok_or_else(|| Error::field("channel", format!("{name:?} is not a channel")))?,
    };
    Ok(ContactChannelIn { channel, identifier, country_code: None, label: None, is_primary: None })
}
