//! `GET /v1/events`: pages of the event log, and a stream that follows it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_domain::{FieldError, Timestamp, event::EventType, limits};
use nuncio_store::Position;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::super::Events;
use super::super::resource_id::asked_resource;
use super::{Event, EventData, EventView, build_events};
use crate::base::list::{self, Listed, asked, words};
use crate::base::rights::{Resource, id_and_status};
use crate::base::{Caller, UseCase};

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
    /// For streams; pages read a span of the log.
    since: Option<Timestamp>,
}

impl EventFilter {
    /// Parses the query of a stream.
    pub fn read(asked: &ListEvents) -> nuncio_domain::Result<Self> {
        let mut errors = Vec::new();
        let since = list::time(asked.since.as_deref(), "query.since", &mut errors);
        let of_pages = [("until", asked.until.is_some()), ("limit", asked.limit.is_some()), ("cursor", asked.cursor.is_some())];
        for (name, _) in of_pages.into_iter().filter(|(_, given)| *given) {
            let why = "is for pages only; a stream begins at since, or after the event in the header Last-Event-ID, and does not end";
            errors.push(FieldError::new(format!("query.{name}"), why));
        }
        let filter = Self { since, ..Self::of(asked, &mut errors) };
        nuncio_domain::Error::if_any(errors)?;
        Ok(filter)
    }

    fn of(asked: &ListEvents, errors: &mut Vec<FieldError>) -> Self {
        Self {
            types: words(asked.event_type.as_deref(), "query.type", EventType::parse, EventType::ALL, errors),
            resource: asked_resource(asked.resource_id.as_deref(), errors),
            since: None,
        }
    }

    fn wants(&self, event_type: EventType) -> bool {
        self.types.is_empty() || self.types.contains(&event_type)
    }

    fn admits(&self, event: &Event) -> bool {
        self.wants(event.view.event_type)
            && self.resource.is_none_or(|resource| resource == event.resource)
            && self.since.is_none_or(|since| event.view.timestamp >= since)
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
        let (range, mut errors) = asked!(asked);
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
        // The message of a partly shown row can be gone since, and its row with it.
        let shown_of = |row: Position| cursor.filter(|(at, _)| *at == row).map_or(0, |(_, shown)| usize::from(shown));
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
                for (shown, event) in row.into_iter().enumerate().skip(shown_of(position)) {
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

    /// Returns where a stream of the caller's environment begins: at `since`, or at the current end of the log.
    pub async fn begin(&self, caller: &Caller, filter: &EventFilter) -> nuncio_domain::Result<Seen> {
        caller.require(UseCase::ListEvents)?;
        let mut tx = self.inner.store.read().await?;
        Ok(match filter.since {
            Some(since) => Seen { position: tx.log_place(caller.tenant, since.minus(SKEW)).await?, shown: 0 },
            None => Seen { position: tx.log_end(caller.tenant).await?, shown: ALL },
        })
    }

    /// Parses a token of [`Self::after`].
    pub fn seen(&self, caller: &Caller, token: &str) -> nuncio_domain::Result<Seen> {
        caller.require(UseCase::ListEvents)?;
        let wrong = |_| nuncio_domain::Error::field("header.Last-Event-ID", "is not the id of an event of this stream");
        let (position, shown) = read_place(self.cursors().read(caller.tenant, STREAM, token).map_err(wrong)?);
        Ok(Seen { position, shown })
    }

    /// Returns the token that resumes after a position.
    pub fn token(&self, caller: &Caller, seen: Seen) -> String {
        self.cursors().make(caller.tenant, STREAM, place(seen.position, seen.shown))
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
