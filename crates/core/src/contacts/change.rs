//! Creates and updates contacts.

use std::time::Duration;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::contact::{ChannelEntry, Contact, ContactDetail};
use nuncio_domain::id::Id as _;
use nuncio_domain::{
    Channel, ContactChannelId, ContactId, Error, ErrorCode, FieldError, Recipient, Result, TenantId, Timestamp, limits, set_if_given,
};
use nuncio_store::{Address, IdempotentOperation, Repeat, Tx};
use serde_json::{Map, Value, json};

use super::command::{ContactChannelIn, CreateContact, UpdateContact};
use super::read::{self, people, view};
use super::{CHANNELS, Contacts, gone, lock, view::ContactView};
use crate::base::{Caller, Change, FieldErrors, UseCase, check_metadata, idempotency, is_blank, list, parse_id, rights};

/// A parsed channel of a request.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) recipient: Recipient,
    pub(super) entry: ChannelEntry,
    pub(super) is_primary: bool,
}

impl Contacts<'_> {
    /// `POST /v1/contacts`.
    pub async fn create(&self, caller: &Caller, mut command: CreateContact, header: Option<&str>) -> Result<ContactView> {
        caller.require(UseCase::CreateContact)?;
        command.display_name = command.display_name.filter(|name| !is_blank(name));
        command.metadata = Some(command.metadata.unwrap_or_default());
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateContact, idempotency::key(None, header)?, &command);
        let now = self.ids().clock.now();
        let wanted = read_contact(&command, now)?;
        let country = wanted.iter().map(|w| country(&w.entry, &w.recipient)).find(|country| !country.is_empty()).unwrap_or_default();
        let CreateContact { channels: _, display_name, metadata } = command;
        let detail = ContactDetail { display_name, metadata: metadata.unwrap_or_default(), ..ContactDetail::default() };
        let mut contact = Contact { id: self.ids().at(now), country, version: 0, created_at: now, updated_at: now, detail };
        let mut tx = self.inner.store.begin().await?;
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), contact.id.uuid(), now).await?;
        if let Some(Repeat { original, same_request }) = repeat {
            drop(tx);
            return Err(self.made_before(caller, ContactId::from_uuid(original), same_request).await?);
        }
        let mut addresses: Vec<Address> = Vec::new();
        // Always in the same order: otherwise two requests that create the same addresses could wait for each other.
        let mut wanted: Vec<_> = wanted.iter().enumerate().collect();
        wanted.sort_by_cached_key(|(_, wanted)| (wanted.recipient.kind.number(), wanted.recipient.identifier.clone()));
        for (n, wanted) in wanted {
            let path = format!("channels[{n}].identifier");
            let known = addresses.iter().find(|a| a.recipient == wanted.recipient).map(|a| a.id);
            let id = match known {
                Some(id) => id,
                None => {
                    // Consecutive creation times, so that they keep their order.
                    let born = now.plus(Duration::from_millis(n as u64));
                    let address = Address::new(self.ids().at(born), contact.id, wanted.recipient.clone(), now);
                    self.put_address(&mut *tx, caller.tenant, &path, &address).await?;
                    let id = address.id;
                    addresses.push(address);
                    id
                }
            };
            tx.put_channel_entry(caller.tenant, id, &wanted.entry).await?;
            if wanted.is_primary {
                contact.detail.primaries.insert(wanted.entry.channel, ContactChannelId::of(id, wanted.entry.channel));
            }
        }
        tx.insert_contact(caller.tenant, &contact).await?;
        if let Some(view) = view(&mut *tx, caller.tenant, contact.id).await? {
            Change::new("contact", "create", contact.id).to(&view).record(&mut *tx, caller.tenant).await?;
        }
        tx.commit().await?;
        self.current(caller.tenant, contact.id).await
    }

    /// `PATCH /v1/contacts/{id}`.
    pub async fn update(&self, caller: &Caller, id: &str, command: UpdateContact) -> Result<ContactView> {
        caller.require(UseCase::UpdateContact)?;
        let id = parse_id(id, "contact")?;
        let mut errors = Vec::new();
        let mut faults = FieldErrors { errors: &mut errors };
        let name = command.display_name.as_deref().filter(|name| !is_blank(name));
        faults.name("displayName", name, 0, limits::DISPLAY_NAME);
        check_metadata(command.metadata.as_ref(), &mut errors);
        Error::if_any(errors)?;
        let mut tx = self.inner.store.begin().await?;
        let mut contact = lock(&mut *tx, caller.tenant, id).await?;
        let before = contact.clone();
        let UpdateContact { display_name, default_channel, metadata } = command;
        if let Some(Some(channel)) = default_channel {
            let person = people(&mut *tx, caller.tenant, vec![contact.clone()]).await?;
            let available = person.first().map(|p| p.available()).unwrap_or_default();
            if !available.contains(&channel) {
                let names = available.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
                return Err(Error::field("defaultChannel", format!("the contact has no channel {channel}; it has {names}")));
            }
        }
        set_if_given(&mut contact.detail.default_channel, &default_channel);
        if let Some(name) = display_name {
            contact.detail.display_name = Some(name).filter(|name| !is_blank(name));
        }
        set_if_given(&mut contact.detail.metadata, &metadata);
        self.touch(&mut *tx, caller.tenant, &mut contact).await?;
        Change::new("contact", "update", id).from(&shown(&before.detail)).to(&shown(&contact.detail)).commit(tx, caller.tenant).await?;
        self.current(caller.tenant, id).await
    }

    /// Changes the metadata of a contact as it is stored now, for pages, which change one entry and keep the others.
    pub async fn edit_metadata(
        &self,
        caller: &Caller,
        id: &str,
        edit: impl FnOnce(&mut Map<String, Value>) -> Result<()> + Send,
    ) -> Result<()> {
        caller.require(UseCase::UpdateContact)?;
        let id = parse_id(id, "contact")?;
        let mut tx = self.inner.store.begin().await?;
        let mut contact = lock(&mut *tx, caller.tenant, id).await?;
        let before = shown(&contact.detail);
        edit(&mut contact.detail.metadata)?;
        let mut errors = Vec::new();
        check_metadata(Some(&contact.detail.metadata), &mut errors);
        Error::if_any(errors)?;
        self.touch(&mut *tx, caller.tenant, &mut contact).await?;
        Ok(Change::new("contact", "update", id).from(&before).to(&shown(&contact.detail)).commit(tx, caller.tenant).await?)
    }

    /// `DELETE /v1/contacts/{id}/merge-suggestion`: dismisses the current suggestion permanently, also at the suggested contact.
    pub async fn dismiss_merge_suggestion(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DismissMergeSuggestion)?;
        let id = parse_id(id, "contact")?;
        let suggested = self.suggested(caller.tenant, id).await?;
        let mut tx = self.inner.store.begin().await?;
        // Both at once: one after the other, two requests that dismiss each other's contact would wait for each other.
        let both: Vec<ContactId> = std::iter::once(id).chain(suggested).collect();
        let locked = tx.lock_contacts(caller.tenant, &both).await?;
        if locked.iter().all(|contact| contact.id != id) {
            return Err(gone(&mut *tx, caller.tenant, id).await?);
        }
        let Some(suggested) = suggested else { return Ok(()) };
        for mut contact in locked {
            let other = if contact.id == id { suggested } else { id };
            if !contact.detail.dismissed.contains(&other) {
                contact.detail.dismissed.push(other);
                self.touch(&mut *tx, caller.tenant, &mut contact).await?;
            }
        }
        Ok(Change::new("contact", "dismiss_suggestion", id).commit(tx, caller.tenant).await?)
    }

    /// Returns the contact that is suggested for a merge, if the contact exists and has a suggestion.
    async fn suggested(&self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>> {
        let mut tx = self.inner.store.read().await?;
        let contact = tx.find_contact(tenant, id).await?;
        let found = people(&mut *tx, tenant, contact.into_iter().collect()).await?;
        Ok(read::suggest(&mut *tx, tenant, &found).await?.remove(&id))
    }

    /// Stores a changed contact, which is locked.
    pub(super) async fn touch(&self, tx: &mut dyn Tx, tenant: TenantId, contact: &mut Contact) -> Result<()> {
        contact.version += 1;
        contact.updated_at = self.ids().clock.now();
        tx.update_contact(tenant, contact).await?;
        Ok(())
    }

    /// Returns the current state of a contact.
    pub(super) async fn current(&self, tenant: TenantId, id: ContactId) -> Result<ContactView> {
        let mut tx = self.inner.store.read().await?;
        view(&mut *tx, tenant, id).await?.ok_or_else(|| Error::not_found("contact"))
    }

    /// Returns the 409 of a repeated request. The contact may have been merged or erased since.
    async fn made_before(&self, caller: &Caller, id: ContactId, same_request: bool) -> Result<Error> {
        let mut tx = self.inner.store.read().await?;
        let id = tx.merged_into(caller.tenant, id).await?.unwrap_or(id);
        let view = view(&mut *tx, caller.tenant, id).await?;
        Ok(idempotency::repeat(caller, rights::CONTACT, view.as_ref(), same_request))
    }

    /// Stores a new address of a contact; fails if the identifier belongs to a contact.
    pub(super) async fn put_address(&self, tx: &mut dyn Tx, tenant: TenantId, path: &str, address: &Address) -> Result<()> {
        let recipient = &address.recipient;
        if !tx.insert_address(tenant, address).await? {
            let owner = tx.find_address(tenant, recipient).await?.map(|(_, owner)| owner);
            return Err(duplicate(path, recipient, owner));
        }
        let mark = self.marked(tenant, recipient);
        Ok(tx.rename_suppressions(tenant, &mark, &recipient.identifier).await?)
    }
}

