//! Reads messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_domain::message::{Direction, HeldReason, Message, Status};
use nuncio_domain::{Channel, ContactId, Error, FieldError, MessageId, Result, limits};
use nuncio_store::{MessageFilter, Tx};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Messages, view::MessageView};
use crate::base::list::{Listed, Listing};
use crate::base::{Caller, UseCase, list, parse_id};

/// Query of `GET /v1/messages`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListMessages {
    /// Statuses, repeated or comma-separated.
    #[param(value_type = Option<Vec<Status>>, style = Form, explode, min_items = 1)]
    pub status: Option<String>,
    /// Channels, repeated or comma-separated.
    #[param(value_type = Option<Vec<Channel>>, style = Form, explode, min_items = 1)]
    pub channel: Option<String>,
    /// Reasons for being held, repeated or comma-separated. Only held messages match.
    #[param(value_type = Option<Vec<HeldReason>>, style = Form, explode, min_items = 1)]
    pub held_reason: Option<String>,
    /// Recipient, or your number or address for an inbound message, in canonical form. A leading space is read as `+`.
    #[param(example = "+34600111222")]
    pub to: Option<String>,
    /// Your number or address, or the author of an inbound message, in canonical form. A leading space is read as `+`.
    #[param(example = "+12125550100")]
    pub from: Option<String>,
    /// To or from this contact.
    pub contact_id: Option<String>,
    /// By this sender.
    pub sender_id: Option<String>,
    /// Of this broadcast.
    pub broadcast_id: Option<String>,
    /// `outbound` or `inbound`.
    #[param(value_type = Option<Direction>)]
    pub direction: Option<String>,
    /// Created at or after this time.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Created before this time.
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// The message that used this idempotency key.
    pub idempotency_key: Option<String>,
    /// Entries of `metadata`, as `metadata[key]=value`; at most 50.
    #[param(style = DeepObject, explode)]
    pub metadata: BTreeMap<String, String>,
    /// Part of the text, ignoring the case of letters from A to Z.
    #[param(min_length = 1, max_length = 200, example = "parcel")]
    pub text: Option<String>,
    /// Page size; 50 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
    /// The `nextCursor` of the previous page, with the same filters.
    pub cursor: Option<String>,
}

impl ListMessages {
    /// Returns the `held_reason` that selects all held messages.
    pub fn any_held_reason() -> String {
        HeldReason::ALL.iter().map(|reason| reason.as_str()).collect::<Vec<_>>().join(",")
    }
}

list::list_query! {
    /// Query of `GET /v1/contacts/{id}/messages`.
    ListContactMessages {}
}

