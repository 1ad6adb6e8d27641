//! Runs one session with an SMSC: pipelined requests and their responses (SMPP 3.4 §2).
//!
//! This is not a client library's because outcomes must be known exactly and secrets must not be logged. The existing library (rusmppc
//! 0.4) logs every PDU at debug level, including bind passwords; it cannot distinguish a request that was never written from one whose
//! response was lost; it ends the session at the first PDU that is longer than the specification allows, which the SMSC then delivers
//! again and again; and it makes a system call for each PDU.
//!
//! Requests are written into one buffer that a single writer takes whole, so that many share a system call. What is in the buffer when
//! the session ends has not been sent; what the writer took may have been.

use std::collections::HashMap;
use std::fmt::Debug;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::yield_now;
use tokio::time::{Instant, timeout, timeout_at};

use crate::silence::Silence;
use crate::status;
use crate::wire::{self, DeliverSm, Header, id};

/// Most deliveries in flight in a session; more are deferred.
pub(crate) const DELIVERIES: usize = 1_000;
/// Sequence numbers go from 1 to this (§5.1.4).
const SEQUENCES: u64 = 0x7FFF_FFFF;
/// The reader's buffer grows in steps of this many octets.
const READ: usize = 16 * 1024;
/// A broken connection can go unnoticed this long: what was written in that time may not have arrived.
const DOUBT: Duration = Duration::from_secs(5);
/// Most octets of unsent responses: an SMSC that keeps sending requests without reading responses is disconnected.
const UNSENT: usize = 1024 * 1024;
/// Why a session ended that the SMSC ended.
const UNBOUND: &str = "the SMSC ended the session (unbind)";
/// Longest wait for responses after the SMSC's unbind.
const UNBINDING: Duration = Duration::from_secs(5);
/// Longest wait for a response after its timeout.
const LATEST: Duration = Duration::from_secs(600);
/// Longest time to close the connection.
const FAREWELL: Duration = Duration::from_secs(1);

/// The connection.
pub(crate) trait Line: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

/// Hands the response to a delivery, with this status, to the writer. `None` if the session has ended.
pub(crate) type Respond = Box<dyn FnOnce(u32) -> Option<QueuedResponse> + Send>;

/// The work on a delivery.
pub(crate) type Taking = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Receives deliveries of the SMSC.
pub(crate) trait Inbox: Debug + Send + Sync {
    /// Stores a delivery that came over `session`, and responds. Called in the order of arrival; the work on several runs concurrently.
    fn take(self: Arc<Self>, session: &Arc<Session>, delivery: DeliverSm, respond: Respond) -> Taking;
}

/// Why a request has no response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum RequestError {
    /// It has not been sent.
    NotSent(String),
    /// It may have been sent.
    NoResponse(String),
}

/// A response.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    /// The command it responds to, with the response bit.
    pub(crate) id: u32,
    pub(crate) status: u32,
    pub(crate) message_id: Option<String>,
}

#[derive(Debug)]
struct SessionEnd {
    why: String,
    /// The response that is still to be sent.
    farewell: Option<Header>,
}

impl SessionEnd {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), farewell: None }
    }
}

/// The SMSC's unbind, which is answered when nothing waits for a response, or when `until` is reached.
struct Unbinding {
    answer: Header,
    until: Instant,
}

/// A response queued for the writer.
#[derive(Debug)]
pub(crate) struct QueuedResponse {
    /// Its number, from 1.
    number: u64,
    at: Instant,
}

/// A caller that waits for a response.
#[derive(Debug)]
struct Waiter {
    order: u64,
    tell: oneshot::Sender<Result<Reply, RequestError>>,
}

#[derive(Debug, Default)]
struct Outbox {
    buffer: Vec<u8>,
    /// The next request's number; it never wraps.
    next: u64,
    /// Requests below this number were written.
    taken: u64,
    waiting: HashMap<u32, Waiter>,
    /// Number of responses queued for the writer.
    responses_queued: u64,
    /// Number of those written.
    responses_written: u64,
    /// Octets of responses in the buffer. The window bounds those of requests.
    unsent_octets: usize,
    /// Why the session ended, and when.
    ended: Option<(String, Instant)>,
}

impl Outbox {
    /// Moves the buffer into `chunk` for the writer, and returns how many responses there have been.
    fn take(&mut self, chunk: &mut Vec<u8>) -> u64 {
        chunk.clear();
        std::mem::swap(&mut self.buffer, chunk);
        self.taken = self.next;
        self.unsent_octets = 0;
        self.responses_queued
    }
}

