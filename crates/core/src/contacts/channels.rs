//! Adds, changes and removes channels of a contact.

use nuncio_domain::contact::{ChannelEntry, Contact};
use nuncio_domain::{Channel, ContactChannelId, ContactId, Error, ErrorCode, Recipient, Result, TenantId, Timestamp, id::Id as _, limits};
use nuncio_store::{Address, IdempotentOperation, Repeat, Tx};
use serde_json::json;

use super::change::{duplicate, read_channel};
use super::command::{AddChannel, UpdateContactChannel};
use super::view::{ContactChannelView, Person, PersonChannel};
use super::{Contacts, lock, read::people};
use crate::base::{Caller, Change, FieldErrors, UseCase, check_metadata, idempotency, is_blank, parse_id, rights};

impl Contacts<'_> {
    /// `POST /v1/contacts/{id}/channels`.
    pub async fn add_channel(&self, caller: &Caller, id: &str, command: AddChannel, header: Option<&str>) -> Result<ContactChannelView> {
        caller.require(UseCase::AddContactChannel)?;
        let id: ContactId = parse_id(id, "contact")?;
        let guard = self.guard(caller.tenant, IdempotentOperation::AddContactChannel, idempotency::key(None, header)?, &(id, &command));
        let now = self.ids().clock.now();
        let mut errors = Vec::new();
        let Some(wanted) = read_channel(&command, "", now, &mut errors) else { return Err(Error::invalid(errors)) };
        let mut tx = self.inner.store.begin().await?;
        // An identifier that the contact had before gets its old address back, and with it its messages.
        let before = tx.removed_addresses(caller.tenant, id).await?.into_iter().find(|(_, recipient)| *recipient == wanted.recipient);
        let new_address = before.map_or_else(|| self.ids().at(now), |(address, _)| address);
        let channel = wanted.entry.channel;
        // Another request can add the address until the contact is locked. Only the key needs the id before that.
        let known = tx.find_address(caller.tenant, &wanted.recipient).await?;
        let channel_id = ContactChannelId::of(known.map_or(new_address, |(address, _)| address), channel);
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), channel_id.uuid(), now).await?;
        if let Some(Repeat { original, same_request }) = repeat {
            drop(tx);
            return self.channel_made_before(caller, id, ContactChannelId::from_uuid(original), same_request).await;
        }
        let contact = lock(&mut *tx, caller.tenant, id).await?;
        let mut person = person(&mut *tx, caller.tenant, contact).await?;
        let count = person.channels().len();
        if count >= limits::CONTACT_CHANNELS {
            let message = format!("the contact has {count} channels; channels can be added up to {}", limits::CONTACT_CHANNELS);
            return Err(Error::new(ErrorCode::InvalidRequest, message));
        }
        let own = person.addresses.iter().find(|a| a.recipient == wanted.recipient);
        let address = match own {
            Some(own) => {
                if person.channel(ContactChannelId::of(own.id, channel)).is_some() {
                    return Err(duplicate_here(&wanted.recipient.identifier, id));
                }
                pin(&mut *tx, caller.tenant, &person, own, now).await?;
                own.id
            }
            None if known.is_some() => return Err(duplicate("identifier", &wanted.recipient, known.map(|(_, owner)| owner))),
            None => {
                self.put_address(&mut *tx, caller.tenant, "identifier", &Address::new(new_address, id, wanted.recipient.clone(), now))
                    .await?;
                new_address
            }
        };
        let channel_id = ContactChannelId::of(address, channel);
        tx.put_channel_entry(caller.tenant, address, &wanted.entry).await?;
        if wanted.is_primary {
            if let Some(before) = person.primary(channel) {
                self.mark_changed(&mut *tx, caller.tenant, &person, before).await?;
            }
            person.contact.detail.primaries.insert(channel, channel_id);
        }
        self.touch(&mut *tx, caller.tenant, &mut person.contact).await?;
        let change = Change::new("contact", "add_channel", id).to(&json!({"channelId": channel_id, "channel": channel}));
        change.commit(tx, caller.tenant).await?;
        self.channel_now(caller.tenant, id, channel_id).await
    }

    /// `PATCH /v1/contacts/{id}/channels/{channelId}`.
    pub async fn update_channel(&self, caller: &Caller, id: &str, channel: &str, edit: UpdateContactChannel) -> Result<ContactChannelView> {
        caller.require(UseCase::UpdateContactChannel)?;
        let (id, channel) = ids(id, channel)?;
        let mut errors = Vec::new();
        let mut faults = FieldErrors { errors: &mut errors };
        faults.name("label", edit.label.as_deref(), 0, limits::CHANNEL_LABEL);
        check_metadata(edit.metadata.as_ref(), &mut errors);
        Error::if_any(errors)?;
        let mut tx = self.inner.store.begin().await?;
        let contact = lock(&mut *tx, caller.tenant, id).await?;
        let mut person = person(&mut *tx, caller.tenant, contact).await?;
        let found = find(&person, channel)?;
        let now = self.ids().clock.now();
        let mut entry = entry_of(&found);
        entry.updated_at = now;
        if let Some(label) = edit.label {
            entry.label = Some(label).filter(|label| !is_blank(label));
        }
        if let Some(metadata) = edit.metadata {
            entry.metadata = Some(metadata);
        }
        entry.verified = edit.verified.or(entry.verified);
        pin(&mut *tx, caller.tenant, &person, found.address, now).await?;
        tx.put_channel_entry(caller.tenant, found.address.id, &entry).await?;
        self.touch(&mut *tx, caller.tenant, &mut person.contact).await?;
        let change = Change::new("contact", "update_channel", id).to(&json!({"channelId": channel, "verified": entry.verified}));
        change.commit(tx, caller.tenant).await?;
        self.channel_now(caller.tenant, id, channel).await
    }

    /// Marks the channel of a locked contact, who entered a code that came on it, as verified, in the transaction of the caller. Returns what
    /// to record; `None` if the channel was removed since.
    pub(crate) async fn verify_channel(
        &self,
        tx: &mut dyn Tx,
        tenant: TenantId,
        contact: Contact,
        recipient: &Recipient,
        channel: Channel,
    ) -> Result<Option<Change>> {
        let mut person = person(tx, tenant, contact).await?;
        let Some(address) = person.addresses.iter().find(|address| address.recipient == *recipient) else { return Ok(None) };
        let now = self.ids().clock.now();
        // Before its first receipt, the channel may have no trace yet.
        let known = address.entries.iter().find(|entry| entry.channel == channel).cloned();
        let entry = known.unwrap_or_else(|| ChannelEntry::new(channel, address.created_at));
        if entry.hidden {
            return Ok(None);
        }
        pin(tx, tenant, &person, address, now).await?;
        tx.put_channel_entry(tenant, address.id, &ChannelEntry { verified: Some(true), updated_at: now, ..entry }).await?;
        let id = ContactChannelId::of(address.id, channel);
        self.touch(tx, tenant, &mut person.contact).await?;
        Ok(Some(Change::new("contact", "update_channel", person.contact.id).to(&json!({"channelId": id, "verified": true}))))
    }

    /// `DELETE /v1/contacts/{id}/channels/{channelId}`. Removing its last channel frees the identifier.
    pub async fn remove_channel(&self, caller: &Caller, id: &str, channel: &str) -> Result<()> {
        caller.require(UseCase::RemoveContactChannel)?;
        let (id, channel) = ids(id, channel)?;
        let mut tx = self.inner.store.begin().await?;
        let contact = lock(&mut *tx, caller.tenant, id).await?;
        let mut person = person(&mut *tx, caller.tenant, contact).await?;
        let found = find(&person, channel)?;
        let channels = person.channels();
        if channels.len() == 1 {
            let message = "this is the contact's last channel; add another one first, or delete the contact";
            return Err(Error::new(ErrorCode::InvalidRequest, message));
        }
        let address = found.address.id;
        let alone = channels.iter().filter(|c| c.address.id == address).count() == 1;
        if alone {
            tx.remove_address(caller.tenant, address).await?;
        } else {
            let now = self.ids().clock.now();
            pin(&mut *tx, caller.tenant, &person, found.address, now).await?;
            let entry = ChannelEntry { hidden: true, ..ChannelEntry::new(found.channel, now) };
            tx.put_channel_entry(caller.tenant, address, &entry).await?;
        }
        let kind = found.channel;
        drop(channels);
        if person.contact.detail.primaries.get(&kind) == Some(&channel) {
            person.contact.detail.primaries.remove(&kind);
        }
        self.touch(&mut *tx, caller.tenant, &mut person.contact).await?;
        Change::new("contact", "remove_channel", id)
            .from(&json!({"channelId": channel, "channel": kind}))
            .commit(tx, caller.tenant)
            .await?;
        if alone {
            let mut tx = self.inner.store.begin().await?;
            tx.delete_metrics(caller.tenant, address).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// `POST /v1/contacts/{id}/channels/{channelId}/primary`.
    pub async fn make_channel_primary(&self, caller: &Caller, id: &str, channel: &str) -> Result<ContactChannelView> {
        caller.require(UseCase::MakeContactChannelPrimary)?;
        let (id, channel) = ids(id, channel)?;
        let mut tx = self.inner.store.begin().await?;
        let contact = lock(&mut *tx, caller.tenant, id).await?;
        let mut person = person(&mut *tx, caller.tenant, contact).await?;
        let kind = find(&person, channel)?.channel;
        let before = person.primary(kind).filter(|before| *before != channel);
        if let Some(before) = before {
            for changed in [before, channel] {
                self.mark_changed(&mut *tx, caller.tenant, &person, changed).await?;
            }
            person.contact.detail.primaries.insert(kind, channel);
            self.touch(&mut *tx, caller.tenant, &mut person.contact).await?;
            let change = Change::new("contact", "make_channel_primary", id).to(&json!({"channelId": channel, "channel": kind}));
            change.commit(tx, caller.tenant).await?;
        }
        self.channel_now(caller.tenant, id, channel).await
    }

    /// Stores that a channel changed: whether it is the primary one of its type is stored with the contact.
    async fn mark_changed(&self, tx: &mut dyn Tx, tenant: TenantId, person: &Person, channel: ContactChannelId) -> Result<()> {
        let (found, now) = (find(person, channel)?, self.ids().clock.now());
        pin(tx, tenant, person, found.address, now).await?;
        let entry = ChannelEntry { updated_at: now, ..entry_of(&found) };
        Ok(tx.put_channel_entry(tenant, found.address.id, &entry).await?)
    }

    async fn channel_now(&self, tenant: TenantId, id: ContactId, channel: ContactChannelId) -> Result<ContactChannelView> {
        let mut tx = self.inner.store.read().await?;
        let contact = tx.find_contact(tenant, id).await?.ok_or_else(|| Error::not_found("contact"))?;
        let person = person(&mut *tx, tenant, contact).await?;
        let found = find(&person, channel)?;
        Ok(found.view(person.primary(found.channel) == Some(channel)))
    }

    /// Returns the 409 of a repeated request. The contact may have been merged, and the channel removed, since.
    async fn channel_made_before(
        &self,
        caller: &Caller,
        id: ContactId,
        channel: ContactChannelId,
        same_request: bool,
    ) -> Result<ContactChannelView> {
        let tenant = caller.tenant;
        let mut tx = self.inner.store.read().await?;
        let id = tx.merged_into(tenant, id).await?.unwrap_or(id);
        let mut original = None;
        if let Some(contact) = tx.find_contact(tenant, id).await? {
            let person = person(&mut *tx, tenant, contact).await?;
            if let Some(found) = person.channel(channel) {
                original = Some(found.view(person.primary(found.channel) == Some(channel)));
            }
        }
        Err(idempotency::repeat(caller, rights::CONTACT_CHANNEL, original.as_ref(), same_request))
    }
}

fn ids(contact: &str, channel: &str) -> Result<(ContactId, ContactChannelId)> {
    Ok((parse_id(contact, "contact")?, parse_id(channel, "channel")?))
}

fn find(person: &Person, channel: ContactChannelId) -> Result<PersonChannel<'_>> {
    person.channel(channel).ok_or_else(|| Error::not_found("channel"))
}

