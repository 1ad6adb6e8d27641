//! Events as they happen: the stream of server-sent events of a world (WHATWG HTML, section "Server-sent events").

use futures::{Stream, StreamExt as _, stream};
use reqwest::{Method, StatusCode, header};
use serde_json::Value;
use std::collections::VecDeque;
use std::time::Duration;

use super::{CallError, World};

/// How soon a stream that broke off is opened again.
const PAUSE: Duration = Duration::from_secs(2);

/// One event of an environment, with what its stream goes on from.
#[derive(Clone, Debug, Default)]
struct Frame {
    id: String,
    data: String,
}

/// Takes the whole frames off the front of `text`; comments are left out. A frame with only an id moves on where the stream is resumed.
fn frames(text: &mut String) -> VecDeque<Frame> {
    let mut found = VecDeque::new();
    while let Some(end) = text.find("\n\n") {
        let mut frame = Frame::default();
        for line in text[..end].lines() {
            match line.split_once(':') {
                Some(("id", value)) => value.trim_start().clone_into(&mut frame.id),
                Some(("data", value)) => frame.data.push_str(value.trim_start()),
                _ => {}
            }
        }
        text.drain(..end + 2);
        if !frame.id.is_empty() || !frame.data.is_empty() {
            found.push_back(frame);
        }
    }
    found
}

/// Where a stream stands.
struct Following {
    world: World,
    query: Vec<(&'static str, String)>,
    /// Where to resume: the newest id that was seen.
    last: Option<String>,
    /// Whether it was open before.
    opened: bool,
    open: Option<futures::stream::BoxStream<'static, reqwest::Result<Vec<u8>>>>,
    bytes: Vec<u8>,
    text: String,
    ready: VecDeque<Frame>,
}

impl World {
    /// The environment's events from now on, one JSON object each. A stream that breaks off is opened again where it ended; a refusal ends it.
    pub(crate) fn follow(&self, query: Vec<(&'static str, String)>) -> impl Stream<Item = Result<Value, CallError>> + Send + use<> {
        let world = self.clone();
        let (bytes, text, ready) = (Vec::new(), String::new(), VecDeque::new());
        let state = Following { world, query, last: None, opened: false, open: None, bytes, text, ready };
        stream::unfold(Some(state), |state| async move {
            let mut state = state?;
            match state.next().await {
                Ok(event) => Some((Ok(event), Some(state))),
                Err(error) => Some((Err(error), None)),
            }
        })
    }
}

impl Following {
    async fn next(&mut self) -> Result<Value, CallError> {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                self.last = Some(frame.id);
                if let Ok(event) = serde_json::from_str(&frame.data) {
                    return Ok(event);
                }
                continue;
            }
            let Some(open) = &mut self.open else {
                self.open().await?;
                continue;
            };
            match open.next().await {
                Some(Ok(piece)) => self.take(&piece),
                broken => {
                    self.open = None;
                    (self.bytes, self.text) = (Vec::new(), String::new());
                    if let Some(Err(error)) = broken {
                        tracing::debug!(%error, "the stream was interrupted");
                    }
                    eprintln!("nuncio: the server closed the stream; resuming where it ended");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Pieces end anywhere, also within a character.
    fn take(&mut self, piece: &[u8]) {
        self.bytes.extend_from_slice(piece);
        let whole = match std::str::from_utf8(&self.bytes) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text: Vec<u8> = self.bytes.drain(..whole).collect();
        self.text.push_str(&String::from_utf8_lossy(&text));
        self.ready = frames(&mut self.text);
    }

    /// Opens the stream. The first time a server that cannot be reached is an error; afterwards it is waited for, also while it is busy.
    async fn open(&mut self) -> Result<(), CallError> {
        loop {
            let query: Vec<(&str, &str)> = self.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
            let mut request =
                self.world.request(Method::GET, self.world.url("/v1/events", &query)).header(header::ACCEPT, "text/event-stream");
            if let Some(last) = &self.last {
                request = request.header("Last-Event-ID", last);
            }
            match request.send().await {
                Ok(response) if response.status().is_success() => {
                    self.open = Some(response.bytes_stream().map(|piece| piece.map(|bytes| bytes.to_vec())).boxed());
                    self.opened = true;
                    return Ok(());
                }
                Ok(response) if !self.opened || is_final(response.status()) => {
                    return Err(CallError::refused(response.status(), &response.text().await.unwrap_or_default()));
                }
                Err(error) if !self.opened => return Err(self.world.unreachable(&error)),
                _ => tokio::time::sleep(PAUSE).await,
            }
        }
    }
}

/// Whether a request with this answer would be refused again.
fn is_final(status: StatusCode) -> bool {
    status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_taken_when_it_is_whole() {
        let mut text = ": hello\n\nid: 1\nevent: message.sent\ndata: {\"a\":1}\n\nid: 2\ndata: {".to_owned();
        let taken = frames(&mut text);
        assert_eq!((taken.len(), taken[0].id.as_str(), taken[0].data.as_str()), (1, "1", "{\"a\":1}"));
        text.push_str("}\n\n");
        assert_eq!(frames(&mut text)[0].data, "{}");
        text.push_str("id: 3\n\n: hello\n\n");
        let taken = frames(&mut text);
        assert_eq!((taken.len(), taken[0].id.as_str(), taken[0].data.as_str()), (1, "3", ""), "an id alone counts");
        assert!(text.is_empty());
    }
}
