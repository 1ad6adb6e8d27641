//! Adds, lists and deletes recipients of a broadcast.

use std::collections::HashSet;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::broadcast::{Broadcast, BroadcastAction, ContactStatus, Variables, apply};
use nuncio_domain::id::Id as _;
use nuncio_domain::template::Template;
use nuncio_domain::{AddressKind, BroadcastId, Channel, Error, Recipient, RequestedChannel, Result, limits};
use nuncio_store::{Idempotency, IdempotentOperation, NewBroadcastContact, Repeat};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::command::{AddBroadcastContacts, ListBroadcastContacts, NewContact};
use super::view::{BroadcastContactView, BroadcastView};
use super::{Broadcasts, content, variables};
use crate::base::idempotency;
use crate::base::list::{self, Listed};
use crate::base::{Caller, Change, UseCase, parse_id, rights};
use crate::templates::render;

/// Maximum number of faults that the reason of a rejected recipient has.
const FAULTS: usize = 5;

/// Result of adding recipients.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AddedBroadcastContacts)]
pub struct AddedContacts {
    /// Number of recipients added.
    pub added: u64,
    /// Number that the broadcast already has, or that are repeated in the request.
    pub duplicates: u64,
    /// Number that cannot be recipients.
    pub invalid: u64,
    /// The reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<RefusedContact>,
}

/// A recipient that was not added.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RejectedBroadcastContact)]
pub struct RefusedContact {
    /// As in the request.
    pub recipient: String,
    /// The reason.
    pub reason: String,
}

impl Broadcasts<'_> {
    /// Adds recipients to a draft. Invalid ones are reported and do not affect the others. After a repeat, the 409 contains the broadcast.
    pub async fn add_contacts(&self, caller: &Caller, id: &str, command: AddBroadcastContacts, key: Option<&str>) -> Result<AddedContacts> {
        caller.require(UseCase::AddBroadcastContacts)?;
        let id: BroadcastId = parse_id(id, "broadcast")?;
        let guard = self.guard(caller.tenant, IdempotentOperation::AddBroadcastContacts, idempotency::key(None, key)?, &(id, &command));
        let (broadcast, template) = match self.growing_draft(caller, id, command.contacts.len()).await {
            Ok(found) => found,
            Err(error) => return Err(self.repeated_or(caller, guard.as_ref(), error).await?),
        };
        let now = self.ids().clock.now();
        let (mut outcome, mut new, mut seen) = (AddedContacts::default(), Vec::new(), HashSet::new());
        for contact in command.contacts {
            let given = contact.recipient.clone();
            match read(&broadcast, template.as_ref(), contact) {
                Ok((recipient, variables)) if seen.insert(recipient.clone()) => {
                    new.push(NewBroadcastContact { id: self.ids().at(now), recipient, variables });
                }
                Ok(_) => outcome.duplicates += 1,
                Err(reason) => {
                    let recipient = given.chars().take(320).collect();
                    outcome.errors.push(RefusedContact { recipient, reason });
                }
            }
        }
        // Recipients are enqueued in this order.
        new.sort_unstable_by_key(|contact| contact.id);
        let mut tx = self.inner.store.begin().await?;
        if let Some(repeat) = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), id.uuid(), now).await? {
            drop(tx);
            return Err(self.repeated(caller, repeat).await?);
        }
        let Some(added) = tx.insert_broadcast_contacts(caller.tenant, id, &new).await? else {
            drop(tx);
            return Err(self.no_draft(caller, id).await);
        };
        Change::new("broadcast", "add_recipients", id).to(&json!({"recipients": added})).commit(tx, caller.tenant).await?;
        outcome.added = added;
        outcome.duplicates += new.len() as u64 - added;
        outcome.invalid = outcome.errors.len() as u64;
        Ok(outcome)
    }

    /// Returns a draft to which `count` recipients can be added, with its template.
    async fn growing_draft(&self, caller: &Caller, id: BroadcastId, count: usize) -> Result<(Broadcast, Option<Template>)> {
        let broadcast = self.find(caller.tenant, id).await?;
        apply(broadcast.standing(""), BroadcastAction::Prepare)?;
        if !(1..=limits::BROADCAST_CONTACTS).contains(&count) {
            let message = format!("has {count} items; must have 1 to {}", limits::BROADCAST_CONTACTS);
            return Err(Error::field("contacts", message));
        }
        let template = self.template_of(&broadcast).await?;
        Ok((broadcast, template))
    }

    /// Returns the 409 with the broadcast that the key was used for.
    pub(super) async fn repeated(&self, caller: &Caller, Repeat { original, same_request }: Repeat) -> Result<Error> {
        let found = self.inner.store.read().await?.find_broadcast(caller.tenant, BroadcastId::from_uuid(original)).await?;
        Ok(idempotency::repeat(caller, rights::BROADCAST, found.as_ref().map(BroadcastView::whole).as_ref(), same_request))
    }

    /// Returns the 409 of a repeat; otherwise `error`, with which the request failed.
    pub(super) async fn repeated_or(&self, caller: &Caller, guard: Option<&Idempotency>, error: Error) -> Result<Error> {
        match self.used(caller.tenant, guard).await? {
            Some(repeat) => self.repeated(caller, repeat).await,
            None => Ok(error),
        }
    }

    /// Returns a page of recipients.
    pub async fn list_contacts(&self, caller: &Caller, id: &str, asked: &ListBroadcastContacts) -> Result<Listed<BroadcastContactView>> {
        caller.require(UseCase::ListBroadcastContacts)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let (range, mut errors) = list::asked!(asked);
        let status = list::words(asked.status.as_deref(), "query.status", ContactStatus::parse, ContactStatus::ALL, &mut errors);
        let listing = self.listing(caller.tenant, &format!("broadcasts/{}/contacts?{status:?}", broadcast.id), &range, errors)?;
        let Some(status) = stored(&status, &broadcast) else { return Ok((Vec::new(), None)) };
        let page = self.inner.store.read().await?.list_broadcast_contacts(caller.tenant, broadcast.id, &status, listing.page).await?;
        let items = page.items.into_iter().map(|contact| BroadcastContactView::new(contact, &broadcast)).collect();
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// Returns the recipients with this number, email address or chat id: none, one, or one for each channel of a chat id.
    pub async fn find_contacts(&self, caller: &Caller, id: &str, address: &str) -> Result<Vec<BroadcastContactView>> {
        caller.require(UseCase::ListBroadcastContacts)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let (kinds, identifier): (&[AddressKind], _) = match Parsed::parse(address) {
            Ok(Parsed::Phone(number)) => (&[AddressKind::Phone], number),
            Ok(Parsed::Email(email)) => (&[AddressKind::Email], email),
            Ok(Parsed::Digits(chat)) => (&[AddressKind::Telegram, AddressKind::Instagram], chat),
            Err(_) => return Ok(Vec::new()),
        };
        let mut tx = self.inner.store.read().await?;
        let mut found = Vec::new();
        for kind in kinds {
            let recipient = Recipient { kind: *kind, identifier: identifier.clone() };
            found.extend(tx.find_broadcast_recipient(caller.tenant, broadcast.id, &recipient).await?);
        }
        Ok(found.into_iter().map(|contact| BroadcastContactView::new(contact, &broadcast)).collect())
    }

    /// Deletes a recipient from a draft.
    pub async fn delete_contact(&self, caller: &Caller, id: &str, contact: &str) -> Result<()> {
        caller.require(UseCase::DeleteBroadcastContact)?;
        let id = parse_id(id, "broadcast")?;
        let mut tx = self.inner.store.begin().await?;
        let contact = parse_id(contact, "contact of the broadcast");
        let deleted = match &contact {
            Ok(contact) => tx.delete_broadcast_contact(caller.tenant, id, *contact).await?,
            Err(_) => Some(false),
        };
        if deleted == Some(true) {
            Change::new("broadcast", "remove_recipient", id).record(&mut *tx, caller.tenant).await?;
        }
        tx.commit().await?;
        match deleted {
            Some(true) => Ok(()),
            Some(false) => Err(Error::not_found("contact of the broadcast")),
            None => Err(self.no_draft(caller, id).await),
        }
    }
}