/// One session, shared by senders, its reader and its writer.
#[derive(Debug)]
pub(crate) struct Session {
    outbox: Mutex<Outbox>,
    wake: Notify,
    over: Notify,
    /// Whether the SMSC has sent an unbind. From then on no request is sent; set with `outbox` locked, so that none slips through.
    leaving: AtomicBool,
    /// One permit for each message in flight.
    pub(crate) window: Semaphore,
    /// One permit for each delivery in flight.
    deliveries: Arc<Semaphore>,
    limit: Duration,
}

impl Session {
    /// A session with at most `window` messages in flight, whose responses must arrive within `limit`.
    pub(crate) fn new(window: usize, limit: Duration) -> Self {
        Self {
            outbox: Mutex::default(),
            wake: Notify::new(),
            over: Notify::new(),
            leaving: AtomicBool::new(false),
            window: Semaphore::new(window),
            deliveries: Arc::new(Semaphore::new(DELIVERIES)),
            limit,
        }
    }

    /// Whether the session has ended and this response of ours, if it was queued at all, may not have reached the SMSC.
    pub(crate) fn may_have_lost(&self, answer: Option<&QueuedResponse>) -> bool {
        let outbox = self.outbox.lock();
        let Some((_, ended)) = &outbox.ended else { return false };
        answer.is_none_or(|answer| answer.number > outbox.responses_written || ended.duration_since(answer.at) < DOUBT)
    }

    /// Whether the SMSC has sent an unbind.
    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Sends what `write` writes with a new sequence number, and waits for the response.
    pub(crate) async fn request(self: &Arc<Self>, write: impl FnOnce(&mut Vec<u8>, u32)) -> Result<Reply, RequestError> {
        self.begin(write)?.response().await
    }

    /// Queues what `write` writes with a new sequence number for the writer.
    pub(crate) fn begin(self: &Arc<Self>, write: impl FnOnce(&mut Vec<u8>, u32)) -> Result<Request, RequestError> {
        let mut outbox = self.outbox.lock();
        if let Some((why, _)) = &outbox.ended {
            return Err(RequestError::NotSent(why.clone()));
        }
        if self.is_leaving() {
            return Err(RequestError::NotSent(UNBOUND.to_owned()));
        }
        let order = outbox.next;
        outbox.next += 1;
        let sequence = (order % SEQUENCES) as u32 + 1;
        write(&mut outbox.buffer, sequence);
        let (tell, told) = oneshot::channel();
        outbox.waiting.insert(sequence, Waiter { order, tell });
        drop(outbox);
        self.wake.notify_one();
        Ok(Request { session: Arc::clone(self), sequence, order, told })
    }

    /// The error of a request without a response in time.
    fn no_response(&self, order: u64) -> RequestError {
        let silence = format!("the SMSC did not respond within {} s", self.limit.as_secs());
        let mut outbox = self.outbox.lock();
        if outbox.taken > order {
            return RequestError::NoResponse(silence);
        }
        // The connection is stuck. Ending the session under the same lock prevents the request from being sent later.
        self.end_locked(&mut outbox, "the SMSC no longer reads");
        RequestError::NotSent(silence)
    }

    /// Queues a response for the writer, unless the session has ended.
    pub(crate) fn respond(&self, write: impl FnOnce(&mut Vec<u8>)) -> Option<QueuedResponse> {
        let mut outbox = self.outbox.lock();
        if outbox.ended.is_some() {
            return None;
        }
        let before = outbox.buffer.len();
        write(&mut outbox.buffer);
        outbox.unsent_octets += outbox.buffer.len() - before;
        if outbox.unsent_octets > UNSENT {
            self.end_locked(&mut outbox, "the SMSC does not read responses");
            return None;
        }
        outbox.responses_queued += 1;
        let handed = QueuedResponse { number: outbox.responses_queued, at: Instant::now() };
        drop(outbox);
        self.wake.notify_one();
        Some(handed)
    }

    /// Ends the session, and with it all waiting requests.
    pub(crate) fn end(&self, why: &str) {
        self.end_locked(&mut self.outbox.lock(), why);
    }

    fn end_locked(&self, outbox: &mut Outbox, why: &str) {
        if outbox.ended.is_some() {
            return;
        }
        outbox.ended = Some((why.to_owned(), Instant::now()));
        let taken = outbox.taken;
        for (_, waiter) in outbox.waiting.drain() {
            let fault = if waiter.order < taken { RequestError::NoResponse(why.to_owned()) } else { RequestError::NotSent(why.to_owned()) };
            // The caller may have stopped waiting.
            waiter.tell.send(Err(fault)).ok();
        }
        outbox.buffer = Vec::new();
        self.window.close();
        self.over.notify_one();
    }

