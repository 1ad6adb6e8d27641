//! Reads contacts, and suggests merges.

use std::collections::{BTreeSet, HashMap};

use nuncio_domain::contact::{self, Contact};
use nuncio_domain::{AddressKind, ContactId, Error, FieldError, Recipient, Result, TenantId, address};
use nuncio_store::{Address, ContactFilter, Tx};
use serde_json::Value;

use super::view::{ContactView, Person};
use super::{Contacts, command::ListContacts};
use crate::base::{Caller, UseCase, list, list::Listed, parse_id};

/// Maximum number of contacts of the same name considered for a merge suggestion.
const NAMESAKES: u32 = 10;
/// Maximum number of email addresses looked up in the metadata of a contact.
const EMAILS: usize = 5;

impl Contacts<'_> {
    /// `GET /v1/contacts`: returns a page and the cursor of the next one.
    pub async fn list(&self, caller: &Caller, asked: &ListContacts) -> Result<Listed<ContactView>> {
        caller.require(UseCase::ListContacts)?;
        let (range, mut errors) = list::asked!(asked);
        let given = [
            asked.phone_number.as_deref().map(|text| (AddressKind::Phone, "query.phoneNumber", address::phone(&list::phone(text)))),
            asked.email.as_deref().map(|text| (AddressKind::Email, "query.email", address::email(text))),
        ];
        let mut identifiers = Vec::new();
        for (kind, path, read) in given.into_iter().flatten() {
            match read {
                Ok(identifier) => identifiers.push(Recipient { kind, identifier }),
                Err(error) => errors.push(FieldError::new(path, error.to_string())),
            }
        }
        let name = list::part(asked.name.as_deref(), "query.name", &mut errors).map(|name| contact::name_key(&name));
        let filter = ContactFilter { id: None, name, metadata: list::metadata(&asked.metadata, "query.metadata", &mut errors) };
        let listing = self.listing(caller.tenant, &format!("contacts?{identifiers:?}{filter:?}"), &range, errors)?;
        let mut tx = self.inner.store.read().await?;
        let Some(id) = owner(&mut *tx, caller.tenant, &identifiers).await? else { return Ok((Vec::new(), None)) };
        let page = tx.list_contacts(caller.tenant, &ContactFilter { id, ..filter }, listing.page).await?;
        let items = views(&mut *tx, caller.tenant, page.items).await?;
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// `GET /v1/contacts/{id}`. For a merged contact, returns the one it was merged into.
    pub async fn get(&self, caller: &Caller, id: &str) -> Result<ContactView> {
        caller.require(UseCase::GetContact)?;
        let id = parse_id(id, "contact")?;
        let mut tx = self.inner.store.read().await?;
        if let Some(view) = view(&mut *tx, caller.tenant, id).await? {
            return Ok(view);
        }
        let target = tx.merged_into(caller.tenant, id).await?.ok_or_else(|| Error::not_found("contact"))?;
        let mut view = view(&mut *tx, caller.tenant, target).await?.ok_or_else(|| Error::not_found("contact"))?;
        view.merged_from = Some(id);
        Ok(view)
    }

    /// Returns the names of these contacts, of those that have one.
    pub async fn names(&self, caller: &Caller, ids: &[ContactId]) -> Result<HashMap<ContactId, String>> {
        caller.require(UseCase::GetContact)?;
        let found = self.inner.store.read().await?.lookup_contacts(caller.tenant, ids).await?;
        Ok(found
            .into_iter()
            .filter_map(|contact| Some((contact.id, contact.detail.display_name.or(contact.detail.profile_name)?)))
            .collect())
    }

    /// `GET /v1/contacts/phone/{e164}`.
    pub async fn get_by_phone(&self, caller: &Caller, phone: &str) -> Result<ContactView> {
        caller.require(UseCase::GetContactByPhone)?;
        let not_found = || Error::not_found("contact");
        let identifier = address::phone(&list::phone(phone)).map_err(|_| not_found())?;
        let mut tx = self.inner.store.read().await?;
        let contacts = match tx.find_address(caller.tenant, &Recipient { kind: AddressKind::Phone, identifier }).await? {
            Some((_, id)) => tx.find_contact(caller.tenant, id).await?,
            None => None,
        };
        views(&mut *tx, caller.tenant, contacts.into_iter().collect()).await?.pop().ok_or_else(not_found)
    }
}

/// Returns the contact that has all these identifiers. `None` if there is none, `Some(None)` if no identifier was given.
async fn owner(tx: &mut dyn Tx, tenant: TenantId, identifiers: &[Recipient]) -> Result<Option<Option<ContactId>>> {
    let mut owner = None;
    for identifier in identifiers {
        let found = tx.find_address(tenant, identifier).await?.map(|(_, contact)| contact);
        if found.is_none() || owner.is_some_and(|owner| Some(owner) != found) {
            return Ok(None);
        }
        owner = found;
    }
    Ok(Some(owner))
}

