//! Fills `{{variables}}` in the text, subject and HTML of broadcasts. A broadcast with a
//! template has no text of its own; its subject and HTML take the template's values.
//!
//! A recipient's value overrides the broadcast's. Missing values are detected before the broadcast is sent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nuncio_domain::broadcast::{Broadcast, Variables};
use nuncio_domain::message::Content;
use nuncio_domain::template::{Template, fill, filled_length, variables};
use nuncio_domain::{AddressKind, Error, ErrorCode, FieldError, RequestedChannel, Result, limits};
use nuncio_store::NewBroadcastContact;

use super::Broadcasts;
use crate::base::{Caller, UseCase, parse_id};
use crate::{messages::SendMessage, templates::render};

type Values = BTreeMap<String, String>;

/// Recipients per page of the search for missing values, and how many recipients an error lists.
const PAGE: u32 = 1_000;
const SHOWN: usize = 20;
/// Maximum number of values per recipient.
const VALUES: usize = 50;

/// Returns the texts that can have variables, each with its field.
pub(super) fn texts(broadcast: &Broadcast) -> impl Iterator<Item = (&'static str, &str)> {
    let texts = [("text", &broadcast.body.text), ("emailSubject", &broadcast.body.email_subject), ("emailHtmlBody", &broadcast.html)];
    texts.into_iter().filter_map(|(field, text)| Some((field, text.as_deref()?)))
}

/// Returns the variables of each text, with its field.
fn by_field(broadcast: &Broadcast) -> Vec<(&'static str, &str)> {
    texts(broadcast).flat_map(|(field, text)| variables(text).into_iter().map(move |name| (field, name))).collect()
}

