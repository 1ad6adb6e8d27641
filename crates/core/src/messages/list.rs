//! Reading messages.

use std::collections::BTreeMap;

use nuncio_domain::message::{Direction, Status};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Channel, Error, FieldError, MessageId, Permission, Result, Timestamp, limits};
use nuncio_store::MessageFilter;
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::IntoParams;

use super::view::MessageView;
use crate::{Caller, Core, StoreResultExt as _};

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
    /// One message.
    pub async fn message(&self, caller: &Caller, id: MessageId) -> Result<MessageView> {
        let mut tx = self.inner.store.read().await.or_fail()?;
        let message = tx.lookup_message(caller.tenant, id).await.or_fail()?.ok_or_else(|| Error::not_found("message"))?;
        let contact = tx.contacts_of_messages(std::slice::from_ref(&message)).await.or_fail()?.pop().flatten();
        Ok(MessageView::new(&message, caller.environment, contact))
    }

    /// `GET /v1/messages/{id}`.
    pub async fn get_message(&self, caller: &Caller, id: &str) -> Result<MessageView> {
        caller.require(Permission::MessagesRead)?;
        self.message(caller, parse_id(id)?).await
    }

    /// `GET /v1/messages`: a page, and the cursor of the next one.
    pub async fn list_messages(&self, caller: &Caller, list: &ListMessages) -> Result<(Vec<MessageView>, Option<String>)> {
        caller.require(Permission::MessagesRead)?;
        let now = self.ids().clock.now();
        let (filter, limit) = read_filter(list, now)?;
        let scope = format!("messages?{filter:?}");
        let before = list.cursor.as_deref().map(|c| self.cursors().read(caller.tenant, &scope, c)).transpose()?;
        let page = PageRequest { limit, before: before.map(uuid_of) };
        let mut tx = self.inner.store.read().await.or_fail()?;
        let page = tx.list_messages(caller.tenant, &filter, page).await.or_fail()?;
        let contacts = tx.contacts_of_messages(&page.items).await.or_fail()?;
        let items =
            page.items.iter().zip(contacts).map(|(message, contact)| MessageView::new(message, caller.environment, contact)).collect();
        let next = page.next.map(|id| self.cursors().make(caller.tenant, &scope, *id.as_bytes()));
        Ok((items, next))
    }
}

/// The identifier of a message in a path; a malformed one is of no message.
pub(super) fn parse_id(text: &str) -> Result<MessageId> {
    text.parse().map_err(|_| Error::not_found("message"))
}

fn uuid_of(bytes: [u8; 16]) -> uuid::Uuid {
    uuid::Uuid::from_bytes(bytes)
}

fn read_filter(list: &ListMessages, now: Timestamp) -> Result<(MessageFilter, u32)> {
    let mut errors = Vec::new();
    let limit = list.limit.unwrap_or(limits::PAGE_DEFAULT);
    if !(1..=limits::PAGE_MAX).contains(&limit) {
        errors.push(FieldError::new("query.limit", format!("is {limit}; must be a whole number from 1 to {}", limits::PAGE_MAX)));
    }
    let filter = MessageFilter {
        status: words(list.status.as_deref(), "query.status", Status::parse, Status::ALL, &mut errors),
        channel: words(list.channel.as_deref(), "query.channel", Channel::parse, Channel::ALL, &mut errors),
        // A plus sign that was not percent-encoded arrives as a space.
        to: list.to.as_deref().map(|to| to.strip_prefix(' ').map_or_else(|| to.to_owned(), |digits| format!("+{digits}"))),
        direction: words(list.direction.as_deref(), "query.direction", Direction::parse, Direction::ALL, &mut errors).pop(),
        since: time(list.since.as_deref(), "query.since", &mut errors),
        until: time(list.until.as_deref(), "query.until", &mut errors),
        idempotency_key: list.idempotency_key.clone(),
        metadata: list.metadata.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect::<Map<_, _>>(),
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

fn words<T: Copy + std::fmt::Display>(
    text: Option<&str>,
    path: &str,
    parse: fn(&str) -> Option<T>,
    all: &[T],
    errors: &mut Vec<FieldError>,
) -> Vec<T> {
    let Some(text) = text else { return Vec::new() };
    let mut found = Vec::new();
    for word in text.split(',') {
        match parse(word) {
            Some(value) => found.push(value),
            None => {
                let known = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let shown: String = word.chars().take(64).collect();
                errors.push(FieldError::new(path, format!("{shown:?} is not one of {known}")));
            }
        }
    }
    found
}

fn time(text: Option<&str>, path: &str, errors: &mut Vec<FieldError>) -> Option<Timestamp> {
    match Timestamp::parse(text?) {
        Ok(at) => Some(at),
        Err(error) => {
            errors.push(FieldError::new(path, error.to_string()));
            None
        }
    }
}
