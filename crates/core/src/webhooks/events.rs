//! Public representation of the event log.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_domain::config::TenantConfig;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::lifecycle::Change;
use nuncio_domain::message::{Failure, Message, Status, Wait};
use nuncio_domain::{ContactId, Environment, EventId, FieldError, MessageId, ProjectId, SenderId, TenantId, Timestamp, limits};
use nuncio_store::{LogEntry, LogPayload, Position, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::Events;
use super::resource_id::asked_resource;
use crate::base::list::{Listed, asked, words};
use crate::base::rights::{Resource, id_and_status};
use crate::base::{Caller, UseCase};
use crate::messages::MessageView;

/// An event with its resource.
#[derive(Clone, Debug)]
pub struct Event {
    /// Position of its row in the log.
    pub position: Position,
    /// Kind of resource.
    pub kind: ResourceKind,
    pub resource: Uuid,
    /// Its public representation.
    pub view: EventView,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Event)]
pub struct EventView {
    /// Id of the event, the same on every read and in each delivery.
    pub id: EventId,
    /// Event type.
    #[serde(rename = "type")]
    pub event_type: EventType,
    /// Time of the event.
    pub timestamp: Timestamp,
    /// The project.
    pub project_id: ProjectId,
    /// The sender, if the event belongs to one.
    #[schema(required)]
    pub sender_id: Option<SenderId>,
    /// `live` or `test`.
    #[schema(value_type = Environment)]
    pub environment: &'static str,
    /// Incremented by each event of the same resource.
    pub sequence: i64,
    /// The resource, under its name, as of the event, and related data.
    #[schema(value_type = Object)]
    pub data: EventData,
}

impl Event {
    /// Returns the body posted to webhooks.
    pub fn body(&self) -> Vec<u8> {
        serde_json::to_vec(&self.view).unwrap_or_default()
    }
}

/// Data of an event.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum EventData {
    #[serde(rename_all = "camelCase")]
    Message {
        /// The message as of the event.
        message: Box<MessageView>,
        /// The previous status.
        #[serde(skip_serializing_if = "Option::is_none")]
        previous_status: Option<&'static str>,
    },
    /// Another resource.
    Other(Map<String, Value>),
}

/// Builds the events of `entries` of an environment's log, in order, if `wants` their type. Skips messages that no longer exist.
pub async fn build_events(
    tx: &mut dyn Tx,
    config: &TenantConfig,
    entries: &[LogEntry],
    wants: impl Fn(EventType) -> bool,
) -> nuncio_store::Result<Vec<Event>> {
    let wants_any = |change: &Change| types_of(change).into_iter().flatten().any(&wants);
    let is_message = |entry: &&LogEntry| matches!(&entry.payload, LogPayload::Message(changes) if changes.iter().any(wants_any));
    let mut ids: Vec<MessageId> = entries.iter().filter(is_message).map(|e| MessageId::from_uuid(e.resource)).collect();
    ids.sort_unstable();
    ids.dedup();
    let messages = tx.lookup_messages(config.tenant, &ids).await?;
    let contacts = tx.contacts_of_messages(&messages).await?;
    let messages: HashMap<Uuid, (Message, Option<ContactId>)> =
        messages.into_iter().zip(contacts).map(|(message, contact)| (message.id.uuid(), (message, contact))).collect();
    let mut events = Vec::with_capacity(entries.len() * 2);
    for entry in entries {
        match &entry.payload {
            LogPayload::Message(changes) => {
                let Some((message, contact)) = messages.get(&entry.resource) else { continue };
                for (change, sequence) in changes.iter().zip(entry.sequence..).filter(|(change, _)| wants_any(change)) {
                    let view = MessageView::new(&as_of(message, change), config.environment, *contact);
                    let data = EventData::Message { message: Box::new(view), previous_status: change.previous.map(Status::as_str) };
                    for event_type in types_of(change).into_iter().flatten().filter(|event_type| wants(*event_type)) {
                        let head = (event_type, Some(message.sender), sequence, change.at);
                        events.push(event(config, entry, ResourceKind::Message, head, data.clone()));
                    }
                }
            }
            LogPayload::Other(kind, occurrences) => {
                for (occurrence, sequence) in occurrences.iter().zip(entry.sequence..).filter(|(occurrence, _)| wants(occurrence.kind)) {
                    let data = EventData::Other(occurrence.data.clone());
                    events.push(event(config, entry, *kind, (occurrence.kind, occurrence.sender, sequence, entry.recorded_at), data));
                }
            }
        }
    }
    Ok(events)
}