impl Messages<'_> {
    /// Returns a message as lists show it.
    pub async fn view(&self, caller: &Caller, id: MessageId) -> Result<MessageView> {
        Ok(self.outline(caller, id).await?.0)
    }

    /// `GET /v1/messages/{id}`. If there is HTML, or the text is too long for lists, reads the whole message, for which `has_room` grants
    /// memory.
    pub async fn get(&self, caller: &Caller, id: &str, has_room: impl FnOnce(u64) -> bool) -> Result<MessageView> {
        caller.require(UseCase::GetMessage)?;
        let id = parse_id(id, "message")?;
        let (mut view, message) = self.outline(caller, id).await?;
        let outline = message.request;
        if outline.may_be_truncated() || outline.lacks_html() {
            let words = limits::EMAIL_TEXT_BYTES + limits::EMAIL_HTML_BYTES;
            if !has_room(outline.attachment_bytes() + words as u64) {
                return Err(Error::unavailable("too many large messages are being read; try again"));
            }
            let whole = self.inner.store.read().await?.lookup_message(caller.tenant, id).await?;
            if let Some(whole) = whole {
                let request = Arc::unwrap_or_clone(whole.request);
                (view.text, view.html_body) = (request.text, request.html_body);
            }
        }
        Ok(view)
    }

    /// Returns a message as lists show it, and its view.
    pub(super) async fn outline(&self, caller: &Caller, id: MessageId) -> Result<(MessageView, Message)> {
        let mut tx = self.inner.store.read().await?;
        let message = tx.lookup_messages(caller.tenant, &[id]).await?.pop().ok_or_else(|| Error::not_found("message"))?;
        let contact = tx.contacts_of_messages(std::slice::from_ref(&message)).await?.pop().flatten();
        Ok((MessageView::new(&message, caller.environment, contact), message))
    }

    /// `GET /v1/messages`: returns a page and the cursor of the next one.
    pub async fn list(&self, caller: &Caller, asked: &ListMessages) -> Result<Listed<MessageView>> {
        caller.require(UseCase::ListMessages)?;
        let (range, mut errors) = list::asked!(asked);
        let mut filter = read_filter(asked, &mut errors);
        filter.idempotency_key = filter.idempotency_key.map(|key| self.inner.marks.key(caller.tenant, &key));
        let listing = self.listing(caller.tenant, &format!("messages?{filter:?}"), &range, errors)?;
        let mut tx = self.inner.store.read().await?;
        if let Some(contact) = filter.contact {
            filter.contact = tx.merged_into(caller.tenant, contact).await?.or(filter.contact);
        }
        self.page(&mut *tx, caller, &filter, &listing).await
    }

    /// `GET /v1/contacts/{id}/messages`: returns messages to and from a contact. A merged contact is resolved to its target.
    pub async fn list_of_contact(&self, caller: &Caller, id: &str, asked: &ListContactMessages) -> Result<Listed<MessageView>> {
        caller.require(UseCase::ListContactMessages)?;
        let (range, errors) = list::asked!(asked);
        let id: ContactId = parse_id(id, "contact")?;
        let listing = self.listing(caller.tenant, &format!("contacts/{id}/messages"), &range, errors)?;
        let mut tx = self.inner.store.read().await?;
        let contact = tx.merged_into(caller.tenant, id).await?.unwrap_or(id);
        tx.find_contact(caller.tenant, contact).await?.ok_or_else(|| Error::not_found("contact"))?;
        let filter = MessageFilter { contact: Some(contact), ..MessageFilter::default() };
        self.page(&mut *tx, caller, &filter, &listing).await
    }

    async fn page(&self, tx: &mut dyn Tx, caller: &Caller, filter: &MessageFilter, listing: &Listing) -> Result<Listed<MessageView>> {
        let page = tx.list_messages(caller.tenant, filter, listing.page).await?;
        let contacts = tx.contacts_of_messages(&page.items).await?;
        let items =
            page.items.iter().zip(contacts).map(|(message, contact)| MessageView::new(message, caller.environment, contact)).collect();
        Ok((items, self.next_cursor(caller.tenant, listing, page.next)))
    }
}

fn read_filter(asked: &ListMessages, errors: &mut Vec<FieldError>) -> MessageFilter {
    let directions = list::words(asked.direction.as_deref(), "query.direction", Direction::parse, Direction::ALL, errors);
    MessageFilter {
        status: list::words(asked.status.as_deref(), "query.status", Status::parse, Status::ALL, errors),
        channel: list::words(asked.channel.as_deref(), "query.channel", Channel::parse, Channel::ALL, errors),
        held: list::words(asked.held_reason.as_deref(), "query.heldReason", HeldReason::parse, HeldReason::ALL, errors),
        to: list::recipient(asked.to.as_deref(), "query.to", errors),
        from: asked.from.as_deref().map(list::author),
        // Both directions are the same as no filter.
        direction: directions.first().copied().filter(|first| directions.iter().all(|other| other == first)),
        sender: list::id(asked.sender_id.as_deref(), "query.senderId", "sender", errors),
        contact: list::id(asked.contact_id.as_deref(), "query.contactId", "contact", errors),
        broadcast: list::id(asked.broadcast_id.as_deref(), "query.broadcastId", "broadcast", errors),
        idempotency_key: asked.idempotency_key.clone(),
        metadata: list::metadata(&asked.metadata, "query.metadata", errors),
        text: list::part(asked.text.as_deref(), "query.text", errors),
    }
}
