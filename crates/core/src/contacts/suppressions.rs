//! Suppressions: recipients to whom nothing is sent.

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::contact::{Contact, SuppressionReason};
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, Channel, Error, FieldError, Recipient, Result, SenderId, SuppressionId, TenantId, Timestamp};
use nuncio_store::{Idempotency, IdempotentOperation, NewEvent, Occurrence, Repeat, Suppression, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use utoipa::ToSchema;

use super::Suppressions;
use crate::base::{Caller, Change, UseCase, idempotency, is_mark, list, list::Listed, named_sender, parse_id, rights};
use crate::contacts;

/// A suppressed recipient.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Suppression)]
pub struct SuppressionView {
    /// Its identifier.
    pub id: SuppressionId,
    /// The recipient in canonical form, an email address in lower case; empty if the contact was erased, though the suppression remains in
    /// force.
    pub identifier: String,
    /// The channel; null for a phone number, whose suppression covers sms, whatsapp and voice.
    #[schema(required)]
    pub channel: Option<Channel>,
    /// The sender whose messages are suppressed; null means all senders.
    #[schema(required)]
    pub sender_id: Option<SenderId>,
    /// Reason.
    pub reason: SuppressionReason,
    /// Origin, as text.
    pub source: String,
    /// When it was created.
    pub created_at: Timestamp,
}

impl From<&Suppression> for SuppressionView {
    fn from(suppression: &Suppression) -> Self {
        let Suppression { id, recipient, sender, reason, source } = suppression;
        let channel = match recipient.kind {
            AddressKind::Phone => None,
            AddressKind::Email => Some(Channel::Email),
            AddressKind::Telegram => Some(Channel::Telegram),
            AddressKind::Instagram => Some(Channel::Instagram),
        };
        Self {
            id: *id,
            identifier: if is_mark(recipient) { String::new() } else { recipient.folded().into_owned() },
            channel,
            sender_id: *sender,
            reason: *reason,
            source: source.clone(),
            created_at: id.created_at(),
        }
    }
}

/// A new suppression.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateSuppression {
    /// Phone number, email address, or chat id (with `channel`).
    #[schema(min_length = 1, max_length = 320, format = "recipient", example = "+34600111222")]
    pub identifier: String,
    /// The channel; required for chat ids. For a phone number, all its channels are covered.
    pub channel: Option<Channel>,
    /// The sender whose messages are suppressed; all senders by default. For opt-outs only.
    pub sender_id: Option<String>,
    /// Reason: by default `opt_out` with a `senderId`, and `manual` without.
    pub reason: Option<SuppressionReason>,
}

crate::base::list::list_query! {
    /// Query of `GET /v1/suppressions`.
    ListSuppressions {
        /// For this recipient. A leading space is read as `+`.
        #[param(example = "+34600111222")]
        pub identifier: Option<String>,
    }
}

/// Result of `POST /v1/suppressions`.
#[derive(Clone, Debug)]
pub enum Suppressed {
    /// Created.
    Made(SuppressionView),
    /// Already existed.
    Known(SuppressionView),
}

impl Suppressions<'_> {
    /// `GET /v1/suppressions`: returns a page and the cursor of the next one.
    pub async fn list(&self, caller: &Caller, asked: &ListSuppressions) -> Result<Listed<SuppressionView>> {
        caller.require(UseCase::ListSuppressions)?;
        let (range, mut errors) = list::asked!(asked);
        let of = match asked.identifier.as_deref().map(|text| recipients(&list::phone(text))) {
            None => Vec::new(),
            Some(Ok(of)) => of,
            Some(Err(message)) => {
                errors.push(FieldError::new("query.identifier", message));
                Vec::new()
            }
        };
        let listing = self.listing(caller.tenant, &format!("suppressions?{of:?}"), &range, errors)?;
        let marked: Vec<_> = of.iter().map(|recipient| self.marked(caller.tenant, recipient)).collect();
        let of: Vec<_> = of.into_iter().chain(marked).collect();
        let page = self.inner.store.read().await?.list_suppressions(caller.tenant, &of, listing.page).await?;
        let items = page.items.iter().map(SuppressionView::from).collect();
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// `POST /v1/suppressions`.
    pub async fn create(&self, caller: &Caller, command: CreateSuppression, header: Option<&str>) -> Result<Suppressed> {
        caller.require(UseCase::CreateSuppression)?;
        let key = idempotency::key(None, header)?;
        let (recipient, reason) = read(&command)?;
        let full = CreateSuppression {
            identifier: recipient.identifier.clone(),
            channel: command.channel.filter(|_| !matches!(recipient.kind, AddressKind::Phone | AddressKind::Email)),
            reason: Some(reason),
            ..command
        };
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateSuppression, key, &full);
        let (tenant, now) = (caller.tenant, self.ids().clock.now());
        let config = self.current_config(tenant).await?;
        let sender = match full.sender_id.as_deref().map(|id| named_sender(&config, "senderId", id)).transpose() {
            Ok(sender) => sender.map(|sender| sender.id),
            Err(error) => {
                // A repeat is reported even if the sender was deleted since.
                let repeat = self.used(tenant, guard.as_ref()).await?;
                return Err(match repeat {
                    Some(repeat) => self.made_before(caller, repeat).await?,
                    None => error,
                });
            }
        };
        let source = format!("API key {}", caller.key);
        let suppression = Suppression { id: self.ids().next(), recipient, sender, reason, source };
        let mut tx = self.begin_once(caller, guard.as_ref(), suppression.id, now).await?;
        let made = tx.insert_suppression(tenant, &suppression, now).await?;
        if !made {
            drop(tx);
            let known = self.known(tenant, &suppression).await?;
            let known = known.ok_or_else(|| Error::unavailable("the suppression has just been removed; try again"))?;
            self.begin_once(caller, guard.as_ref(), known.id, now).await?.commit().await?;
            return Ok(Suppressed::Known(SuppressionView::from(&known)));
        }
        if suppression.reason == SuppressionReason::OptOut {
            publish_opt_out(&mut *tx, tenant, &suppression, now).await?;
        }
        let view = SuppressionView::from(&suppression);
        Change::new("suppression", "create", suppression.id).to(&view).commit(tx, tenant).await?;
        Ok(Suppressed::Made(view))
    }

    /// `DELETE /v1/suppressions/{id}`.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DeleteSuppression)?;
        let id = parse_id(id, "suppression")?;
        let mut tx = self.inner.store.begin().await?;
        let found = tx.find_suppression(caller.tenant, id).await?.ok_or_else(|| Error::not_found("suppression"))?;
        tx.delete_suppression(caller.tenant, id).await?;
        Ok(Change::new("suppression", "delete", id).from(&SuppressionView::from(&found)).commit(tx, caller.tenant).await?)
    }

    /// Returns the stored suppression of the same recipient, sender and reason.
    pub(super) async fn known(&self, tenant: TenantId, like: &Suppression) -> nuncio_store::Result<Option<Suppression>> {
        let all = PageRequest::newest(10_000);
        let of = std::slice::from_ref(&like.recipient);
        let page = self.inner.store.read().await?.list_suppressions(tenant, of, all).await?;
        Ok(page.items.into_iter().find(|known| known.sender == like.sender && known.reason == like.reason))
    }

    /// Begins a transaction that uses up the request's key for a suppression. Fails with a 409 if another request has used it.
    async fn begin_once(&self, caller: &Caller, key: Option<&Idempotency>, id: SuppressionId, now: Timestamp) -> Result<Box<dyn Tx>> {
        let mut tx = self.inner.store.begin().await?;
        match idempotency::claim(&mut *tx, caller.tenant, key, id.uuid(), now).await? {
            None => Ok(tx),
            Some(repeat) => {
                drop(tx);
                Err(self.made_before(caller, repeat).await?)
            }
        }
    }

    async fn made_before(&self, caller: &Caller, Repeat { original, same_request }: Repeat) -> Result<Error> {
        let found = self.inner.store.read().await?.find_suppression(caller.tenant, SuppressionId::from_uuid(original)).await?;
        Ok(idempotency::repeat(caller, rights::SUPPRESSION, found.as_ref().map(SuppressionView::from).as_ref(), same_request))
    }
}