/// Event type, the sender whose webhook gets it, sequence and time.
type Head = (EventType, Option<SenderId>, i64, Timestamp);

fn event(config: &TenantConfig, entry: &LogEntry, kind: ResourceKind, (event_type, sender, sequence, at): Head, data: EventData) -> Event {
    let id = event_id(config.tenant, entry, sequence, event_type);
    let view = EventView {
        id,
        event_type,
        timestamp: at,
        project_id: config.project.id,
        sender_id: sender,
        environment: config.environment.as_str(),
        sequence,
        data,
    };
    Event { position: entry.position, kind, resource: entry.resource, view }
}

/// Derived from the event's position, so that every node computes the same id.
fn event_id(tenant: TenantId, entry: &LogEntry, sequence: i64, event_type: EventType) -> EventId {
    let mut hasher = Sha256::new();
    hasher.update(tenant.0.to_be_bytes());
    hasher.update(entry.resource.as_bytes());
    hasher.update(sequence.to_be_bytes());
    hasher.update(event_type.as_str());
    let digest = hasher.finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    // The first twelve bits after the time: events of one millisecond sort by their sequence.
    [random[0], random[1]] = (sequence as u16).to_be_bytes();
    EventId::from_uuid(uuid_v7(entry.recorded_at, random))
}

/// Returns the event types of a change: its status, and a new conversation.
fn types_of(change: &Change) -> [Option<EventType>; 2] {
    [Some(type_of(change.status)), change.conversation.then_some(EventType::ConversationNew)]
}

const fn type_of(status: Status) -> EventType {
    match status {
        Status::Scheduled | Status::Queued => EventType::MessageQueued,
        Status::Sending => EventType::MessageSending,
        Status::Sent => EventType::MessageSent,
        Status::Delivered => EventType::MessageDelivered,
        Status::Read => EventType::MessageRead,
        Status::Failed | Status::Cancelled => EventType::MessageFailed,
        Status::Received => EventType::MessageInbound,
    }
}

/// Returns a failure from the log, with the text that the message still has of it.
fn in_words<'a>(failure: &Failure, known: impl IntoIterator<Item = Option<&'a Failure>>) -> Failure {
    let same = |known: &&Failure| known.code == failure.code;
    known.into_iter().flatten().find(same).unwrap_or(failure).clone()
}

/// Returns the message as of `change`, undoing later changes as far as possible. The log has neither provider texts nor provider ids: these
/// are the message's, until it is erased.
fn as_of(message: &Message, change: &Change) -> Message {
    let mut then = message.clone();
    let state = &mut then.state;
    let made = change.attempt.as_ref().and_then(|(index, _)| message.state.detail.attempts.get(*index));
    let errors = [made.and_then(|attempt| attempt.error.as_ref()), message.state.detail.failure.as_ref()];
    state.status = change.status;
    state.updated_at = change.at;
    state.wait = Wait::Nothing;
    let detail = &mut state.detail;
    detail.failure = change.failure.as_ref().map(|failure| in_words(failure, errors));
    detail.cost = change.cost;
    detail.possible_duplicate = change.possible_duplicate;
    let not_yet = |reached: Status, at: Option<Timestamp>| change.status < reached || at.is_some_and(|at| at > change.at);
    for (reached, moment) in
        [(Status::Sent, &mut detail.sent_at), (Status::Delivered, &mut detail.delivered_at), (Status::Read, &mut detail.read_at)]
    {
        if not_yet(reached, *moment) {
            *moment = None;
        }
    }
    detail.attempts.retain(|attempt| attempt.started_at <= change.at);
    match &change.attempt {
        Some((index, attempt)) => {
            detail.attempts.truncate(index + 1);
            if let Some(last) = detail.attempts.get_mut(*index) {
                let known = std::mem::replace(last, attempt.clone());
                last.provider_message_id = known.provider_message_id.filter(|_| last.finished_at.is_some());
                last.error = last.error.take().map(|error| in_words(&error, [known.error.as_ref()]));
            }
        }
        // Accepted, but not started yet.
        None if change.previous.is_none() => detail.attempts.clear(),
        None => {}
    }
    then
}

/// Query of `GET /v1/events`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListEvents {
    /// Event types, repeated or comma-separated.
    #[serde(rename = "type")]
    #[param(value_type = Option<Vec<EventType>>, style = Form, explode, min_items = 1)]
    pub event_type: Option<String>,
    /// About this message, contact, broadcast, template or invitation.
    pub resource_id: Option<String>,
    /// At or after this time.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Before this time.
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// Page size.
    #[param(minimum = 1, maximum = 100, default = 50)]
    pub limit: Option<u32>,
    /// The `nextCursor` of the previous page.
    pub cursor: Option<String>,
}