/// Returns the members compared by the audit log.
fn shown(detail: &ContactDetail) -> Value {
    json!({"displayName": detail.display_name, "defaultChannel": detail.default_channel, "metadata": detail.metadata})
}

/// Returns `400 duplicate_identifier`, naming the owner.
pub(super) fn duplicate(path: &str, recipient: &Recipient, owner: Option<ContactId>) -> Error {
    let identifier = &recipient.identifier;
    let message = format!("{identifier} belongs to another contact; add the channel there, or merge the two");
    let error = Error::new(ErrorCode::DuplicateIdentifier, format!("{path}: {message}")).at(path, message);
    match owner {
        Some(owner) => error.with("contactId", owner.to_string().into()),
        None => error,
    }
}

fn read_contact(command: &CreateContact, now: Timestamp) -> Result<Vec<Wanted>> {
    let mut errors = Vec::new();
    let mut faults = FieldErrors { errors: &mut errors };
    faults.count("channels", command.channels.len(), 1, limits::CONTACT_CHANNELS);
    faults.name("displayName", command.display_name.as_deref(), 0, limits::DISPLAY_NAME);
    check_metadata(command.metadata.as_ref(), &mut errors);
    let mut wanted: Vec<Wanted> = Vec::new();
    for (n, channel) in command.channels.iter().enumerate().take(limits::CONTACT_CHANNELS) {
        let path = format!("channels[{n}]");
        let Some(read) = read_channel(channel, &path, now, &mut errors) else { continue };
        let same = |other: &&Wanted| other.entry.channel == read.entry.channel;
        if wanted.iter().filter(same).any(|other| other.recipient == read.recipient) {
            errors.push(FieldError::new(path, "duplicates an earlier item; channel and identifier must be unique"));
        } else if read.is_primary && wanted.iter().filter(same).any(|other| other.is_primary) {
            errors.push(FieldError::new(format!("{path}.isPrimary"), format!("two channels of type {} are primary", read.entry.channel)));
        } else {
            wanted.push(read);
        }
    }
    if errors.is_empty() { Ok(wanted) } else { Err(Error::invalid(errors)) }
}