/// Returns the variables of text, subject and HTML, each once.
pub(super) fn used(broadcast: &Broadcast) -> Vec<&str> {
    let mut names: Vec<&str> = by_field(broadcast).into_iter().map(|(_, name)| name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the variables that recipients can have values of: those of the template, otherwise of the texts.
pub(super) fn of_recipients(broadcast: &Broadcast, template: Option<&Template>) -> Vec<String> {
    match template {
        Some(template) => template.content.variables.clone(),
        None => used(broadcast).into_iter().map(str::to_owned).collect(),
    }
}

/// Returns the errors of variable values. Of too many, checks only the permitted number.
pub(super) fn check(values: &Values, path: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if values.len() > VALUES {
        faults.push(FieldError::new(path, format!("has {} values; must have at most {VALUES}", values.len())));
    }
    for (name, value) in values.iter().take(VALUES) {
        let length = value.chars().count();
        if !(1..=limits::TEMPLATE_VALUE).contains(&length) {
            let name: String = name.chars().take(64).collect();
            let message = format!("has {length} characters; must have 1 to {}", limits::TEMPLATE_VALUE);
            faults.push(FieldError::new(format!("{path}.{name}"), message));
        } else if name.contains('\0') || value.contains('\0') {
            let name: String = name.replace('\0', "\u{2400}").chars().take(64).collect();
            faults.push(FieldError::new(format!("{path}.{name}"), "must not contain U+0000"));
        }
    }
    faults
}

/// Returns the values for recipients without their own.
fn common(broadcast: &Broadcast) -> &Values {
    let of_template = broadcast.body.content.as_deref().and_then(|content| content.template_variables.as_ref());
    of_template.unwrap_or(&broadcast.body.variables)
}

/// Returns the values for a recipient.
fn values<'a>(broadcast: &'a Broadcast, own: &'a Variables) -> Cow<'a, Values> {
    let common = common(broadcast);
    match &own.template_variables {
        None => Cow::Borrowed(common),
        Some(own) if common.is_empty() => Cow::Borrowed(own),
        Some(own) => {
            let mut values = common.clone();
            values.extend(own.clone());
            Cow::Owned(values)
        }
    }
}

/// Returns the content for a recipient, whose values override those of the broadcast.
pub(super) fn merged(broadcast: &Broadcast, variables: &Variables) -> Content {
    let mut content = broadcast.body.content.as_deref().cloned().unwrap_or_default();
    let merge = |into: &mut Option<_>, own: &Option<Values>| {
        if let Some(own) = own {
            into.get_or_insert_with(Values::new).extend(own.clone());
        }
    };
    merge(&mut content.template_variables, &variables.template_variables);
    merge(&mut content.template_button_variables, &variables.template_button_variables);
    merge(&mut content.template_header_variables, &variables.template_header_variables);
    content
}

/// Fails if a text with its values exceeds the limit of an email, which is the highest of all channels. Checked before it is filled: a text
/// of 1 MB can have so many variables that it would grow to gigabytes.
fn check_length(field: &str, text: Option<&String>, values: &Values, limit: usize) -> Result<()> {
    match text.map_or(0, |text| filled_length(text, values)) {
        length if length > limit => {
            Err(Error::field(field, format!("is {length} bytes of UTF-8 with the values of the recipient; must be at most {limit}")))
        }
        _ => Ok(()),
    }
}

/// Fills the variables of a message to a recipient. Fails if a value is missing, so that no text is sent with a gap, or if the values make
/// a text too long.
pub(super) fn fill_in(broadcast: &Broadcast, own: &Variables, command: &mut SendMessage) -> Result<()> {
    let used = by_field(broadcast);
    if used.is_empty() {
        return Ok(());
    }
    let values = values(broadcast, own);
    if let Some((field, name)) = used.into_iter().find(|(_, name)| !values.contains_key(*name)) {
        return Err(Error::field(field, format!("the recipient has no value for {{{{{name}}}}}")));
    }
    let escaped: Values = match command.html_body {
        Some(_) => values.iter().map(|(name, value)| (name.clone(), escape(value))).collect(),
        None => Values::new(),
    };
    check_length("text", command.text.as_ref(), &values, limits::EMAIL_TEXT_BYTES)?;
    check_length("emailHtmlBody", command.html_body.as_ref(), &escaped, limits::EMAIL_HTML_BYTES)?;
    for text in [&mut command.text, &mut command.subject].into_iter().flatten() {
        *text = fill(text, &values);
    }
    if let Some(html) = &mut command.html_body {
        *html = fill(html, &escaped);
    }
    Ok(())
}

/// Escapes text for HTML, including quoted attributes.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// Returns the errors of variables in subject and HTML that the template does not have.
fn unknown(broadcast: &Broadcast, template: &Template) -> Vec<FieldError> {
    let known = &template.content.variables;
    let unknown = by_field(broadcast).into_iter().filter(|(_, name)| !known.iter().any(|known| known == name));
    unknown.map(|(field, name)| FieldError::new(field, format!("uses {{{{{name}}}}}, which the template does not have"))).collect()
}

/// Returns the errors of a recipient's values: those that the template has, or the `needed` ones that are missing.
fn of_contact(broadcast: &Broadcast, template: Option<&Template>, needed: &[&str], contact: &NewBroadcastContact) -> Vec<FieldError> {
    let path = format!("contacts[{}].", contact.recipient.identifier);
    if let Some(template) = template {
        return render::check(template, &render::values(Some(&merged(broadcast, &contact.variables))), &path);
    }
    let own = contact.variables.template_variables.as_ref();
    let missing = needed.iter().filter(|name| own.is_none_or(|own| !own.contains_key(**name))).take(SHOWN);
    missing
        .map(|name| FieldError::new(format!("{path}templateVariables.{name}"), format!("is missing; the text uses {{{{{name}}}}}")))
        .collect()
}

impl Broadcasts<'_> {
    /// Returns the variables that recipients can have values of, at most as many as one can have; none if the template was deleted.
    pub async fn variables(&self, caller: &Caller, id: &str) -> Result<Vec<String>> {
        caller.require(UseCase::GetBroadcast)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let template = match self.named_template(&broadcast).await {
            Err(error) if error.code() == ErrorCode::NotFound => return Ok(Vec::new()),
            template => template?,
        };
        let mut names = of_recipients(&broadcast, template.as_ref());
        names.truncate(VALUES);
        Ok(names)
    }

    /// Fails if recipients lack a value or the subject of an email, or have a value that the template does not take; lists the first twenty.
    pub(super) async fn require_values(&self, broadcast: &Broadcast) -> Result<()> {
        let template = self.template_of(broadcast).await?;
        let needed: Vec<&str> = used(broadcast).into_iter().filter(|name| !common(broadcast).contains_key(*name)).collect();
        // It may have been removed after the recipients were added.
        let mut lacks_subject = broadcast.channel.requested() == RequestedChannel::Auto && broadcast.body.email_subject.is_none();
        if template.is_none() && needed.is_empty() && !lacks_subject {
            return Ok(());
        }
        let mut faults = template.as_ref().map_or_else(Vec::new, |template| unknown(broadcast, template));
        let mut after = None;
        while faults.len() < SHOWN {
            let page = self.inner.store.read().await?.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, PAGE).await?;
            if lacks_subject && page.found.iter().any(|contact| contact.recipient.kind == AddressKind::Email) {
                faults.push(FieldError::new("emailSubject", "is missing; the broadcast has recipients that get an email"));
                lacks_subject = false;
            }
            let of_page = page.found.iter().flat_map(|contact| of_contact(broadcast, template.as_ref(), &needed, contact));
            faults.extend(of_page.take(SHOWN));
            if page.next.is_none() {
                break;
            }
            after = page.next;
        }
        faults.truncate(SHOWN);
        Error::if_any(faults)
    }
}
