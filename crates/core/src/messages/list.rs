//! Reading messages.

use std::collections::BTreeMap;

use nuncio_domain::message::{Direction, Request, Status};
use nuncio_domain::{Channel, Error, FieldError, MessageId, Permission, Result, Timestamp, limits};
use nuncio_store::MessageFilter;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::view::MessageView;
use crate::list::Listed;
use crate::{Caller, Core, StoreResultExt as _, list, parse_id};

/// Which messages are asked for: the query of `GET /v1/messages`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListMessages {
    /// Comma-joined statuses.
    #[param(value_type = Option<Vec<Status>>, style = Form, explode = false, min_items = 1)]
    pub status: Option<String>,
    /// Comma-joined channels.
    #[param(value_type = Option<Vec<Channel>>, style = Form, explode = false, min_items = 1)]
    pub channel: Option<String>,
    /// The recipient in canonical form. A leading space is read as `+`.
    #[param(example = "+34600111222")]
    pub to: Option<String>,
    /// `outbound` or `inbound`.
    #[param(value_type = Option<Direction>)]
    pub direction: Option<String>,
    /// Made at or after this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    pub since: Option<String>,
    /// Made before this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    pub until: Option<String>,
    /// The message that was sent with this key.
    pub idempotency_key: Option<String>,
    /// Entries of `metadata`, as `metadata[key]=value`.
    #[param(style = DeepObject, explode)]
    pub metadata: BTreeMap<String, String>,
    /// Page size; 50 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
    /// Where to continue: the `nextCursor` of the page before, with the same filters.
    pub cursor: Option<String>,
}

impl Core {
    /// One message, as lists have it.
    pub async fn message(&self, caller: &Caller, id: MessageId) -> Result<MessageView> {
        Ok(self.outline(caller, id).await?.0)
    }

    /// `GET /v1/messages/{id}`. Should the text be too long for lists, the whole message is read, for which `has_room` is asked: whether
    /// so many bytes may be held.
    pub async fn get_message(&self, caller: &Caller, id: &str, has_room: impl FnOnce(u64) -> bool) -> Result<MessageView> {
        caller.require(Permission::MessagesRead)?;
        let id = parse_id(id, "message")?;
        let (mut view, outline) = self.outline(caller, id).await?;
        if outline.may_be_cut() {
            let words = limits::EMAIL_TEXT_BYTES + limits::EMAIL_HTML_BYTES;
            if !has_room(outline.attachment_bytes() + words as u64) {
                return Err(Error::unavailable("too many large messages are being read; try again"));
            }
            let whole = self.inner.store.read().await.or_fail()?.lookup_message(caller.tenant, id).await.or_fail()?;
            view.text = whole.and_then(|message| message.request.text);
        }
        Ok(view)
    }

    async fn outline(&self, caller: &Caller, id: MessageId) -> Result<(MessageView, Request)> {
        let mut tx = self.inner.store.read().await.or_fail()?;
        let message = tx.lookup_messages(caller.tenant, &[id]).await.or_fail()?.pop().ok_or_else(|| Error::not_found("message"))?;
        let contact = tx.contacts_of_messages(std::slice::from_ref(&message)).await.or_fail()?.pop().flatten();
        Ok((MessageView::new(&message, caller.environment, contact), message.request))
    }

    /// `GET /v1/messages`: a page, and the cursor of the next one.
    pub async fn list_messages(&self, caller: &Caller, asked: &ListMessages) -> Result<Listed<MessageView>> {
        caller.require(Permission::MessagesRead)?;
        let now = self.ids().clock.now();
        let (mut filter, limit) = read_filter(asked, now)?;
        filter.idempotency_key = filter.idempotency_key.map(|key| self.inner.marks.key(caller.tenant, &key));
        let scope = format!("messages?{filter:?}");
        let page = self.page(caller.tenant, &scope, limit, asked.cursor.as_deref())?;
        let mut tx = self.inner.store.read().await.or_fail()?;
        let page = tx.list_messages(caller.tenant, &filter, page).await.or_fail()?;
        let contacts = tx.contacts_of_messages(&page.items).await.or_fail()?;
        let items =
            page.items.iter().zip(contacts).map(|(message, contact)| MessageView::new(message, caller.environment, contact)).collect();
        Ok((items, self.next_cursor(caller.tenant, &scope, page.next)))
    }
}

fn read_filter(asked: &ListMessages, now: Timestamp) -> Result<(MessageFilter, u32)> {
    let mut errors = Vec::new();
    let limit = list::limit(asked.limit, &mut errors);
    let directions = list::words(asked.direction.as_deref(), "query.direction", Direction::parse, Direction::ALL, &mut errors);
    let filter = MessageFilter {
        status: list::words(asked.status.as_deref(), "query.status", Status::parse, Status::ALL, &mut errors),
        channel: list::words(asked.channel.as_deref(), "query.channel", Channel::parse, Channel::ALL, &mut errors),
        to: asked.to.as_deref().map(list::phone),
        // Both are all there are.
        direction: directions.first().copied().filter(|first| directions.iter().all(|other| other == first)),
        since: list::time(asked.since.as_deref(), "query.since", &mut errors),
        until: list::time(asked.until.as_deref(), "query.until", &mut errors),
        idempotency_key: asked.idempotency_key.clone(),
        metadata: asked.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>(),
    };
    let failed_only = filter.status == [Status::Failed];
    let scans = (!filter.status.is_empty() && !failed_only)
        || !filter.channel.is_empty()
        || filter.direction.is_some()
        || !filter.metadata.is_empty();
    let narrow = filter.to.is_some()
        || filter.idempotency_key.is_some()
        || filter.since.is_some_and(|since| now.since(since) <= limits::FILTER_SPAN);
    if scans && !narrow {
        errors.push(FieldError::new(
            "query.since",
            "filters by status (other than failed), channel, direction or metadata need `to`, or a `since` within the last 7 days",
        ));
    }
    if errors.is_empty() { Ok((filter, limit)) } else { Err(Error::invalid(errors)) }
}
