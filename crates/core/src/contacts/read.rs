//! Reading contacts.

use std::collections::HashMap;

use nuncio_domain::contact::Contact;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, ContactId, Error, FieldError, Permission, Recipient, Result, TenantId, address};
use nuncio_store::{Address, Tx};
use serde_json::Value;

use super::command::ListContacts;
use super::view::{ContactView, Person};
use crate::list::Listed;
use crate::{Caller, Core, StoreResultExt as _, list, parse_id};

/// Contacts of one name that are looked at to find two that are one person.
const NAMESAKES: u32 = 10;
/// Email addresses in the metadata of one contact that are looked up.
const EMAILS: usize = 5;

impl Core {
    /// `GET /v1/contacts`: a page, and the cursor of the next one.
    pub async fn list_contacts(&self, caller: &Caller, asked: &ListContacts) -> Result<Listed<ContactView>> {
        caller.require(Permission::ContactsRead)?;
        let mut errors = Vec::new();
        let limit = list::limit(asked.limit, &mut errors);
        let phone = asked.phone_number.as_deref().map(list::phone);
        if let Some(Err(error)) = phone.as_deref().map(address::phone) {
            errors.push(FieldError::new("query.phoneNumber", error.to_string()));
        }
        if !errors.is_empty() {
            return Err(Error::invalid(errors));
        }
        let scope = format!("contacts?{phone:?}");
        let page = self.page(caller.tenant, &scope, limit, asked.cursor.as_deref())?;
        let mut tx = self.inner.store.read().await.or_fail()?;
        let (contacts, next) = match phone {
            Some(identifier) => (with_phone(&mut *tx, caller.tenant, identifier, page).await?, None),
            None => {
                let page = tx.list_contacts(caller.tenant, page).await.or_fail()?;
                (page.items, page.next)
            }
        };
        let items = views(&mut *tx, caller.tenant, contacts).await.or_fail()?;
        Ok((items, self.next_cursor(caller.tenant, &scope, next)))
    }

    /// `GET /v1/contacts/{id}`. One that became part of another is answered with that one.
    pub async fn get_contact(&self, caller: &Caller, id: &str) -> Result<ContactView> {
        caller.require(Permission::ContactsRead)?;
        let id = parse_id(id, "contact")?;
        let mut tx = self.inner.store.read().await.or_fail()?;
        if let Some(view) = view(&mut *tx, caller.tenant, id).await.or_fail()? {
            return Ok(view);
        }
        let target = tx.merged_into(caller.tenant, id).await.or_fail()?.ok_or_else(|| Error::not_found("contact"))?;
        let mut view = view(&mut *tx, caller.tenant, target).await.or_fail()?.ok_or_else(|| Error::not_found("contact"))?;
        view.merged_from = Some(id);
        Ok(view)
    }

    /// `GET /v1/contacts/phone/{e164}`.
    pub async fn get_contact_by_phone(&self, caller: &Caller, phone: &str) -> Result<ContactView> {
        caller.require(Permission::ContactsRead)?;
        let not_found = || Error::not_found("contact");
        let identifier = address::phone(&list::phone(phone)).map_err(|_| not_found())?;
        let mut tx = self.inner.store.read().await.or_fail()?;
        let page = PageRequest { limit: 1, before: None };
        let contacts = with_phone(&mut *tx, caller.tenant, identifier, page).await?;
        views(&mut *tx, caller.tenant, contacts).await.or_fail()?.pop().ok_or_else(not_found)
    }
}

/// The contact with a phone number: an identifier belongs to one contact only.
async fn with_phone(tx: &mut dyn Tx, tenant: TenantId, identifier: String, page: PageRequest) -> Result<Vec<Contact>> {
    let recipient = Recipient { kind: AddressKind::Phone, identifier };
    let Some((_, id)) = tx.find_address(tenant, &recipient).await.or_fail()? else { return Ok(Vec::new()) };
    let found = tx.find_contact(tenant, id).await.or_fail()?;
    let id = nuncio_domain::id::Id::uuid(id);
    Ok(found.into_iter().filter(|_| page.before.is_none_or(|before| id < before)).collect())
}

/// One contact as it looks from outside.
pub(super) async fn view(tx: &mut dyn Tx, tenant: TenantId, id: ContactId) -> nuncio_store::Result<Option<ContactView>> {
    let contact = tx.find_contact(tenant, id).await?;
    Ok(views(tx, tenant, contact.into_iter().collect()).await?.pop())
}

/// Contacts as they look from outside, in the same order.
pub(crate) async fn views(tx: &mut dyn Tx, tenant: TenantId, contacts: Vec<Contact>) -> nuncio_store::Result<Vec<ContactView>> {
    let mut views = Vec::with_capacity(contacts.len());
    for person in people(tx, tenant, contacts).await? {
        let suggested = suggest(tx, tenant, &person).await?;
        views.push(ContactView::new(&person, suggested));
    }
    Ok(views)
}

/// Contacts with everything that is known of them, in the same order.
pub(crate) async fn people(tx: &mut dyn Tx, tenant: TenantId, contacts: Vec<Contact>) -> nuncio_store::Result<Vec<Person>> {
    let ids: Vec<ContactId> = contacts.iter().map(|c| c.id).collect();
    let mut addresses: HashMap<ContactId, Vec<Address>> = HashMap::new();
    for address in tx.addresses_of_contacts(tenant, &ids).await? {
        addresses.entry(address.contact).or_default().push(address);
    }
    let person = |contact: Contact| Person { addresses: addresses.remove(&contact.id).unwrap_or_default(), contact };
    Ok(contacts.into_iter().map(person).collect())
}

/// A contact that seems to be the same person: one of the same name with another kind of identifier, or the owner of an email address
/// that stands in the metadata. The oldest one that was not turned down.
pub(super) async fn suggest(tx: &mut dyn Tx, tenant: TenantId, person: &Person) -> nuncio_store::Result<Option<ContactId>> {
    let detail = &person.contact.detail;
    let possible = |id: &ContactId| *id != person.contact.id && !detail.dismissed.contains(id);
    if let Some(key) = detail.name_key() {
        let namesakes: Vec<_> = tx.contacts_named(tenant, &key, NAMESAKES).await?.into_iter().filter(possible).collect();
        let own = |kind: AddressKind| person.addresses.iter().any(|a| a.recipient.kind == kind);
        let others = tx.addresses_of_contacts(tenant, &namesakes).await?;
        let found = namesakes.into_iter().find(|id| others.iter().any(|a| a.contact == *id && !own(a.recipient.kind)));
        if found.is_some() {
            return Ok(found);
        }
    }
    let mut emails = Vec::new();
    detail.metadata.values().for_each(|value| find_emails(value, &mut emails));
    for identifier in emails {
        let recipient = Recipient { kind: AddressKind::Email, identifier };
        if let Some((_, id)) = tx.find_address(tenant, &recipient).await?.filter(|(_, id)| possible(id)) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

fn find_emails(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::String(text) if text.contains('@') && found.len() < EMAILS => found.extend(address::email(text.trim())),
        Value::Array(items) => items.iter().for_each(|item| find_emails(item, found)),
        Value::Object(members) => members.values().for_each(|item| find_emails(item, found)),
        _ => {}
    }
}