/// Parses a channel; errors are at `path`, which is `""` if the channel is the whole body.
pub(super) fn read_channel(given: &ContactChannelIn, path: &str, now: Timestamp, errors: &mut Vec<FieldError>) -> Option<Wanted> {
    let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    let before = errors.len();
    if !CHANNELS.contains(&given.channel) {
        let names = CHANNELS.map(Channel::as_str).join(", ");
        errors.push(FieldError::new(at("channel"), format!("is {}; must be one of {names}", given.channel)));
        return None;
    }
    let country = given.country_code.as_deref().map(|code| list::country(code, &at("countryCode"), errors));
    let mut faults = FieldErrors { errors };
    faults.name(&at("label"), given.label.as_deref(), 0, limits::CHANNEL_LABEL);
    let recipient = Parsed::parse(&given.identifier).and_then(|parsed| Recipient::on(&parsed, given.channel));
    let recipient = recipient.map_err(|error| faults.push(&at("identifier"), error.to_string())).ok()?;
    if errors.len() > before {
        return None;
    }
    let entry =
        ChannelEntry { label: given.label.clone().filter(|label| !is_blank(label)), country, ..ChannelEntry::new(given.channel, now) };
    Some(Wanted { recipient, entry, is_primary: given.is_primary == Some(true) })
}

fn country(entry: &ChannelEntry, recipient: &Recipient) -> String {
    let of_number =
        || if recipient.identifier.starts_with('+') { address::phone_facts(&recipient.identifier).country } else { String::new() };
    entry.country.clone().unwrap_or_else(of_number)
}

/// Adds missing entries of `theirs` to `ours`, within the limits of metadata.
pub(super) fn fill(ours: &mut Map<String, Value>, theirs: &Map<String, Value>) {
    for (key, value) in theirs {
        if ours.contains_key(key) {
            continue;
        }
        ours.insert(key.clone(), value.clone());
        let mut errors = Vec::new();
        check_metadata(Some(ours), &mut errors);
        if !errors.is_empty() {
            ours.remove(key);
        }
    }
}
