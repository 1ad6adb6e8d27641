//! Fills `{{variables}}` in the text, subject and HTML of broadcasts without a template.
//!
//! A recipient's value overrides the broadcast's. Missing values are detected before the broadcast is sent.

use std::borrow::Cow;
use std::collections::BTreeMap;

use nuncio_domain::broadcast::{Broadcast, Variables};
use nuncio_domain::template::{fill, variables};
use nuncio_domain::{Error, FieldError, Result, limits};

use super::{Broadcasts, content};
use crate::messages::SendMessage;

type Values = BTreeMap<String, String>;

/// Recipients per page of the search for missing values, and how many recipients an error lists.
const PAGE: u32 = 1_000;
const SHOWN: usize = 20;
/// Maximum number of values per recipient.
const VALUES: usize = 50;

/// Returns the variables of a broadcast's content, each once; none with a template.
pub(super) fn used(broadcast: &Broadcast) -> Vec<&str> {
    if content::is_template(broadcast) {
        return Vec::new();
    }
    let texts = [&broadcast.body.text, &broadcast.body.email_subject, &broadcast.html];
    let mut names: Vec<&str> = texts.into_iter().flatten().flat_map(|text| variables(text)).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the errors of variable values.
pub(super) fn check(values: &Values, path: &str) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if values.len() > VALUES {
        faults.push(FieldError::new(path, format!("has {} values; must have at most {VALUES}", values.len())));
    }
    for (name, value) in values {
        let length = value.chars().count();
        if !(1..=limits::TEMPLATE_VALUE).contains(&length) {
            let name: String = name.chars().take(64).collect();
            let message = format!("has {length} characters; must have 1 to {}", limits::TEMPLATE_VALUE);
            faults.push(FieldError::new(format!("{path}.{name}"), message));
        }
    }
    faults
}

/// Returns the values for a recipient.
fn values<'a>(broadcast: &'a Broadcast, own: &'a Variables) -> Cow<'a, Values> {
    match &own.template_variables {
        None => Cow::Borrowed(&broadcast.body.variables),
        Some(own) if broadcast.body.variables.is_empty() => Cow::Borrowed(own),
        Some(own) => {
            let mut values = broadcast.body.variables.clone();
            values.extend(own.clone());
            Cow::Owned(values)
        }
    }
}

/// Fills the variables of a message to a recipient. Fails if a value is missing, so that no text is sent with a gap.
pub(super) fn fill_in(broadcast: &Broadcast, own: &Variables, command: &mut SendMessage) -> Result<()> {
    let used = used(broadcast);
    if used.is_empty() {
        return Ok(());
    }
    let values = values(broadcast, own);
    if let Some(name) = used.iter().find(|name| !values.contains_key(**name)) {
        return Err(Error::field("text", format!("the recipient has no value for {{{{{name}}}}}")));
    }
    for text in [&mut command.text, &mut command.subject].into_iter().flatten() {
        *text = fill(text, &values);
    }
    if let Some(html) = &mut command.html_body {
        let escaped = values.iter().map(|(name, value)| (name.clone(), escape(value))).collect();
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

impl Broadcasts<'_> {
    /// Fails if recipients lack a value, and lists the first twenty.
    pub(super) async fn require_values(&self, broadcast: &Broadcast) -> Result<()> {
        let needed: Vec<&str> = used(broadcast).into_iter().filter(|name| !broadcast.body.variables.contains_key(*name)).collect();
        if needed.is_empty() {
            return Ok(());
        }
        let (mut faults, mut after) = (Vec::new(), None);
        while faults.len() < SHOWN {
            let mut tx = self.inner.store.read().await?;
            let page = tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, PAGE).await?;
            drop(tx);
            for contact in &page.found {
                let own = contact.variables.template_variables.as_ref();
                let missing = needed.iter().filter(|name| own.is_none_or(|own| !own.contains_key(**name)));
                faults.extend(missing.map(|name| {
                    let path = format!("contacts[{}].templateVariables.{name}", contact.recipient.identifier);
                    FieldError::new(path, format!("is missing; the text uses {{{{{name}}}}}"))
                }));
            }
            if page.next.is_none() {
                break;
            }
            after = page.next;
        }
        faults.truncate(SHOWN);
        if faults.is_empty() { Ok(()) } else { Err(Error::invalid(faults)) }
    }
}