pub(super) async fn view(tx: &mut dyn Tx, tenant: TenantId, id: ContactId) -> nuncio_store::Result<Option<ContactView>> {
    let contact = tx.find_contact(tenant, id).await?;
    Ok(views(tx, tenant, contact.into_iter().collect()).await?.pop())
}

/// Returns the views of contacts, in the same order.
pub(crate) async fn views(tx: &mut dyn Tx, tenant: TenantId, contacts: Vec<Contact>) -> nuncio_store::Result<Vec<ContactView>> {
    let people = people(tx, tenant, contacts).await?;
    let suggested = suggest(tx, tenant, &people).await?;
    Ok(people.iter().map(|person| ContactView::new(person, suggested.get(&person.contact.id).copied())).collect())
}

/// Loads contacts with all related data, in the same order.
pub(crate) async fn people(tx: &mut dyn Tx, tenant: TenantId, contacts: Vec<Contact>) -> nuncio_store::Result<Vec<Person>> {
    let ids: Vec<ContactId> = contacts.iter().map(|c| c.id).collect();
    let mut addresses: HashMap<ContactId, Vec<Address>> = HashMap::new();
    for address in tx.addresses_of_contacts(tenant, &ids).await? {
        addresses.entry(address.contact).or_default().push(address);
    }
    let person = |contact: Contact| Person { addresses: addresses.remove(&contact.id).unwrap_or_default(), contact };
    Ok(contacts.into_iter().map(person).collect())
}

/// Returns, for each of `people`, a contact that seems to be the same person: one of the same name with another kind of identifier, or the
/// owner of an email address in the metadata. The oldest that was not dismissed. The number of statements is constant.
pub(super) async fn suggest(tx: &mut dyn Tx, tenant: TenantId, people: &[Person]) -> nuncio_store::Result<HashMap<ContactId, ContactId>> {
    let named: Vec<_> = people.iter().map(|person| person.contact.detail.name_key()).collect();
    let keys: BTreeSet<String> = named.iter().flatten().cloned().collect();
    let of_name = tx.contacts_named(tenant, &keys, NAMESAKES).await?;
    let emails: Vec<Vec<String>> = people.iter().map(emails).collect();
    let owners = tx.contacts_by_identifier(tenant, AddressKind::Email, &emails.iter().flatten().cloned().collect()).await?;
    let candidates: Vec<(&Person, Vec<ContactId>, Vec<ContactId>)> = people
        .iter()
        .zip(named.iter().zip(&emails))
        .map(|(person, (name, emails))| {
            let namesakes = name.as_ref().and_then(|name| of_name.get(name)).into_iter().flatten().copied();
            let owners = emails.iter().filter_map(|email| owners.get(email)).copied();
            (person, namesakes.filter(|id| possible(person, *id)).collect(), owners.filter(|id| possible(person, *id)).collect())
        })
        .collect();
    let others: BTreeSet<ContactId> =
        candidates.iter().flat_map(|(_, namesakes, owners)| namesakes.iter().chain(owners)).copied().collect();
    let others: Vec<ContactId> = others.into_iter().collect();
    let mut kinds: HashMap<ContactId, Vec<AddressKind>> = HashMap::new();
    for address in tx.addresses_of_contacts(tenant, &others).await? {
        kinds.entry(address.contact).or_default().push(address.recipient.kind);
    }
    // Of a contact that was dismissed and merged since, only the other one knows.
    let dismissed: HashMap<ContactId, Vec<ContactId>> =
        tx.lookup_contacts(tenant, &others).await?.into_iter().map(|contact| (contact.id, contact.detail.dismissed)).collect();
    let mut suggested = HashMap::new();
    for (person, namesakes, owners) in candidates {
        let lacks = |kind: &AddressKind| person.addresses.iter().all(|address| address.recipient.kind != *kind);
        let fitting = namesakes.into_iter().filter(|id| kinds.get(id).is_some_and(|kinds| kinds.iter().any(lacks)));
        let turned_down = |id: &ContactId| dismissed.get(id).is_some_and(|theirs| theirs.contains(&person.contact.id));
        let found = fitting.chain(owners).find(|id| !turned_down(id));
        suggested.extend(found.map(|id| (person.contact.id, id)));
    }
    Ok(suggested)
}

/// Returns whether `id` is another contact and was not dismissed.
fn possible(person: &Person, id: ContactId) -> bool {
    id != person.contact.id && !person.contact.detail.dismissed.contains(&id)
}

/// Returns the first email addresses in the metadata of a contact.
fn emails(person: &Person) -> Vec<String> {
    let mut found = Vec::new();
    person.contact.detail.metadata.values().for_each(|value| find_emails(value, &mut found));
    found
}

fn find_emails(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains('@') && found.len() < EMAILS => found.extend(address::email(text.trim())),
        Value::Array(items) => items.iter().for_each(|item| find_emails(item, found)),
        Value::Object(members) => members.values().for_each(|item| find_emails(item, found)),
        _ => {}
    }
}
