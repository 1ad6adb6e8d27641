//! The event log as server-sent events, read frame by frame.

use std::time::Duration;

use axum::body::Body;
use http_body_util::BodyExt as _;
use nuncio_domain::Environment;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

/// Maximum wait for a frame, reached only by a failing test.
const PATIENCE: Duration = Duration::from_secs(10);

/// An event of the stream.
#[derive(Clone, PartialEq, Debug, Default)]
struct Frame {
    id: String,
    event: String,
    data: Value,
}

/// A stream being read.
struct Frames {
    body: Body,
    read: String,
}

impl Frames {
    /// Opens the stream of a key, after the event with this id or from now on.
    async fn open(app: &TestApp, key: &str, after: Option<&str>) -> Self {
        Self::open_at(app, key, after, "/v1/events").await
    }

    /// Opens a stream at a path with a query.
    async fn open_at(app: &TestApp, key: &str, after: Option<&str>, path: &str) -> Self {
        let auth = format!("Bearer {key}");
        let mut headers = vec![("authorization", auth.as_str()), ("accept", "text/event-stream")];
        headers.extend(after.map(|id| ("last-event-id", id)));
        let answer = app.open("GET", path, &headers, Vec::new()).await;
        assert_eq!((answer.status().as_u16(), &answer.headers()["content-type"]), (200, &"text/event-stream".parse().expect("a value")));
        Self { body: answer.into_body(), read: String::new() }
    }

    /// Returns the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if !frame.data.is_null() {
                return Some(frame);
            }
        }
    }

    /// Returns the next frame, which can be an id alone.
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some((block, rest)) = self.read.split_once("\n\n") {
                let frame = parse(block);
                self.read = rest.to_owned();
                return Some(frame);
            }
            let piece = tokio::time::timeout(PATIENCE, self.body.frame()).await.expect("the stream goes on or ends");
            let Some(piece) = piece else {
                assert_eq!(self.read, "", "an event that was cut off");
                return None;
            };
            self.read += std::str::from_utf8(&piece.expect("a whole piece").into_data().expect("data")).expect("text");
        }
    }

    async fn take(&mut self, count: usize) -> Vec<Frame> {
        let mut frames = Vec::new();
        for _ in 0..count {
            frames.push(self.next().await.expect("the stream goes on"));
        }
        frames
    }
}

fn parse(block: &str) -> Frame {
    let mut frame = Frame::default();
    for line in block.lines() {
        match line.split_once(':').expect("a field") {
            ("id", id) => frame.id = id.trim().to_owned(),
            ("event", name) => frame.event = name.trim().to_owned(),
            ("data", data) => frame.data = serde_json::from_str(data).expect("JSON on one line"),
            (field, _) => panic!("{field:?} is no field of an event"),
        }
    }
    frame
}

async fn send(app: &TestApp) {
    app.send_message(json!({"to": "+34600111222", "text": "two\n\nlines"})).await;
    app.drain().await;
}

// holds: events.stream
#[tokio::test]
async fn events_are_streamed_as_they_are_listed_and_resumed() {
    for app in TestApp::on_each().await {
        send(&app).await; // earlier: not sent
        let mut stream = Frames::open(&app, &app.test_key, None).await;
        send(&app).await;
        let frames = stream.take(4).await;
        let names: Vec<_> = frames.iter().map(|frame| frame.event.as_str()).collect();
        assert_eq!(names, ["message.queued", "message.sending", "message.sent", "message.delivered"]);
        let listed = app.get("/v1/events?limit=4").await.expect(200).json();
        let listed: Vec<_> = listed["items"].as_array().expect("items").iter().rev().cloned().collect();
        assert_eq!(frames.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>(), listed);

        send(&app).await;
        let all: Vec<_> = frames.into_iter().chain(stream.take(4).await).collect();
        for (n, frame) in all.iter().enumerate() {
            let mut resumed = Frames::open(&app, &app.test_key, Some(&frame.id)).await;
            assert_eq!(resumed.take(all.len() - n - 1).await, all[n + 1..], "after {n}");
        }
        let auth = format!("Bearer {}", app.test_key);
        for wrong in ["nonsense", listed[0]["id"].as_str().expect("an id")] {
            let headers = [("authorization", auth.as_str()), ("accept", "text/event-stream"), ("last-event-id", wrong)];
            let answer = app.send("GET", "/v1/events", &headers, None).await.expect(400).json();
            assert_eq!(answer["details"]["errors"][0]["path"], "header.Last-Event-ID");
        }
        // The other environment's stream rejects these ids.
        let live = format!("Bearer {}", app.live_key);
        let headers = [("authorization", live.as_str()), ("accept", "text/event-stream"), ("last-event-id", all[0].id.as_str())];
        app.send("GET", "/v1/events", &headers, None).await.expect(400);
    }
}

// holds: events.stream, events.filters
#[tokio::test]
async fn a_stream_takes_the_filters_of_the_list() {
    for app in TestApp::on_each().await {
        let path = "/v1/events?type=message.queued&type=message.delivered";
        let mut stream = Frames::open_at(&app, &app.test_key, None, path).await;
        send(&app).await;
        send(&app).await;
        let frames = stream.take(4).await;
        let names: Vec<_> = frames.iter().map(|frame| frame.event.as_str()).collect();
        assert_eq!(names, ["message.queued", "message.delivered", "message.queued", "message.delivered"]);
        let mut all = Frames::open(&app, &app.test_key, Some(&frames[1].id)).await;
        assert_eq!(all.take(4).await[0], frames[2], "an id holds with other filters, too");
        let of_one = format!("/v1/events?resourceId={}", frames[2].data["data"]["message"]["id"].as_str().expect("an id"));
        let mut of_one = Frames::open_at(&app, &app.test_key, Some(&frames[0].id), &of_one).await;
        assert_eq!(of_one.next().await.expect("an event"), frames[2]);
    }
}

