//! Wraps request and response bodies.
//!
//! Every request body is read through [`Intake`]: each chunk is counted by the [budget](crate::budget) before it is passed on, and a client
//! below the minimum rate is cut off. Every response is sent through [`Answer`], which holds the lease.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use nuncio_domain::{Error, ErrorCode};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep};

use crate::budget::{COPIES, Lease, no_room};

/// Maximum number of bytes drained of an unread body, so that the connection can be reused.
const DRAINED_BYTES: u64 = 64 * 1024;
/// Timeout for draining.
const DRAIN: Duration = Duration::from_millis(500);

/// Minimum rate at which a client must send a body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pace {
    /// Time allowed in addition to that for the bytes.
    pub grace: Duration,
    /// Bytes per second; 0 for no limit.
    pub bytes_per_second: u64,
}

impl Default for Pace {
    fn default() -> Self {
        Self { grace: Duration::from_secs(10), bytes_per_second: 16 * 1024 }
    }
}

impl Pace {
    /// Returns the time allowed for `bytes`; `None` for no limit.
    fn allows(self, bytes: u64) -> Option<Duration> {
        let millis = bytes.saturating_mul(1_000).checked_div(self.bytes_per_second)?;
        Some(self.grace + Duration::from_millis(millis))
    }
}

/// Why reading a body was aborted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// No memory.
    NoRoom,
    /// Below the minimum rate.
    TooSlow,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoRoom => "there is no memory for the body",
            Self::TooSlow => "the body arrived too slowly",
        })
    }
}

impl std::error::Error for Refused {}

/// Returns the error of a body that could not be read.
pub(crate) fn unread(error: axum::Error) -> Error {
    let mut causes = std::iter::successors(Some(&error as &(dyn std::error::Error + 'static)), |cause| cause.source());
    match causes.find_map(|cause| cause.downcast_ref::<Refused>()) {
        Some(Refused::NoRoom) => no_room(),
        Some(Refused::TooSlow) => Error::new(ErrorCode::RequestTimeout, "the body arrived too slowly"),
        None => Error::new(ErrorCode::InvalidRequest, "the body ended early or was malformed").caused_by(error),
    }
}

/// The unread rest of a body.
pub(crate) type Rest = Arc<Mutex<Option<Body>>>;

/// A request body under a budget and a minimum rate.
#[derive(Debug)]
pub(crate) struct Intake {
    inner: Option<Body>,
    lease: Lease,
    pace: Pace,
    began: Option<Instant>,
    read: u64,
    late: Option<Pin<Box<Sleep>>>,
    rest: Rest,
}

impl Intake {
    /// Wraps a body; also returns where its rest is left if it is dropped early.
    pub(crate) fn new(inner: Body, lease: Lease, pace: Pace) -> (Self, Rest) {
        let rest = Rest::default();
        (Self { inner: Some(inner), lease, pace, began: None, read: 0, late: None, rest: Arc::clone(&rest) }, rest)
    }

    /// Ready once the client has fallen below the minimum rate.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let began = *self.began.get_or_insert_with(Instant::now);
        let Some(allowed) = self.pace.allows(self.read) else { return Poll::Pending };
        let late = self.late.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(began + allowed)));
        if late.deadline() != began + allowed {
            late.as_mut().reset(began + allowed);
        }
        late.as_mut().poll(cx)
    }
}

impl HttpBody for Intake {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let Some(inner) = &mut this.inner else { return Poll::Ready(None) };
        let polled = match Pin::new(inner).poll_frame(cx) {
            Poll::Pending => {
                ready!(this.poll_late(cx));
                return Poll::Ready(Some(Err(axum::Error::new(Refused::TooSlow))));
            }
            Poll::Ready(polled) => polled,
        };
        match &polled {
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                this.read += bytes as u64;
                if this.lease.grow(bytes.saturating_mul(COPIES)).is_err() {
                    return Poll::Ready(Some(Err(axum::Error::new(Refused::NoRoom))));
                }
            }
            None | Some(Err(_)) => this.inner = None,
        }
        Poll::Ready(polled)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.as_ref().map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl Drop for Intake {
    fn drop(&mut self) {
        if let Some(inner) = self.inner.take().filter(|inner| !inner.is_end_stream()) {
            *self.rest.lock() = Some(inner);
        }
    }
}

/// Drains a body if the rest is small and arrives soon; returns whether it did.
pub(crate) async fn drain(mut rest: Body) -> bool {
    if rest.size_hint().lower() > DRAINED_BYTES {
        return false;
    }
    let read = async {
        let mut bytes = 0;
        while let Some(frame) = rest.frame().await {
            let Ok(frame) = frame else { return false };
            bytes += frame.data_ref().map_or(0, Bytes::len) as u64;
            if bytes > DRAINED_BYTES {
                return false;
            }
        }
        true
    };
    tokio::time::timeout(DRAIN, read).await.unwrap_or(false)
}

/// A response body in small chunks. Holds the lease until the connection has taken the last one, when at most one chunk is buffered below.
#[derive(Debug)]
pub(crate) struct Answer {
    inner: Body,
    ready: Bytes,
    piece: usize,
    _lease: Lease,
}

impl Answer {
    pub(crate) const fn new(inner: Body, piece: usize, lease: Lease) -> Self {
        Self { inner, ready: Bytes::new(), piece, _lease: lease }
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        if this.ready.is_empty() {
            match ready!(Pin::new(&mut this.inner).poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => this.ready = data,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                end => return Poll::Ready(end),
            }
        }
        let piece = this.ready.split_to(this.piece.min(this.ready.len()));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (inner, ready) = (self.inner.size_hint(), self.ready.len() as u64);
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + ready);
        }
        hint.set_lower(inner.lower() + ready);
        hint
    }
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
