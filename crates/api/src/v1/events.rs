//! `GET /v1/events`.

use std::collections::VecDeque;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use nuncio_core::Caller;
use nuncio_core::events::{EventFilter, EventView, ListEvents, Seen};
use nuncio_domain::Error;

use crate::extract::{Auth, LastEventId, Query};
use crate::middleware::weight;
use crate::reply::{Reply, Result, page};
use crate::routes::{Routes, routes};
use crate::state::App;
use crate::streams::StreamPermit;

/// Interval at which a stream reads new events.
const LOOK: Duration = Duration::from_millis(250);
/// Log rows per read.
const ROWS: u32 = 128;

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(list_events))
}

page! {
    /// A page of events.
    EventPage of EventView
}

/// List or stream events
///
/// The event log, from which webhooks are served. As JSON: a page, newest first. With `Accept: text/event-stream`: server-sent events, in
/// order, from now on, from `since`, or after `Last-Event-ID`. Each has the event type as its name, the event as its data, and an id to
/// resume from; `until`, `limit` and `cursor` are for pages only. Some ids come without an event: the first one says where the stream
/// begins, the others that no event up to there matched. A stream ends when the server stops, the node cannot work (the next request then
/// gets 503) or the key is revoked. An environment can have 50 open streams on a node; beyond that, the response is 429.
#[utoipa::path(
    get, path = "/v1/events", tag = "Events", params(ListEvents, LastEventId),
    responses((status = 200, description = "A page of events, or a stream of them.", content(
        (EventPage = "application/json"), (String = "text/event-stream"),
    ))),
)]
pub(crate) async fn list_events(
    State(app): State<App>,
    Auth(caller): Auth,
    LastEventId(last): LastEventId,
    Query(list): Query<ListEvents>,
    headers: HeaderMap,
) -> Result<Response> {
    if !wants_stream(&headers) {
        return Ok(Reply::ok(EventPage::from(app.core.events().list(&caller, &list).await?)).into_response());
    }
    let filter = EventFilter::read(&list)?;
    let log = app.core.events();
    if !log.may_follow(&caller).await {
        return Err(Error::unavailable("this node cannot follow the log now").into());
    }
    let (seen, start) = match last {
        Some(token) => (log.seen(&caller, &token)?, None),
        None => {
            // A client that loses the connection before the first event resumes here.
            let begin = log.begin(&caller, &filter).await?;
            (begin, Some(log.token(&caller, begin)))
        }
    };
    let place = app.streams.enter(caller.tenant)?;
    let follow = Follow { app, caller, filter, seen, start, ready: VecDeque::new(), _permit: place };
    Ok(Sse::new(stream::unfold(follow, Follow::next)).keep_alive(KeepAlive::default()).into_response())
}

/// Returns whether `Accept` names the media type of server-sent events and does not prefer JSON, or excludes JSON.
fn wants_stream(headers: &HeaderMap) -> bool {
    let ((named, stream), (_, json)) = (weight(headers, "text/event-stream"), weight(headers, "application/json"));
    stream > 0.0 && (json == 0.0 || (named == 2 && stream >= json))
}

struct Follow {
    app: App,
    caller: Caller,
    filter: EventFilter,
    seen: Seen,
    start: Option<String>,
    ready: VecDeque<(String, EventView)>,
    _permit: StreamPermit,
}

impl Follow {
    /// Waits for the next event. Ends when the caller loses access or reading fails: clients reconnect.
    async fn next(mut self) -> Option<(std::result::Result<Event, axum::Error>, Self)> {
        if let Some(id) = self.start.take() {
            return Some((Ok(Event::default().id(id)), self));
        }
        loop {
            if let Some((id, view)) = self.ready.pop_front() {
                let event = Event::default().id(id).event(view.event_type.as_str()).json_data(&view);
                return Some((event, self));
            }
            let log = self.app.core.events();
            if !log.may_follow(&self.caller).await {
                return None;
            }
            let Ok(permit) = self.app.core.reads().acquire(self.caller.tenant).await else { continue };
            let (events, seen) = log.after(&self.caller, &self.filter, self.seen, ROWS).await.ok()?;
            drop(permit);
            let idle = self.seen == seen;
            self.seen = seen;
            self.ready.extend(events);
            if idle {
                tokio::time::sleep(LOOK).await;
            } else if self.ready.is_empty() {
                // A client that resumes need not wait for these rows again.
                let id = log.token(&self.caller, seen);
                return Some((Ok(Event::default().id(id)), self));
            }
        }
    }
}