// holds: events.stream, events.filters
#[tokio::test]
async fn a_stream_begins_at_a_time() {
    for app in TestApp::on_each().await {
        send(&app).await;
        app.clock.advance(Duration::from_secs(1));
        let since = app.node.core.ids().clock.now();
        send(&app).await;
        let path = format!("/v1/events?since={since}");
        let mut stream = Frames::open_at(&app, &app.test_key, None, &path).await;
        let start = stream.frame().await.expect("where it begins");
        let frames = stream.take(4).await;
        let listed = app.get(&path).await.expect(200).json();
        let listed: Vec<_> = listed["items"].as_array().expect("items").iter().rev().cloned().collect();
        assert_eq!(frames.iter().map(|frame| frame.data.clone()).collect::<Vec<_>>(), listed);
        for (id, rest) in [(&start.id, &frames[..]), (&frames[1].id, &frames[2..])] {
            let mut resumed = Frames::open_at(&app, &app.test_key, Some(id), &path).await;
            assert_eq!(resumed.take(rest.len()).await, rest);
        }
        send(&app).await;
        assert_eq!(stream.next().await.expect("an event").event, "message.queued", "it goes on");
    }
}

#[tokio::test]
async fn a_stream_refuses_what_pages_take() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    let headers = [("authorization", auth.as_str()), ("accept", "text/event-stream")];
    let query = "since=yesterday&until=2026-01-01T00:00:00Z&limit=7&cursor=x";
    let answer = app.send("GET", &format!("/v1/events?{query}"), &headers, None).await.expect(400).json();
    let paths: Vec<_> = answer["details"]["errors"].as_array().expect("a list").iter().map(|fault| fault["path"].clone()).collect();
    assert_eq!(paths, ["query.since", "query.until", "query.limit", "query.cursor"]);
}

// holds: events.stream, events.filters
#[tokio::test]
async fn a_stream_moves_on_where_nothing_matches() {
    for app in TestApp::on_each().await {
        let mut stream = Frames::open(&app, &app.test_key, None).await;
        send(&app).await;
        let seen = stream.take(4).await;
        let mut filtered = Frames::open_at(&app, &app.test_key, Some(&seen[0].id), "/v1/events?type=contact.merged").await;
        let moved = filtered.frame().await.expect("the stream goes on");
        assert_eq!((moved.event.as_str(), &moved.data), ("", &Value::Null), "clients skip an event that is only an id");
        let mut resumed = Frames::open(&app, &app.test_key, Some(&moved.id)).await;
        send(&app).await;
        let next = resumed.next().await.expect("an event");
        assert_eq!(next, stream.next().await.expect("an event"), "nothing from before");
    }
}

// holds: events.stream
#[tokio::test]
async fn a_stream_that_breaks_before_its_first_event_is_resumed() {
    for app in TestApp::on_each().await {
        let mut stream = Frames::open(&app, &app.test_key, None).await;
        let start = stream.frame().await.expect("where it begins");
        drop(stream);
        send(&app).await;
        let mut resumed = Frames::open(&app, &app.test_key, Some(&start.id)).await;
        assert_eq!(resumed.next().await.expect("an event").event, "message.queued");
    }
}

// holds: events.stream
#[tokio::test]
async fn a_revoked_key_ends_its_stream() {
    for app in TestApp::on_each().await {
        let [here, elsewhere] = [app.key(Environment::Test, &["messages:read"]).await, app.key(Environment::Test, &[]).await];
        let mut stream = Frames::open(&app, &here, None).await;
        let id = app.node.core.keys().authenticate(&here).await.expect("a caller").key;
        app.node.core.keys().revoke(app.tenant(), id).await.expect("revoked");
        assert_eq!(stream.next().await, None, "at once, where it is revoked");
        app.send("GET", "/v1/events", &[("authorization", &format!("Bearer {here}"))], None).await.expect(401);

        // Another node stores it: this node checks the database once a second.
        let mut stream = Frames::open(&app, &elsewhere, None).await;
        let id = app.node.core.keys().authenticate(&elsewhere).await.expect("a caller").key;
        let mut tx = app.store().begin().await.expect("a transaction");
        assert!(tx.revoke_key(app.tenant(), id, app.node.core.ids().clock.now()).await.expect("revoked"));
        tx.commit().await.expect("committed");
        send(&app).await;
        assert_eq!(stream.take(4).await[3].event, "message.delivered");
        app.clock.advance(Duration::from_secs(1));
        app.node.tick().await.expect("a beat");
        assert_eq!(stream.next().await, None);
    }
}

// holds: events.stream
#[tokio::test]
async fn streams_end_when_the_server_stops() {
    let app = TestApp::start().await;
    let mut stream = Frames::open(&app, &app.test_key, None).await;
    send(&app).await;
    stream.take(4).await;
    app.node.stop(Duration::ZERO).await;
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_client_that_prefers_json_gets_no_stream() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.test_key);
    for accept in ["text/event-stream;q=0, */*", "text/event-stream;q=0.5, application/json", "*/*"] {
        let headers = [("authorization", auth.as_str()), ("accept", accept)];
        assert!(app.send("GET", "/v1/events", &headers, None).await.expect(200).json()["items"].is_array(), "{accept}");
    }
}
