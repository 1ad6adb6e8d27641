//! What a sender is called, its number and its limits: a form, or facts for viewers.

use maud::{Markup, html};
use nuncio_core::senders::{SenderView, UpdateSender};
use nuncio_core::users::SignedIn;
use nuncio_domain::{FieldError, Timestamp, address};

use super::show::Said;
use crate::components::{Field, changed_meanwhile, dollars, form_key, may_change, version_field, words};
use crate::form::Form;

/// Renders the panel, after a wrong entry with what was typed.
pub(super) fn panel(who: &SignedIn, sender: &SenderView, said: &Said) -> Markup {
    html! {
        section class="panel" id="details" {
            header { h2 { "Details" } @if sender.whatsapp.is_some() { a href={ "/senders/" (sender.id) "/profile" } { "WhatsApp profile" } } }
            @if may_change(who) { (form(who, sender, said)) } @else { div class="body" { (facts(sender)) } }
        }
    }
}

fn countries(sender: &SenderView) -> String {
    sender.allowed_countries.as_deref().unwrap_or_default().join(", ")
}

fn facts(sender: &SenderView) -> Markup {
    let or_none = |text: &str, none: &'static str| {
        if text.is_empty() {
            html! { span class="faint" { (none) } }
        } else {
            words(text)
        }
    };
    html! {
        dl class="facts" {
            dt { "Phone number" } dd { (or_none(&sender.phone_number, "none")) }
            dt { "Countries" } dd { (or_none(&countries(sender), "all")) }
            dt { "Daily limit" } dd { @match sender.daily_spend_limit { Some(limit) => (dollars(limit)), None => { span class="faint" { "none" } } } }
            dt { "Inbound email" } dd { @if sender.email_receiving_enabled { "accepted" } @else { "not accepted" } }
            @if let Some(account) = &sender.whatsapp { dt { "On WhatsApp" } dd { (or_none(&account.display_phone_number, "not known yet")) } }
        }
    }
}

fn form(who: &SignedIn, sender: &SenderView, said: &Said) -> Markup {
    let (faults, typed) = (&said.faults, said.typed.as_ref());
    let limit = sender.daily_spend_limit.map(|limit| limit.to_string()).unwrap_or_default();
    let value = |name: &str, now: &str| typed.map_or_else(|| now.to_owned(), |typed| typed.get(name));
    let field = |name: &str, label: &str, hint: &str, now: &str| {
        Field { required: name == "name", ..Field::new(name, label, hint, &value(name, now)) }.show(faults)
    };
    let receives = typed.map_or(sender.email_receiving_enabled, |typed| typed.get("emailReceivingEnabled") == "on");
    html! {
        form class="body" method="post" action={ "/senders/" (sender.id) } {
            (form_key(who))
            (version_field(typed.and_then(version_of), said.changed_meanwhile, sender.updated_at))
            @if said.changed_meanwhile { (changed_meanwhile("This list")) (facts(sender)) }
            div class="fields" {
                (field("name", "Name", "", &sender.name))
                (field("phoneNumber", "Phone number", "With its country code, such as +34 600 111 222.", &sender.phone_number))
                (field("allowedCountries", "Countries it can send to", "Such as ES, PT; empty for all.", &countries(sender)))
                (field("dailySpendLimit", "Spending limit per day", "In US dollars; empty for none.", &limit))
            }
            label class="check" { input type="checkbox" name="emailReceivingEnabled" checked[receives]; "Accept inbound email" }
            div class="row" { button class="btn" name="do" value="save" { "Save" } }
        }
    }
}

/// Returns when the sender that the form shows was last changed.
fn version_of(form: &Form) -> Option<Timestamp> {
    Timestamp::parse(&form.version()?).ok()
}

/// Reads the form.
pub(super) fn read(form: &Form) -> UpdateSender {
    let given = |name: &str| Some(form.get(name).trim().to_owned()).filter(|text| !text.is_empty());
    let countries: Vec<String> =
        form.get("allowedCountries").split(',').map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty()).collect();
    let mut unreadable = Vec::new();
    let limit = given("dailySpendLimit").and_then(|text| {
        let read = text.parse().ok();
        if read.is_none() {
            unreadable.push(FieldError::new("dailySpendLimit", format!("is {text:?}; must be an amount such as 25.50")));
        }
        read
    });
    UpdateSender {
        name: Some(form.get("name").trim().to_owned()),
        phone_number: Some(to_e164(&form.get("phoneNumber"))),
        allowed_countries: Some(Some(countries).filter(|countries| !countries.is_empty())),
        daily_spend_limit: Some(limit),
        email_receiving_enabled: Some(form.get("emailReceivingEnabled") == "on"),
        expected_version: version_of(form),
        unreadable,
        ..UpdateSender::default()
    }
}

/// Normalises a phone number to E.164; one that cannot be parsed stays, and is rejected later with its field name.
pub(super) fn to_e164(phone: &str) -> Option<String> {
    let phone = phone.trim();
    (!phone.is_empty()).then(|| address::typed_phone::<&str>(phone, &[]).unwrap_or_else(|_| phone.to_owned()))
}
