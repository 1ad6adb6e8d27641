//! Wraps client connections: writes must make progress, and unread input is drained before closing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

/// How long to drain input after the last response: closing at once would discard the response in transit (RFC 9112 §9.6).
const LINGER: Duration = Duration::from_secs(3);
/// Bytes to drain at a time.
const DISCARDED: usize = 8 * 1024;

/// A connection whose writes fail if the client accepts nothing for `patience`.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    patience: Duration,
    stuck: Option<Pin<Box<Sleep>>>,
    /// Whether the client may still be sending when the connection closes.
    lingers: Arc<AtomicBool>,
    linger: Option<Pin<Box<Sleep>>>,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream, patience: Duration, lingers: Arc<AtomicBool>) -> Self {
        Self { stream, patience, stuck: None, lingers, linger: None }
    }

    /// Returns the result of a write, or fails if it has been pending for too long.
    fn watch<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let patience = self.patience;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience)));
        ready!(stuck.as_mut().poll(cx));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client stopped reading")))
    }

    /// Reads what the client still sends, until it ends or the time is up.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let linger = self.linger.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + LINGER)));
        if linger.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        // Bounded per call, so that a fast sender does not block the thread.
        for _ in 0..64 {
            let mut bytes = [0; DISCARDED];
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                return Poll::Ready(());
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl AsyncRead for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.watch(cx, written)
    }

    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, bytes);
        this.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.linger.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        if this.lingers.load(Ordering::Relaxed) {
            ready!(this.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
