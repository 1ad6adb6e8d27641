//! Public representation of the event log.

mod list;

use std::collections::HashMap;

use nuncio_domain::config::TenantConfig;
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::lifecycle::Change;
use nuncio_domain::message::{Attempt, AttemptStatus, Failure, Message, Route, Status, Wait};
use nuncio_domain::{ContactId, Environment, EventId, MessageId, ProjectId, SenderId, TenantId, Timestamp};
use nuncio_store::{LogEntry, LogPayload, Position, Tx};
use serde::Serialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::messages::MessageView;

pub use list::{EventFilter, ListEvents, Seen};

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
    pub environment: Environment,
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
        previous_status: Option<Status>,
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
                    let view = MessageView::new(&as_of(message, change, sequence), config.environment, *contact);
                    let data = EventData::Message { message: Box::new(view), previous_status: change.previous };
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
        environment: config.environment,
        sequence,
        data,
    };
    Event { position: entry.position, kind, resource: entry.resource, view }
}

/// Derived from tenant, resource, sequence and type, so that every node computes the same id.
fn event_id(tenant: TenantId, entry: &LogEntry, sequence: i64, event_type: EventType) -> EventId {
    let mut hasher = Sha256::new();
    hasher.update(tenant.0.to_be_bytes());
    hasher.update(entry.resource.as_bytes());
    hasher.update(sequence.to_be_bytes());
    hasher.update(event_type.as_str());
    EventId::from_uuid(derived_uuid(hasher, entry.recorded_at, sequence))
}

/// Returns a UUIDv7 of this time whose other bits are derived: ids of one millisecond sort by their sequence.
pub(crate) fn derived_uuid(hasher: Sha256, at: Timestamp, sequence: i64) -> Uuid {
    let digest = hasher.finalize();
    let mut random = [0; 10];
    random.copy_from_slice(&digest[..10]);
    [random[0], random[1]] = (sequence as u16).to_be_bytes();
    uuid_v7(at, random)
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

/// Returns the message as of `change`, which brought it to the version `sequence`. The log has neither provider texts nor provider ids: these
/// are the message's, until it is erased.
fn as_of(message: &Message, change: &Change, sequence: i64) -> Message {
    let mut then = message.clone();
    let state = &mut then.state;
    state.status = change.status;
    state.updated_at = change.at;
    state.wait = Wait::Nothing;
    let detail = &mut state.detail;
    if let Some((_, end)) = detail.extended.iter().find(|(until, _)| *until >= sequence) {
        state.expires_at = *end;
    }
    detail.attempts = attempts_then(&detail.attempts, change, sequence);
    let made = change.attempt.as_ref().and_then(|(index, _)| detail.attempts.get(*index));
    let known = [detail.failure.as_ref(), detail.superseded.as_ref(), made.and_then(|attempt| attempt.error.as_ref())];
    detail.failure = change.failure.as_ref().map(|failure| in_words(failure, known));
    detail.cost = change.cost;
    detail.possible_duplicate = change.possible_duplicate;
    // A message that failed had got as far as its status before.
    let furthest = match change.status {
        Status::Failed | Status::Cancelled => change.previous.unwrap_or(change.status),
        status => status,
    };
    for (reached, moment) in
        [(Status::Sent, &mut detail.sent_at), (Status::Delivered, &mut detail.delivered_at), (Status::Read, &mut detail.read_at)]
    {
        moment.take_if(|at| furthest < reached || *at > change.at);
    }
    if let Some(route) = route_then(message, &detail.attempts) {
        // The message went on to its fallback later.
        detail.fallback = Some(std::mem::replace(&mut state.route, route));
    }
    then
}

/// Returns the attempts that there were, as they were: the one of the change from the log, others without later results and corrections.
fn attempts_then(attempts: &[Attempt], change: &Change, sequence: i64) -> Vec<Attempt> {
    let newest = change.attempt.as_ref().map(|(index, _)| *index);
    let was_there = |(index, attempt): &(usize, &Attempt)| match newest {
        // An attempt that began in the millisecond of the change followed it.
        Some(newest) => *index <= newest || attempt.started_at < change.at,
        // Accepted, but not started yet.
        None => change.previous.is_some() && attempt.started_at <= change.at,
    };
    let then = attempts.iter().enumerate().filter(was_there).map(|(index, attempt)| {
        let known = attempt.as_of(sequence);
        match &change.attempt {
            Some((of_change, logged)) if *of_change == index => Attempt {
                provider_message_id: known.provider_message_id.clone().filter(|_| logged.finished_at.is_some()),
                error: logged.error.as_ref().map(|error| in_words(error, [known.error.as_ref()])),
                ..logged.clone()
            },
            _ if known.finished_at.is_some_and(|at| at > change.at) => {
                Attempt { status: AttemptStatus::Started, finished_at: None, provider_message_id: None, error: None, ..known.clone() }
            }
            _ => known.clone(),
        }
    });
    then.collect()
}

/// Returns the route of the newest of the attempts that there were, or of the one that followed, if it is not the route that the message
/// has now.
fn route_then(message: &Message, attempts: &[Attempt]) -> Option<Route> {
    let (made, now) = (&message.state.detail.attempts, &message.state.route);
    let Attempt { channel, connection, provider, .. } = attempts.last().or(made.first())?;
    let is_other = (*channel, *connection) != (now.channel, now.connection);
    is_other.then(|| Route { channel: *channel, connection: *connection, provider: provider.clone() })
}
