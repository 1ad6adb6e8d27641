//! `GET /v1/events`.

use std::collections::VecDeque;
use std::time::Duration;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream;
use nuncio_core::events::{EventView, ListEvents, Seen};
use nuncio_core::{Caller, Core};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::extract::{Auth, LastEventId, Query};
use crate::reply::{Reply, Result, page};
use crate::state::App;

/// How often a stream looks for new events.
const LOOK: Duration = Duration::from_millis(250);
/// Rows of the log of one look.
const ROWS: u32 = 128;

pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::default().routes(routes!(list_events))
}

page! {
    /// A page of events.
    EventPage of EventView
}

/// List events, or follow them
///
/// The event log that webhooks are fed from. As JSON: a page, newest first. With `Accept: text/event-stream`: server-sent events, in
/// order, from now on, or from the event after `Last-Event-ID`. Each has the type of the event as its name, the event as its data, and
/// an id to resume from; query parameters do not apply. A stream ends when the server stops or the key is revoked.
#[utoipa::path(
    get, path = "/v1/events", tag = "Events", params(ListEvents, LastEventId),
    responses((status = 200, description = "A page of events, or a stream of them.", content(
        (EventPage = "application/json"), (String = "text/event-stream"),
    ))),
)]
pub(crate) async fn list_events(
    State(core): State<Core>,
    Auth(caller): Auth,
    LastEventId(last): LastEventId,
    Query(list): Query<ListEvents>,
    headers: HeaderMap,
) -> Result<Response> {
    if !wants_stream(&headers) {
        return Ok(Reply::ok(EventPage::from(core.list_events(&caller, &list).await?)).into_response());
    }
    let seen = match last {
        Some(token) => core.seen_events(&caller, &token)?,
        None => core.end_of_events(&caller).await?,
    };
    let follow = Follow { core, caller, seen, ready: VecDeque::new() };
    Ok(Sse::new(stream::unfold(follow, Follow::next)).keep_alive(KeepAlive::default()).into_response())
}

/// Whether `Accept` names the type of server-sent events.
pub(crate) fn wants_stream(headers: &HeaderMap) -> bool {
    let ranges = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(','));
    ranges.filter_map(|range| range.split(';').next()).any(|name| name.trim().eq_ignore_ascii_case("text/event-stream"))
}

struct Follow {
    core: Core,
    caller: Caller,
    seen: Seen,
    ready: VecDeque<(String, EventView)>,
}

impl Follow {
    /// Waits for the next event. Ends when the caller may no longer see it, or it cannot be read: who follows comes back.
    async fn next(mut self) -> Option<(std::result::Result<Event, axum::Error>, Self)> {
        loop {
            if let Some((id, view)) = self.ready.pop_front() {
                let event = Event::default().id(id).event(view.event_type.as_str()).json_data(&view);
                return Some((event, self));
            }
            if !self.core.may_follow(&self.caller).await {
                return None;
            }
            let (events, seen) = self.core.events_after(&self.caller, self.seen, ROWS).await.ok()?;
            let idle = events.is_empty();
            self.seen = seen;
            self.ready.extend(events);
            if idle {
                tokio::time::sleep(LOOK).await;
            }
        }
    }
}