fn entry_of(channel: &PersonChannel<'_>) -> ChannelEntry {
    let entry = channel.entry.cloned().unwrap_or_else(|| ChannelEntry::new(channel.channel, channel.address.created_at));
    // One that was removed and then used is shown again.
    ChannelEntry { hidden: false, ..entry }
}

async fn person(tx: &mut dyn Tx, tenant: TenantId, contact: Contact) -> Result<Person> {
    people(tx, tenant, vec![contact]).await?.pop().ok_or_else(|| Error::not_found("contact"))
}

/// Stores entries for an address's implicit channels before its first explicit entry, which would otherwise hide them.
async fn pin(tx: &mut dyn Tx, tenant: TenantId, person: &Person, address: &Address, now: Timestamp) -> Result<()> {
    for channel in person.channels().iter().filter(|c| c.address.id == address.id && c.entry.is_none()) {
        let entry = ChannelEntry { updated_at: now, ..entry_of(channel) };
        tx.put_channel_entry(tenant, address.id, &entry).await?;
    }
    Ok(())
}

fn duplicate_here(identifier: &str, owner: ContactId) -> Error {
    let message = format!("the contact already has {identifier} on this channel");
    let error = Error::new(ErrorCode::DuplicateIdentifier, format!("identifier: {message}")).at("identifier", message);
    error.with("contactId", owner.to_string().into())
}