/// Returns the recipient and the reason of a new suppression; reports all errors at once.
fn read(command: &CreateSuppression) -> Result<(Recipient, SuppressionReason)> {
    let mut errors = Vec::new();
    let recipient =
        recipient(&command.identifier, command.channel).map_err(|message| errors.push(FieldError::new("identifier", message))).ok();
    let scoped = command.sender_id.is_some();
    let reason = command.reason.unwrap_or(if scoped { SuppressionReason::OptOut } else { SuppressionReason::Manual });
    if scoped && reason != SuppressionReason::OptOut {
        errors.push(FieldError::new("senderId", format!("only an opt_out can be for one sender; {reason} is for all of them")));
    }
    match recipient {
        Some(recipient) if errors.is_empty() => Ok((recipient, reason)),
        _ => Err(Error::invalid(errors)),
    }
}

/// Publishes an opt-out if the recipient is a contact.
pub(crate) async fn publish_opt_out(tx: &mut dyn Tx, tenant: TenantId, added: &Suppression, now: Timestamp) -> nuncio_store::Result<()> {
    let Some(mut contact): Option<Contact> = contacts::lock_of(tx, tenant, &added.recipient).await? else { return Ok(()) };
    contact.version += 1;
    contact.updated_at = now;
    tx.update_contact(tenant, &contact).await?;
    let (resource, sequence) = (contact.id.uuid(), contact.version);
    let Some(view) = contacts::views(tx, tenant, vec![contact]).await?.pop() else { return Ok(()) };
    let data = Map::from_iter([("contact".to_owned(), json!(view)), ("suppression".to_owned(), json!(SuppressionView::from(added)))]);
    let occurrence = Occurrence { kind: EventType::ContactOptedOut, sender: added.sender, data };
    tx.insert_event(tenant, &NewEvent { kind: ResourceKind::Contact, resource, sequence, occurrences: vec![occurrence] }, now).await
}

fn recipient(identifier: &str, channel: Option<Channel>) -> Result<Recipient, String> {
    let parsed = Parsed::parse(identifier).map_err(|error| error.to_string())?;
    let channel = match (channel, &parsed) {
        (Some(channel), _) => channel,
        (None, Parsed::Phone(_)) => Channel::Sms,
        (None, Parsed::Email(_)) => Channel::Email,
        (None, Parsed::Digits(id)) => {
            return Err(format!(
                "{id:?} is a chat id, which needs channel telegram or instagram; for a phone number write {}",
                address::with_plus(id)
            ));
        }
    };
    Recipient::on(&parsed, channel).map_err(|error| error.to_string())
}

/// Returns all recipients an identifier can refer to.
fn recipients(identifier: &str) -> Result<Vec<Recipient>, String> {
    let parsed = Parsed::parse(identifier).map_err(|error| error.to_string())?;
    let channels: &[Channel] = match &parsed {
        Parsed::Phone(_) => &[Channel::Sms],
        Parsed::Email(_) => &[Channel::Email],
        Parsed::Digits(_) => &[Channel::Telegram, Channel::Instagram],
    };
    channels.iter().map(|channel| Recipient::on(&parsed, *channel).map_err(|error| error.to_string())).collect()
}
