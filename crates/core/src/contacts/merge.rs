//! Merges two contacts that are one person.

use nuncio_domain::contact::Contact;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::{ContactId, Error, ErrorCode, Permission, Result, limits};
use nuncio_store::{NewEvent, Occurrence};
use serde_json::{Map, json};

use super::Contacts;
use super::change::fill;
use super::command::MergeContacts;
use super::read::{people, views};
use super::view::{ContactView, Person};
use super::{CHANNELS, gone, merged};
use crate::base::{Caller, Change, parse_id};

impl Contacts<'_> {
    /// `POST /v1/contacts/{id}/merge`, in one transaction. An identifier has a single address row, so moving the addresses moves messages,
    /// metrics and opt-outs, and cannot create duplicates.
    pub async fn merge(&self, caller: &Caller, target: &str, command: MergeContacts) -> Result<ContactView> {
        caller.require(Permission::ContactsWrite)?;
        let target: ContactId = parse_id(target, "contact")?;
        let source: ContactId = parse_id(&command.source_contact_id, "contact")?;
        if source == target {
            return Err(Error::field("sourceContactId", "is the contact itself; must be another contact"));
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
                None => Err(Error::not_found("contact")),
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
        Change::new("contact", "merge", target).to(&json!({"mergedFrom": source})).record(&mut *tx, tenant).await?;
        tx.commit().await?;
        Ok(view)
    }
}

/// Returns the target, completed from the source. Primary channels of the target stay primary, even if the source has older ones.
fn combine(into: &Person, from: &Person) -> Contact {
    let mut contact = into.contact.clone();
    let (ours, theirs) = (&mut contact.detail, &from.contact.detail);
    ours.display_name = ours.display_name.take().or_else(|| theirs.display_name.clone());
    ours.profile_name = ours.profile_name.take().or_else(|| theirs.profile_name.clone());
    ours.default_channel = ours.default_channel.or(theirs.default_channel);
    fill(&mut ours.metadata, &theirs.metadata);
    ours.primaries = CHANNELS.into_iter().filter_map(|c| Some((c, into.primary(c).or_else(|| from.primary(c))?))).collect();
    ours.dismissed.retain(|id| *id != from.contact.id);
    for id in theirs.dismissed.iter().filter(|id| **id != contact.id) {
        if !ours.dismissed.contains(id) {
            ours.dismissed.push(*id);
        }
    }
    if contact.country.is_empty() {
        contact.country.clone_from(&from.contact.country);
    }
    contact
}
