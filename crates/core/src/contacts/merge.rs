//! Merges two contacts of the same person.

use nuncio_domain::contact::{Contact, ContactDetail};
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::{ContactId, Error, ErrorCode, Result, id::Id as _, limits};
use nuncio_store::{NewEvent, Occurrence};
use serde_json::{Map, json};

use super::read::{people, views};
use super::view::{ContactView, Person};
use super::{CHANNELS, Contacts, change::fill, command::MergeContacts, gone, merged};
use crate::base::{Caller, Change, UseCase, parse_id, parse_id_at, unknown};

#[derive(Clone, Debug)]
pub struct MergePreview {
    /// The contact that stays.
    pub target: ContactView,
    /// The contact that is merged and disappears.
    pub source: ContactView,
    /// The result.
    pub merged: ContactView,
}

const SOURCE: &str = "sourceContactId";

impl Contacts<'_> {
    /// Previews [`Self::merge`].
    pub async fn preview_merge(&self, caller: &Caller, target: &str, source: &str) -> Result<MergePreview> {
        caller.require(UseCase::GetContact)?;
        let target: ContactId = parse_id(target, "contact")?;
        let source: ContactId = parse_id(source, "contact")?;
        if source == target {
            return Err(Error::field("with", "is the contact itself; must be another contact"));
        }
        let mut tx = self.inner.store.read().await?;
        let missing = || Error::not_found("contact");
        let into = tx.find_contact(caller.tenant, target).await?.ok_or_else(missing)?;
        let from = tx.find_contact(caller.tenant, source).await?.ok_or_else(missing)?;
        let mut both = people(&mut *tx, caller.tenant, vec![into, from]).await?;
        let (Some(from), Some(into)) = (both.pop(), both.pop()) else { return Err(missing()) };
        let addresses = into.addresses.iter().chain(&from.addresses).cloned().collect();
        let merged = Person { contact: combine(&into, &from), addresses };
        let [target, source, merged] = [&into, &from, &merged].map(|person| ContactView::new(person, None));
        Ok(MergePreview { target, source, merged })
    }

    /// `POST /v1/contacts/{id}/merge`, in one transaction. An identifier has a single address row, so moving the addresses moves messages,
    /// metrics and opt-outs, and cannot create duplicates.
    pub async fn merge(&self, caller: &Caller, target: &str, command: MergeContacts) -> Result<ContactView> {
        caller.require(UseCase::MergeContacts)?;
        let target: ContactId = parse_id(target, "contact")?;
        let source: ContactId = parse_id_at(SOURCE, &command.source_contact_id, "contact")?;
        if source == target {
            return Err(Error::field(SOURCE, "is the contact itself; must be another contact"));
        }
        let tenant = caller.tenant;
        let mut tx = self.inner.store.begin().await?;
        let locked = tx.lock_contacts(tenant, &[target, source]).await?;
        let Some(into) = locked.iter().find(|c| c.id == target).cloned() else { return Err(gone(&mut *tx, tenant, target).await?) };
        let Some(from) = locked.iter().find(|c| c.id == source).cloned() else {
            return match tx.merged_into(tenant, source).await? {
                Some(there) if there == target => {
                    drop(tx);
                    self.current(tenant, target).await
                }
                Some(elsewhere) => Err(merged(elsewhere)),
                None => Err(unknown("contact", SOURCE, source)),
            };
        };
        let mut both = people(&mut *tx, tenant, vec![into, from]).await?;
        let (Some(from), Some(into)) = (both.pop(), both.pop()) else { return Err(Error::not_found("contact")) };
        let count = into.channels().len() + from.channels().len();
        if count > limits::MERGED_CHANNELS {
            let message = format!("the two have {count} channels; a contact has at most {}", limits::MERGED_CHANNELS);
            return Err(Error::new(ErrorCode::InvalidRequest, message));
        }
        let mut contact = combine(&into, &from);
        tx.merge_contact(tenant, source, target, self.ids().clock.now()).await?;
        self.touch(&mut *tx, tenant, &mut contact).await?;
        let sequence = contact.version;
        let view = views(&mut *tx, tenant, vec![contact]).await?.pop().ok_or_else(|| Error::not_found("contact"))?;
        let data = Map::from_iter([("contact".to_owned(), json!(view)), ("mergedFrom".to_owned(), json!(source))]);
        let occurrence = Occurrence { kind: EventType::ContactMerged, sender: None, data };
        let event = NewEvent { kind: ResourceKind::Contact, resource: target.uuid(), sequence, occurrences: vec![occurrence] };
        tx.insert_event(tenant, &event, self.ids().clock.now()).await?;
        Change::new("contact", "merge", target).to(&json!({"mergedFrom": source})).commit(tx, tenant).await?;
        Ok(view)
    }
}

/// Returns the target with missing fields filled from the source. Its primary channels stay primary, even next to older ones. Names every
/// field of both types, so that a new one does not compile until it is handled here.
fn combine(into: &Person, from: &Person) -> Contact {
    let Contact { id, country, version, created_at, updated_at, detail } = into.contact.clone();
    let ContactDetail { display_name, profile_name, default_channel, mut metadata, primaries: _, mut dismissed } = detail;
    let theirs = &from.contact.detail;
    fill(&mut metadata, &theirs.metadata);
    dismissed.retain(|other| *other != from.contact.id);
    for other in theirs.dismissed.iter().filter(|other| **other != id) {
        if !dismissed.contains(other) {
            dismissed.push(*other);
        }
    }
    let detail = ContactDetail {
        display_name: display_name.or_else(|| theirs.display_name.clone()),
        profile_name: profile_name.or_else(|| theirs.profile_name.clone()),
        default_channel: default_channel.or(theirs.default_channel),
        metadata,
        primaries: CHANNELS.into_iter().filter_map(|c| Some((c, into.primary(c).or_else(|| from.primary(c))?))).collect(),
        dismissed,
    };
    let country = if country.is_empty() { from.contact.country.clone() } else { country };
    Contact { id, country, version, created_at, updated_at, detail }
}