/// Encodes a position in the list of events: a row of the log, and how many of its events were shown.
fn place(position: Position, shown: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&position.commit.to_be_bytes());
    // Entries are numbered from 0 or 1: six bytes suffice.
    bytes[8..14].copy_from_slice(&position.entry.to_be_bytes()[2..]);
    bytes[14..].copy_from_slice(&shown.to_be_bytes());
    bytes
}

fn read_place(bytes: [u8; 16]) -> (Position, u16) {
    let number = |range: std::ops::Range<usize>| bytes[range].iter().fold(0_i64, |n, byte| (n << 8) | i64::from(*byte));
    (Position { commit: number(0..8), entry: number(8..14) }, number(14..16) as u16)
}

/// A filter of events.
#[derive(Clone, Debug, Default)]
pub struct EventFilter {
    /// Event types; empty means all.
    types: Vec<EventType>,
    resource: Option<Uuid>,
}

impl EventFilter {
    /// Parses the filters of a query.
    pub fn read(asked: &ListEvents) -> nuncio_domain::Result<Self> {
        let mut errors = Vec::new();
        let filter = Self::of(asked, &mut errors);
        if errors.is_empty() { Ok(filter) } else { Err(nuncio_domain::Error::invalid(errors)) }
    }

    fn of(asked: &ListEvents, errors: &mut Vec<FieldError>) -> Self {
        Self {
            types: words(asked.event_type.as_deref(), "query.type", EventType::parse, EventType::ALL, errors),
            resource: asked_resource(asked.resource_id.as_deref(), errors),
        }
    }

    fn wants(&self, event_type: EventType) -> bool {
        self.types.is_empty() || self.types.contains(&event_type)
    }

    fn admits(&self, event: &Event) -> bool {
        self.wants(event.view.event_type) && self.resource.is_none_or(|resource| resource == event.resource)
    }
}

/// How far rows of the log can be out of time order, by differing clocks of nodes and waiting writes.
const SKEW: Duration = Duration::from_secs(60);
/// Rows of the log per read for a list with filters.
const ROWS: u32 = 500;