    /// Waits for what is in flight, and unbinds.
    pub(crate) async fn unbind(self: &Arc<Self>, window: usize) {
        let quiet = async {
            let sent = self.window.acquire_many(window as u32).await;
            (sent, self.deliveries.acquire_many(DELIVERIES as u32).await)
        };
        let _quiet = timeout(self.limit, quiet).await;
        // A message that still waits for the window must not follow the unbind.
        self.window.close();
        // The session ends in any case.
        self.request(|out, sequence| wire::bare(out, Header { id: id::UNBIND, status: 0, sequence })).await.ok();
    }

    /// Tests the connection.
    pub(crate) async fn enquire(self: &Arc<Self>) -> Result<Reply, RequestError> {
        self.request(|out, sequence| wire::bare(out, Header { id: id::ENQUIRE_LINK, status: 0, sequence })).await
    }

    /// Reads and writes until the session ends, and returns why it did. Deliveries go to `inbox`; without one they are deferred.
    pub(crate) async fn run(self: &Arc<Self>, line: Box<dyn Line>, inbox: Option<&Arc<dyn Inbox>>, enquire: Duration) -> String {
        let (mut from, mut to) = split(line);
        let over = tokio::select! {
            over = self.read(&mut from, inbox, enquire) => over,
            why = self.drain(&mut to) => SessionEnd::because(why),
            why = self.ended() => SessionEnd::because(why),
        };
        self.end(&over.why);
        let farewell = async {
            if let Some(header) = over.farewell {
                let mut last = Vec::new();
                wire::bare(&mut last, header);
                to.write_all(&last).await?;
            }
            to.shutdown().await
        };
        // The connection is dropped either way.
        timeout(FAREWELL, farewell).await.ok();
        over.why
    }

    /// Waits until the session is ended from elsewhere, and returns why.
    async fn ended(&self) -> String {
        self.over.notified().await;
        self.outbox.lock().ended.as_ref().map(|(why, _)| why.clone()).unwrap_or_default()
    }

    /// The writer.
    async fn drain(&self, to: &mut (impl AsyncWrite + Unpin)) -> String {
        let mut chunk = Vec::new();
        loop {
            let responses = self.outbox.lock().take(&mut chunk);
            if chunk.is_empty() {
                self.wake.notified().await;
                // Others that are ready put their requests into the buffer first, so that one system call takes them too.
                yield_now().await;
                continue;
            }
            let write = async {
                to.write_all(&chunk).await?;
                to.flush().await
            };
            match timeout(self.limit, write).await {
                Ok(Ok(())) => self.outbox.lock().responses_written = responses,
                Ok(Err(error)) => return format!("the connection broke: {error}"),
                Err(_) => return "the SMSC no longer reads".to_owned(),
            }
        }
    }

    /// The reader. Tests the connection after `enquire` without a PDU. After the SMSC's unbind it waits for the responses that are due: a
    /// message whose response is not read would be sent again.
    async fn read(self: &Arc<Self>, from: &mut (impl AsyncRead + Unpin), inbox: Option<&Arc<dyn Inbox>>, enquire: Duration) -> SessionEnd {
        let mut buffer = Vec::with_capacity(READ);
        let mut silence = Silence::new(enquire, self.limit);
        let mut unbinding = None;
        loop {
            if let Some(over) = unbinding.as_ref().and_then(|unbinding| self.unbound(unbinding)) {
                return over;
            }
            let until = unbinding.as_ref().map_or_else(|| silence.until(), |unbinding: &Unbinding| unbinding.until);
            buffer.reserve(READ);
            match timeout_at(until, from.read_buf(&mut buffer)).await {
                Ok(Ok(0)) => return SessionEnd::because("the SMSC closed the connection"),
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return SessionEnd::because(format!("the connection broke: {error}")),
                Err(_) if unbinding.is_some() => continue,
                Err(_) => {
                    if let Some(why) = silence.lasts() {
                        return SessionEnd::because(why);
                    }
                    self.test();
                    continue;
                }
            }
            let mut rest = &buffer[..];
            loop {
                match wire::frame(rest) {
                    Ok(Some(frame)) => {
                        unbinding = unbinding.or(self.on_pdu(frame.header, frame.body, inbox));
                        rest = frame.rest;
                    }
                    Ok(None) => break,
                    Err(wire::Garbage) => return SessionEnd::because("the SMSC sent something that is not SMPP"),
                }
            }
            let read = buffer.len() - rest.len();
            buffer.drain(..read);
            silence.heard(read > 0, !buffer.is_empty());
        }
    }

