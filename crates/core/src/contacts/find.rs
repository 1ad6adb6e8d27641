//! Finds a contact by what a person types for an address.

use std::collections::BTreeSet;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::{AddressKind, Channel, ContactId, Error, Recipient, Result, limits, page::PageRequest};
use nuncio_store::ContactFilter;

use super::Contacts;
use crate::base::{Caller, UseCase};

impl Contacts<'_> {
    /// Returns the address that a person means, and the contact that has it. A phone number can lack its country code, an email address have
    /// letters in another case: each likely form is looked up by index. Several phone numbers are an error of `path`.
    pub async fn find_typed(&self, caller: &Caller, text: &str, path: &str) -> Result<Option<(Recipient, ContactId)>> {
        caller.require(UseCase::ListContacts)?;
        let text = text.trim();
        let mut forms = vec![(AddressKind::Email, emails(text)), (AddressKind::Phone, self.phones(caller, text).await?)];
        if let Ok(id @ Parsed::Digits(_)) = Parsed::parse(text) {
            let chats = [Channel::Telegram, Channel::Instagram].into_iter().filter_map(|channel| Recipient::on(&id, channel).ok());
            forms.extend(chats.map(|chat| (chat.kind, vec![chat.identifier])));
        }
        let mut tx = self.inner.store.read().await?;
        for (kind, forms) in forms {
            let known = tx.contacts_by_identifier(caller.tenant, kind, &forms.iter().cloned().collect()).await?;
            let mut found = forms.into_iter().filter_map(|identifier| Some((known.get(&identifier).copied()?, identifier)));
            let Some((contact, identifier)) = found.next() else { continue };
            return match found.next() {
                Some((_, other)) if kind == AddressKind::Phone => {
                    Err(Error::field(path, format!("is ambiguous: {identifier} or {other}; write it with its country code")))
                }
                _ => Ok(Some((Recipient { kind, identifier }, contact))),
            };
        }
        Ok(None)
    }

    /// Returns the phone numbers that a text can mean. Without a country code, it is a number of a country of the senders or of the newest
    /// contacts: the numbering plans of all countries would take much memory.
    async fn phones(&self, caller: &Caller, text: &str) -> Result<Vec<String>> {
        if let Ok(number) = address::typed_phone::<&str>(text, &[]) {
            return Ok(vec![number]);
        }
        if text.chars().any(char::is_alphabetic) {
            return Ok(Vec::new());
        }
        let config = self.tenant_config(caller.tenant).await?;
        let own = config.senders.iter().map(|sender| address::country(&sender.phone_number));
        let mut tx = self.inner.store.read().await?;
        let newest = tx.list_contacts(caller.tenant, &ContactFilter::default(), PageRequest::newest(limits::PAGE_MAX)).await?;
        let countries: BTreeSet<String> = newest.items.into_iter().map(|contact| contact.country).chain(own).collect();
        let numbers: BTreeSet<String> = countries.iter().filter_map(|country| address::typed_phone(text, &[country]).ok()).collect();
        Ok(numbers.into_iter().collect())
    }
}

/// Returns an email address as typed, then with the case that the part before the `@` usually has.
fn emails(text: &str) -> Vec<String> {
    let Ok(typed) = address::email(text) else { return Vec::new() };
    let Some((local, domain)) = typed.rsplit_once('@') else { return Vec::new() };
    let lower = local.to_lowercase();
    let (first, names) = (capitalised(&lower, |_| false), capitalised(&lower, |before| !before.is_alphanumeric()));
    [local.to_owned(), lower, first, names, local.to_uppercase()].map(|local| format!("{local}@{domain}")).to_vec()
}

/// Capitalises the first letter, and those after a character that `ends` a word.
fn capitalised(lower: &str, ends: impl Fn(char) -> bool) -> String {
    let mut begins = true;
    let letter = |c: char| {
        let out = if begins { c.to_ascii_uppercase() } else { c };
        begins = ends(c);
        out
    };
    lower.chars().map(letter).collect()
}