/// Maps statuses to those stored ones that are shown as them; empty for all. `None` if no recipient can match.
fn stored(asked: &[ContactStatus], broadcast: &Broadcast) -> Option<Vec<ContactStatus>> {
    let shown = |status: &ContactStatus| asked.contains(&status.within(broadcast.status));
    let stored: Vec<_> = ContactStatus::ALL.iter().copied().filter(shown).collect();
    (asked.is_empty() || !stored.is_empty()).then_some(stored)
}

/// Validates a recipient; the error is the reason why it is rejected.
pub(super) fn read(broadcast: &Broadcast, template: Option<&Template>, contact: NewContact) -> Result<(Recipient, Variables), String> {
    let parsed = Parsed::parse(&contact.recipient).map_err(|e| e.to_string())?;
    let channel = match (broadcast.channel.requested(), &parsed) {
        (RequestedChannel::Only(channel), _) => channel,
        (RequestedChannel::Auto, Parsed::Email(_)) => Channel::Email,
        (RequestedChannel::Auto, Parsed::Phone(_)) => Channel::Sms,
        (RequestedChannel::Auto, Parsed::Digits(id)) => {
            return Err(format!(
                "{id:?} is a chat id, which channel smart cannot reach; for a phone number write {}",
                address::with_plus(id)
            ));
        }
    };
    let recipient = Recipient::on(&parsed, channel).map_err(|e| e.to_string())?;
    let is_smart = broadcast.channel.requested() == RequestedChannel::Auto;
    if is_smart && recipient.kind == AddressKind::Email && broadcast.body.email_subject.is_none() {
        return Err("an email needs a subject; set emailSubject of the broadcast".to_owned());
    }
    let variables = Variables {
        template_variables: contact.template_variables,
        template_button_variables: contact.template_button_variables,
        template_header_variables: contact.template_header_variables,
    };
    let faults = match template {
        Some(template) => render::check(template, &render::values(Some(&variables::merged(broadcast, &variables))), ""),
        // Its values are checked when the broadcast is sent.
        None if content::is_template(broadcast) => Vec::new(),
        None if variables.template_button_variables.is_some() || variables.template_header_variables.is_some() => {
            return Err("variables of buttons and headers are for broadcasts of messageType template".to_owned());
        }
        None => variables.template_variables.as_ref().map_or_else(Vec::new, |own| variables::check(own, "templateVariables")),
    };
    if faults.is_empty() {
        return Ok((recipient, variables));
    }
    // Values of the broadcast are wrong for each of its recipients: their reasons together must stay short.
    let mut reasons: Vec<String> = faults.iter().take(FAULTS).map(|f| format!("{}: {}", f.path, f.message)).collect();
    if faults.len() > FAULTS {
        reasons.push(format!("and {} more", faults.len() - FAULTS));
    }
    Err(reasons.join("; "))
}