    /// Sends an enquire_link without waiting for its response: any PDU will do.
    fn test(&self) {
        let mut outbox = self.outbox.lock();
        let sequence = (outbox.next % SEQUENCES) as u32 + 1;
        outbox.next += 1;
        wire::bare(&mut outbox.buffer, Header { id: id::ENQUIRE_LINK, status: 0, sequence });
        drop(outbox);
        self.wake.notify_one();
    }

    /// Sends no further requests, because the SMSC wants to end the session.
    fn leave(&self, answer: Header) -> Unbinding {
        let _locked = self.outbox.lock();
        self.leaving.store(true, Ordering::Relaxed);
        Unbinding { answer, until: Instant::now() + self.limit.min(UNBINDING) }
    }

    /// Ends the session after the SMSC's unbind, unless responses are still due.
    fn unbound(&self, unbinding: &Unbinding) -> Option<SessionEnd> {
        let over = self.outbox.lock().waiting.is_empty() || Instant::now() >= unbinding.until;
        over.then(|| SessionEnd { why: UNBOUND.to_owned(), farewell: Some(unbinding.answer) })
    }

    /// Handles one PDU; returns the SMSC's unbind.
    fn on_pdu(self: &Arc<Self>, header: Header, body: &[u8], inbox: Option<&Arc<dyn Inbox>>) -> Option<Unbinding> {
        let answer = Header { id: header.id | id::ANSWER, status: status::OK, ..header };
        match header.id {
            command if command & id::ANSWER != 0 => self.on_response(header, body),
            id::DELIVER_SM | id::DATA_SM => self.deliver(header, body, inbox),
            id::ENQUIRE_LINK => drop(self.respond(|out| wire::bare(out, answer))),
            id::UNBIND => return Some(self.leave(answer)),
            id::OUTBIND | id::ALERT_NOTIFICATION => {}
            _ => drop(self.respond(|out| wire::bare(out, Header { id: id::GENERIC_NACK, status: status::INVALID_COMMAND, ..header }))),
        }
        None
    }

    /// Passes a response to its request; drops it if the request is gone.
    fn on_response(&self, header: Header, body: &[u8]) {
        let Some(waiter) = self.outbox.lock().waiting.remove(&header.sequence) else { return };
        let message_id = if header.id == id::SUBMIT_SM | id::ANSWER { wire::message_id(body) } else { None };
        waiter.tell.send(Ok(Reply { id: header.id, status: header.status, message_id })).ok();
    }

    /// Accepts a delivery, and responds when it is stored, or when it could not be.
    fn deliver(self: &Arc<Self>, header: Header, body: &[u8], inbox: Option<&Arc<dyn Inbox>>) {
        let answer = move |session: &Self, status| {
            session.respond(|out| wire::deliver_response(out, Header { id: header.id | id::ANSWER, status, sequence: header.sequence }))
        };
        let refuse = |status| {
            answer(self, status);
        };
        let Some(inbox) = inbox else { return refuse(status::NOT_NOW) };
        let Some(delivery) = wire::deliver_sm(header.id, body) else { return refuse(status::NEVER) };
        let Ok(permit) = Arc::clone(&self.deliveries).try_acquire_owned() else { return refuse(status::QUEUE_FULL) };
        let session = Arc::clone(self);
        let taking = Arc::clone(inbox).take(self, delivery, Box::new(move |status| answer(&session, status)));
        tokio::spawn(async move {
            taking.await;
            drop(permit);
        });
    }
}

/// A request without a response yet. Dropping it ends the wait, not the request.
#[derive(Debug)]
pub(crate) struct Request {
    session: Arc<Session>,
    sequence: u32,
    order: u64,
    told: oneshot::Receiver<Result<Reply, RequestError>>,
}

impl Request {
    /// Waits for the response as long as the session allows.
    pub(crate) async fn response(&mut self) -> Result<Reply, RequestError> {
        match timeout(self.session.limit, &mut self.told).await {
            Ok(told) => told.unwrap_or_else(|_| Err(RequestError::NoResponse("the session ended".to_owned()))),
            Err(_) => Err(self.session.no_response(self.order)),
        }
    }

    /// Whether the response can still come: [`Self::response`] timed out, and the session goes on.
    pub(crate) fn is_open(&self) -> bool {
        !self.told.is_terminated()
    }

    /// Waits for the response of an open request while the session lasts, at most [`LATEST`].
    pub(crate) async fn late_response(mut self) -> Option<Reply> {
        timeout(LATEST, &mut self.told).await.ok()?.ok()?.ok()
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        let mut outbox = self.session.outbox.lock();
        if outbox.waiting.get(&self.sequence).is_some_and(|waiter| waiter.order == self.order) {
            outbox.waiting.remove(&self.sequence);
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;