impl Events<'_> {
    /// `GET /v1/events`: returns a page, newest first.
    pub async fn list(&self, caller: &Caller, asked: &ListEvents) -> nuncio_domain::Result<Listed<EventView>> {
        caller.require(UseCase::ListEvents)?;
        let mut errors = Vec::new();
        let range = asked!(asked, &mut errors);
        let filter = EventFilter::of(asked, &mut errors);
        let (cursor, scope) = self.after_cursor(caller.tenant, &format!("events?{filter:?}"), &range, errors)?;
        let next = |place| Some(self.cursors().make(caller.tenant, &scope, place));
        let cursor = cursor.map(read_place);
        let config = self.tenant_config(caller.tenant).await?;
        let mut tx = self.inner.store.read().await?;
        // A partly shown row is read again.
        let mut before = cursor.map(|(at, shown)| if shown == 0 { at } else { Position { entry: at.entry + 1, ..at } });
        if let Some(until) = range.until.filter(|_| before.is_none()) {
            before = Some(tx.log_place(caller.tenant, until.plus(SKEW)).await?);
        }
        let end = match range.since {
            Some(since) => tx.log_place(caller.tenant, since.minus(SKEW)).await?,
            None => Position::default(),
        };
        let in_span = |at| range.since.is_none_or(|since| at >= since) && range.until.is_none_or(|until| at < until);
        let mut skip = cursor.map_or(0, |(_, shown)| usize::from(shown));
        let (mut items, mut looked_at) = (Vec::new(), 0);
        let all = filter.types.is_empty() && range.until.is_none();
        let rows = if all { range.limit + 1 } else { ROWS };
        loop {
            let entries = tx.list_log(caller.tenant, filter.resource, before, rows).await?;
            let Some(oldest) = entries.last().map(|e| e.position).filter(|_| entries[0].position >= end) else { break };
            before = Some(oldest);
            looked_at += entries.len();
            let events = visible(caller, build_events(&mut *tx, &config, &entries, |event_type| filter.wants(event_type)).await?);
            // Rows are newest first, their events oldest first.
            let mut rows: Vec<Vec<Event>> = Vec::new();
            for event in events.into_iter().filter(|event| in_span(event.view.timestamp)) {
                match rows.last_mut().filter(|row| row[0].position == event.position) {
                    Some(row) => row.insert(0, event),
                    None => rows.push(vec![event]),
                }
            }
            for row in rows {
                let position = row[0].position;
                for (shown, event) in row.into_iter().enumerate().skip(std::mem::take(&mut skip)) {
                    if items.len() == range.limit as usize {
                        let place = if shown == 0 { last_place(&items) } else { place(position, shown as u16) };
                        return Ok((views(items), next(place)));
                    }
                    items.push(event);
                }
            }
            if looked_at >= limits::SCAN_ROWS as usize {
                return Ok((views(items), next(place(oldest, 0))));
            }
        }
        Ok((views(items), None))
    }

    /// Ends all event streams shortly, because the node is stopping.
    pub fn end_streams(&self) {
        self.inner.closing.store(true, Ordering::Relaxed);
    }

    /// Returns whether a caller's stream may continue: the key is valid, and this node is not stopping.
    pub async fn may_follow(&self, caller: &Caller) -> bool {
        !self.inner.closing.load(Ordering::Relaxed) && self.inner.dispatch.accepting().is_some() && self.keys().is_valid(caller).await
    }

    /// Returns the current end of the log of the caller's environment.
    pub async fn end(&self, caller: &Caller) -> nuncio_domain::Result<Seen> {
        caller.require(UseCase::ListEvents)?;
        let position = self.inner.store.read().await?.log_end(caller.tenant).await?;
        Ok(Seen { position, shown: ALL })
    }

    /// Parses a token of [`Self::after`].
    pub fn seen(&self, caller: &Caller, token: &str) -> nuncio_domain::Result<Seen> {
        caller.require(UseCase::ListEvents)?;
        let wrong = |_| nuncio_domain::Error::field("header.Last-Event-ID", "is not the id of an event of this stream");
        let (position, shown) = read_place(self.cursors().read(caller.tenant, STREAM, token).map_err(wrong)?);
        Ok(Seen { position, shown })
    }

    /// Returns the next matching events of the caller's environment, in order, each with its resume token, and the new position.
    pub async fn after(
        &self,
        caller: &Caller,
        filter: &EventFilter,
        seen: Seen,
        rows: u32,
    ) -> nuncio_domain::Result<(Vec<(String, EventView)>, Seen)> {
        caller.require(UseCase::ListEvents)?;
        // A partly seen row is read again.
        let entry = if seen.shown == ALL { seen.position.entry } else { seen.position.entry - 1 };
        let from = Position { entry, ..seen.position };
        let entries = self.inner.store.read().await?.read_log(caller.tenant, from, rows).await?;
        let Some(position) = entries.last().map(|e| e.position) else { return Ok((Vec::new(), seen)) };
        // Must not wait for another reader while holding one.
        let config = self.tenant_config(caller.tenant).await?;
        let mut tx = self.inner.store.read().await?;
        let events = visible(caller, build_events(&mut *tx, &config, &entries, |_| true).await?);
        let (mut payload, mut last, mut shown) = (Vec::with_capacity(events.len()), None, 0);
        for event in events {
            shown = if last == Some(event.position) { shown + 1 } else { 1 };
            last = Some(event.position);
            if (event.position == seen.position && shown <= seen.shown) || !filter.admits(&event) {
                continue;
            }
            payload.push((self.cursors().make(caller.tenant, STREAM, place(event.position, shown)), event.view));
        }
        Ok((payload, Seen { position, shown: ALL }))
    }
}

/// Returns the events as `caller` can see them: resources it cannot read are reduced to id and status.
fn visible(caller: &Caller, mut events: Vec<Event>) -> Vec<Event> {
    for event in &mut events {
        let resource = Resource::from(event.kind);
        if let EventData::Other(data) = &mut event.view.data
            && !caller.may_read(resource)
        {
            data.retain(|name, _| name == resource.name || name == "previousStatus");
            if let Some(whole) = data.get_mut(resource.name) {
                *whole = id_and_status(whole);
            }
        }
    }
    events
}

/// Position of a reader in the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    position: Position,
    /// Number of events seen of the row at `position`.
    shown: u16,
}

/// More events than any row has.
const ALL: u16 = u16::MAX;

/// Scope of the tokens that name the last event seen.
const STREAM: &str = "events/stream";

/// Returns the position after the last of these events, whose row was shown completely.
fn last_place(items: &[Event]) -> [u8; 16] {
    items.last().map_or([0; 16], |event| place(event.position, 0))
}

fn views(events: Vec<Event>) -> Vec<EventView> {
    events.into_iter().map(|event| event.view).collect()
}
