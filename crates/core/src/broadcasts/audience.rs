//! Adds recipients from a project's contacts.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, apply};
use nuncio_domain::page::PageRequest;
use nuncio_domain::template::Template;
use nuncio_domain::{
    AddressKind, BroadcastId, Channel, Error, FieldError, Permission, Recipient, RequestedChannel, Result, Timestamp, limits,
};
use nuncio_store::{ContactFilter, NewBroadcastContact};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{Broadcasts, command::NewContact, contacts, contacts::RefusedContact};
use crate::base::{Caller, Change, UseCase, list, parse_id};
use crate::contacts::{CHANNELS, Person, people};

/// Contacts per read and per transaction.
const PAGE: u32 = 500;
/// Maximum number of rejected contacts that are listed; further ones are only counted.
const SHOWN: usize = 1_000;

/// Filter for contacts. Absent fields do not filter; without any, all contacts are selected.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SelectContacts {
    /// All these entries are in the metadata of the contact, compared as text.
    #[schema(example = json!({"plan": "pro"}))]
    pub metadata: BTreeMap<String, String>,
    /// The contact is from one of these countries (ISO 3166-1 alpha-2).
    #[schema(max_items = 250, example = json!(["ES"]))]
    pub countries: Vec<String>,
    /// The contact has a channel of this type.
    pub channel: Option<Channel>,
    /// The contact's newest message to you came at this time or later. With `channel`, its newest message on that channel.
    pub last_inbound_after: Option<Timestamp>,
    /// The contact's newest message to you came before this time, or it never wrote. With `channel`, only that channel counts.
    pub last_inbound_before: Option<Timestamp>,
    /// Variables of the content, and the field of the contact that fills each: `name`, `country`, or `metadata.KEY`.
    #[schema(example = json!({"name": "name"}))]
    pub variables: BTreeMap<String, String>,
}

/// Result of adding contacts.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SelectedContacts {
    /// Number of contacts that match.
    pub matched: u64,
    /// Number of contacts added.
    pub added: u64,
    /// Number that were already recipients.
    pub duplicates: u64,
    /// Number without an address that the broadcast's channel reaches.
    pub unreachable: u64,
    /// Number that cannot be recipients for another reason.
    pub invalid: u64,
    /// Number of all recipients of the broadcast that are suppressed now. They stay recipients, but will be skipped.
    pub suppressed: u64,
    /// The first 1,000 that cannot be recipients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<RefusedContact>,
}

impl Broadcasts<'_> {
    /// Adds matching contacts to a draft, page by page. An interrupted request can be repeated: contacts that were added count as
    /// duplicates.
    pub async fn select_contacts(&self, caller: &Caller, id: &str, asked: SelectContacts) -> Result<SelectedContacts> {
        caller.require(UseCase::SelectBroadcastContacts)?;
        caller.require(Permission::ContactsRead)?;
        let id: BroadcastId = parse_id(id, "broadcast")?;
        let broadcast = self.find(caller.tenant, id).await?;
        apply(broadcast.standing(""), BroadcastAction::Prepare)?;
        let asked = asked.validated()?;
        let template = self.template_of(&broadcast).await?;
        let filter = ContactFilter { metadata: asked.metadata.clone(), ..ContactFilter::default() };
        let (mut selected, mut before, mut through) = (SelectedContacts::default(), None, false);
        // One entry per request, not per transaction.
        let mut change = Some(Change::new("broadcast", "select_recipients", id));
        while !through {
            let mut tx = self.inner.store.read().await?;
            let page = tx.list_contacts(caller.tenant, &filter, PageRequest::older(PAGE, before)).await?;
            let persons = people(&mut *tx, caller.tenant, page.items).await?;
            drop(tx);
            (before, through) = (page.next, page.next.is_none());
            let new = self.recipients(&asked, &broadcast, template.as_ref(), &persons, &mut selected);
            let mut tx = self.inner.store.begin().await?;
            let Some(added) = tx.insert_broadcast_contacts(caller.tenant, id, &new).await? else {
                drop(tx);
                return Err(self.no_draft(caller, id).await);
            };
            if let Some(change) = change.take() {
                change.record(&mut *tx, caller.tenant).await?;
            }
            tx.commit().await?;
            selected.added += added;
            selected.duplicates += new.len() as u64 - added;
        }
        selected.suppressed = self.inner.store.read().await?.count_suppressed_contacts(caller.tenant, id, broadcast.sender).await?;
        Ok(selected)
    }

    /// Returns the recipients among `persons`; counts the others.
    fn recipients(
        &self,
        asked: &SelectContacts,
        broadcast: &Broadcast,
        template: Option<&Template>,
        persons: &[Person],
        selected: &mut SelectedContacts,
    ) -> Vec<NewBroadcastContact> {
        let now = self.ids().clock.now();
        let mut new = Vec::new();
        for person in persons.iter().filter(|person| asked.matches(person)) {
            selected.matched += 1;
            let Some(to) = reachable_address(person, broadcast.channel.requested()) else {
                selected.unreachable += 1;
                continue;
            };
            let written = NewContact {
                recipient: to.identifier.clone(),
                template_variables: Some(asked.values(person)).filter(|values| !values.is_empty()),
                ..NewContact::default()
            };
            match contacts::read(broadcast, template, written) {
                Ok((recipient, variables)) => new.push(NewBroadcastContact { id: self.ids().at(now), recipient, variables }),
                Err(reason) => {
                    selected.invalid += 1;
                    if selected.errors.len() < SHOWN {
                        selected.errors.push(RefusedContact { recipient: to.identifier.clone(), reason });
                    }
                }
            }
        }
        new.sort_unstable_by_key(|contact| contact.id);
        new
    }
}

impl SelectContacts {
    /// Validates the filter, with all errors at once, and converts its countries to upper case.
    fn validated(mut self) -> Result<Self> {
        let mut faults = Vec::new();
        self.countries = list::countries(&self.countries, "countries", &mut faults);
        list::metadata(&self.metadata, "metadata", &mut faults);
        for (path, names) in [("metadata", self.metadata.keys()), ("variables", self.variables.keys())] {
            let longest = names.map(|name| name.chars().count()).max().unwrap_or_default();
            if longest > limits::STRING {
                faults.push(FieldError::new(path, format!("has a name of {longest} characters; must have at most {}", limits::STRING)));
            }
        }
        for (variable, field) in &self.variables {
            if !matches!(field.as_str(), "name" | "country") && field.strip_prefix("metadata.").is_none_or(str::is_empty) {
                let message = format!("{field:?} is not a field of a contact; write name, country or metadata.KEY");
                faults.push(FieldError::new(format!("variables.{variable}"), message));
            }
        }
        if let (Some(after), Some(before)) = (self.last_inbound_after, self.last_inbound_before)
            && after >= before
        {
            faults.push(FieldError::new("lastInboundBefore", "must be later than lastInboundAfter"));
        }
        if faults.is_empty() { Ok(self) } else { Err(Error::invalid(faults)) }
    }

    fn matches(&self, person: &Person) -> bool {
        let wanted = |channel: Channel| self.channel.is_none_or(|only| only.of_contact() == channel.of_contact());
        if self.channel.is_some() && !person.available().into_iter().any(wanted) {
            return false;
        }
        if !self.countries.is_empty() && !self.countries.contains(&person.contact.country) {
            return false;
        }
        let metrics = person.addresses.iter().flat_map(|address| &address.metrics);
        let newest = metrics.filter(|metrics| wanted(metrics.channel)).filter_map(|metrics| metrics.last_inbound_at).max();
        self.last_inbound_after.is_none_or(|after| newest.is_some_and(|at| at >= after))
            && self.last_inbound_before.is_none_or(|before| newest.is_none_or(|at| at < before))
    }

    /// Returns the variables of a contact, without fields that it lacks or that are empty.
    fn values(&self, person: &Person) -> BTreeMap<String, String> {
        let detail = &person.contact.detail;
        let value = |field: &str| match field {
            "name" => detail.display_name.clone().or_else(|| detail.profile_name.clone()),
            "country" => Some(person.contact.country.clone()).filter(|country| !country.is_empty()),
            _ => detail.metadata.get(field.strip_prefix("metadata.")?).and_then(text),
        };
        let filled = |field: &str| value(field).filter(|value| !value.is_empty());
        self.variables.iter().filter_map(|(variable, field)| Some((variable.clone(), filled(field)?))).collect()
    }
}

/// Returns a metadata value as text; `None` for arrays, objects and null.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns the address by which a broadcast reaches a contact: the primary one of its channel, otherwise any of the same kind. `smart`
/// prefers phone numbers to email addresses.
fn reachable_address(person: &Person, channel: RequestedChannel) -> Option<&Recipient> {
    let primary = |channel: Channel| {
        let id = person.primary(channel.of_contact())?;
        person.channel(id).map(|own| &own.address.recipient)
    };
    let of_kind = |kind: AddressKind| person.addresses.iter().map(|address| &address.recipient).find(|recipient| recipient.kind == kind);
    match channel {
        RequestedChannel::Only(channel) => primary(channel).or_else(|| of_kind(channel.address_kind())),
        RequestedChannel::Auto => {
            let phone = CHANNELS.into_iter().filter(|channel| channel.address_kind() == AddressKind::Phone).find_map(primary);
            phone.or_else(|| primary(Channel::Email))
        }
    }
}
