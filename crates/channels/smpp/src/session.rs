//! One session with an SMSC: requests with their answers, pipelined (SMPP 3.4 §2).
//!
//! Written here, with `wire.rs`, rather than taken from a client library, because an outcome must be known exactly and secrets must
//! not be logged. The library at hand (rusmppc 0.4) logs every PDU at debug level, binds with their passwords included; it cannot
//! tell a request that was never written from one whose answer is lost; it ends the session at the first PDU that is longer or
//! stranger than the specification allows, which the SMSC then delivers again, for ever; and it makes a system call for each PDU.
//!
//! Requests are written into one buffer that a single writer takes whole, so that many share a system call. What was in the buffer
//! when the session ended has not been sent; what the writer took may have been.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, split};
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::time::{Instant, timeout};

use crate::inbound::Inbox;
use crate::status;
use crate::wire::{self, Header, id};

/// Deliveries of a session that may be under way at once; more are put off.
pub(crate) const DELIVERIES: usize = 1_000;
/// Sequence numbers go from 1 to this (§5.1.4).
const SEQUENCES: u64 = 0x7FFF_FFFF;
/// The reader's buffer grows in steps of this many octets.
const READ: usize = 16 * 1024;
/// A line may break that long before we are told: what was written in that time may not have arrived.
const DOUBT: Duration = Duration::from_secs(5);
/// Octets of answers that may wait for the writer: an SMSC that asks on and on, and reads nothing, gets no further.
const UNREAD: usize = 1024 * 1024;
/// Longest time that closing the line may take.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the line is made of.
pub(crate) trait Line: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Line for T {}

/// Why a request has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// It has not been sent.
    NotSent(String),
    /// It may have been sent.
    Lost(String),
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    /// What it answers.
    pub(crate) id: u32,
    /// How it went.
    pub(crate) status: u32,
    /// The id of the message.
    pub(crate) message_id: Option<String>,
}

/// The end of a session.
#[derive(Debug)]
struct Over {
    why: String,
    /// What is still to be answered.
    farewell: Option<Header>,
}

impl Over {
    fn because(why: impl Into<String>) -> Self {
        Self { why: why.into(), farewell: None }
    }
}

/// An answer of ours that was handed to the writer.
#[derive(Debug)]
pub(crate) struct Handed {
    /// It is one of that many first answers.
    place: u64,
    at: Instant,
}

/// Who waits for an answer.
#[derive(Debug)]
struct Waiter {
    order: u64,
    tell: oneshot::Sender<Result<Reply, Fault>>,
}

#[derive(Debug, Default)]
struct Outbox {
    buffer: Vec<u8>,
    /// The next request's number; it never wraps.
    next: u64,
    /// Requests below this number were taken by the writer.
    taken: u64,
    waiting: HashMap<u32, Waiter>,
    /// How many answers were handed to the writer.
    answers: u64,
    /// How many of them were written.
    answered: u64,
    /// Octets of those in the buffer. What we ask is bounded by the window.
    unread: usize,
    /// Why the session ended, and when.
    ended: Option<(String, Instant)>,
}

impl Outbox {
    /// The writer takes what is to be written, and hears how many answers there were until now.
    fn take(&mut self, chunk: &mut Vec<u8>) -> u64 {
        chunk.clear();
        std::mem::swap(&mut self.buffer, chunk);
        self.taken = self.next;
        self.unread = 0;
        self.answers
    }
}

/// One session, shared by those who send, its reader and its writer.
#[derive(Debug)]
pub(crate) struct Session {
    outbox: Mutex<Outbox>,
    wake: Notify,
    over: Notify,
    /// One permit for each message under way.
    pub(crate) window: Semaphore,
    /// One permit for each delivery under way.
    deliveries: Arc<Semaphore>,
    limit: Duration,
}

impl Session {
    /// A session with that many messages at most under way, whose answers take `limit` at most.
    pub(crate) fn new(window: usize, limit: Duration) -> Self {
        Self {
            outbox: Mutex::default(),
            wake: Notify::new(),
            over: Notify::new(),
            window: Semaphore::new(window),
            deliveries: Arc::new(Semaphore::new(DELIVERIES)),
            limit,
        }
    }

    /// Whether it is over, and that answer of ours, if it was handed over at all, may not have reached the SMSC.
    pub(crate) fn may_have_lost(&self, answer: Option<&Handed>) -> bool {
        let outbox = self.outbox.lock();
        let Some((_, ended)) = &outbox.ended else { return false };
        answer.is_none_or(|answer| answer.place > outbox.answered || ended.duration_since(answer.at) < DOUBT)
    }

    /// Sends what `write` writes with a sequence number of its own, and waits for the answer.
    pub(crate) async fn request(&self, write: impl FnOnce(&mut Vec<u8>, u32)) -> Result<Reply, Fault> {
        let mut waiting = {
            let mut outbox = self.outbox.lock();
            if let Some((why, _)) = &outbox.ended {
                return Err(Fault::NotSent(why.clone()));
            }
            let order = outbox.next;
            outbox.next += 1;
            let sequence = (order % SEQUENCES) as u32 + 1;
            write(&mut outbox.buffer, sequence);
            let (tell, told) = oneshot::channel();
            outbox.waiting.insert(sequence, Waiter { order, tell });
            Waiting { session: self, sequence, order, told }
        };
        self.wake.notify_one();
        match timeout(self.limit, &mut waiting.told).await {
            Ok(told) => told.unwrap_or_else(|_| Err(Fault::Lost("the session ended".to_owned()))),
            Err(_) => Err(self.unanswered(waiting.order)),
        }
    }

    /// What it means that the request of this number has no answer in time.
    fn unanswered(&self, order: u64) -> Fault {
        let silence = format!("the SMSC did not answer within {} s", self.limit.as_secs());
        let mut outbox = self.outbox.lock();
        if outbox.taken > order {
            return Fault::Lost(silence);
        }
        // The line takes nothing any more. Ending it under the same lock keeps the request from going out after all.
        self.end_locked(&mut outbox, "the SMSC takes nothing any more");
        Fault::NotSent(silence)
    }

    /// Hands an answer to the writer, unless the session is over.
    pub(crate) fn answer(&self, write: impl FnOnce(&mut Vec<u8>)) -> Option<Handed> {
        let mut outbox = self.outbox.lock();
        if outbox.ended.is_some() {
            return None;
        }
        let before = outbox.buffer.len();
        write(&mut outbox.buffer);
        outbox.unread += outbox.buffer.len() - before;
        if outbox.unread > UNREAD {
            self.end_locked(&mut outbox, "the SMSC does not read what it is answered");
            return None;
        }
        outbox.answers += 1;
        let handed = Handed { place: outbox.answers, at: Instant::now() };
        drop(outbox);
        self.wake.notify_one();
        Some(handed)
    }

    /// Ends the session: whoever waits is told so.
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
            let fault = if waiter.order < taken { Fault::Lost(why.to_owned()) } else { Fault::NotSent(why.to_owned()) };
            // Whoever does not wait any more need not know.
            waiter.tell.send(Err(fault)).ok();
        }
        outbox.buffer = Vec::new();
        self.window.close();
        self.over.notify_one();
    }

    /// Lets what is under way come to its end, and unbinds.
    pub(crate) async fn unbind(&self, window: usize) {
        let quiet = async {
            let _sent = self.window.acquire_many(window as u32).await;
            let _taken = self.deliveries.acquire_many(DELIVERIES as u32).await;
        };
        timeout(self.limit, quiet).await.ok();
        // Gone is gone, however it answers.
        self.request(|out, sequence| wire::bare(out, Header { id: id::UNBIND, status: 0, sequence })).await.ok();
    }

    /// Tests the line.
    pub(crate) async fn enquire(&self) -> Result<Reply, Fault> {
        self.request(|out, sequence| wire::bare(out, Header { id: id::ENQUIRE_LINK, status: 0, sequence })).await
    }

    /// Reads and writes until the session is over; says why it is. Deliveries go to `inbox`; without one they are put off.
    pub(crate) async fn run(self: &Arc<Self>, line: Box<dyn Line>, inbox: Option<&Arc<Inbox>>, enquire: Duration) -> String {
        let (mut from, mut to) = split(line);
        let over = tokio::select! {
            over = self.read(&mut from, inbox, enquire) => over,
            why = self.drain(&mut to) => Over::because(why),
            why = self.ended() => Over::because(why),
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
        // Nothing depends on it: the line is dropped either way.
        timeout(FAREWELL, farewell).await.ok();
        over.why
    }

    /// Waits until somebody else ends the session, and says why.
    async fn ended(&self) -> String {
        self.over.notified().await;
        self.outbox.lock().ended.as_ref().map(|(why, _)| why.clone()).unwrap_or_default()
    }

    /// The writer.
    async fn drain(&self, to: &mut (impl AsyncWrite + Unpin)) -> String {
        let mut chunk = Vec::new();
        loop {
            let answers = self.outbox.lock().take(&mut chunk);
            if chunk.is_empty() {
                self.wake.notified().await;
                continue;
            }
            let write = async {
                to.write_all(&chunk).await?;
                to.flush().await
            };
            match timeout(self.limit, write).await {
                Ok(Ok(())) => self.outbox.lock().answered = answers,
                Ok(Err(error)) => return format!("the connection broke: {error}"),
                Err(_) => return "the SMSC takes nothing any more".to_owned(),
            }
        }
    }

    /// The reader. Tests the line after `enquire` of silence.
    async fn read(self: &Arc<Self>, from: &mut (impl AsyncRead + Unpin), inbox: Option<&Arc<Inbox>>, enquire: Duration) -> Over {
        let mut buffer = Vec::with_capacity(READ);
        let mut tested = false;
        loop {
            buffer.reserve(READ);
            let patience = if tested { self.limit } else { enquire };
            match timeout(patience, from.read_buf(&mut buffer)).await {
                Ok(Ok(0)) => return Over::because("the SMSC hung up"),
                Ok(Ok(_)) => tested = false,
                Ok(Err(error)) => return Over::because(format!("the connection broke: {error}")),
                Err(_) if tested => {
                    return Over::because(format!("the SMSC was silent for {} s, also to enquire_link", self.limit.as_secs()));
                }
                Err(_) => {
                    tested = true;
                    self.test();
                }
            }
            let mut rest = &buffer[..];
            loop {
                match wire::frame(rest) {
                    Ok(Some(frame)) => {
                        if let Some(over) = self.take(frame.header, frame.body, inbox) {
                            return over;
                        }
                        rest = frame.rest;
                    }
                    Ok(None) => break,
                    Err(wire::Garbage) => return Over::because("the SMSC sent something that is not SMPP"),
                }
            }
            let read = buffer.len() - rest.len();
            buffer.drain(..read);
        }
    }

    /// Sends an enquire_link that nobody waits for: any sign of life will do.
    fn test(&self) {
        let mut outbox = self.outbox.lock();
        let sequence = (outbox.next % SEQUENCES) as u32 + 1;
        outbox.next += 1;
        wire::bare(&mut outbox.buffer, Header { id: id::ENQUIRE_LINK, status: 0, sequence });
        drop(outbox);
        self.wake.notify_one();
    }

    /// Takes one PDU; says why the session is over, if it is.
    fn take(self: &Arc<Self>, header: Header, body: &[u8], inbox: Option<&Arc<Inbox>>) -> Option<Over> {
        let answer = Header { id: header.id | id::ANSWER, status: status::OK, ..header };
        match header.id {
            command if command & id::ANSWER != 0 => self.answered(header, body),
            id::DELIVER_SM | id::DATA_SM => self.deliver(header, body, inbox),
            id::ENQUIRE_LINK => drop(self.answer(|out| wire::bare(out, answer))),
            id::UNBIND => return Some(Over { why: "the SMSC ended the session (unbind)".to_owned(), farewell: Some(answer) }),
            id::OUTBIND | id::ALERT_NOTIFICATION => {}
            _ => drop(self.answer(|out| wire::bare(out, Header { id: id::GENERIC_NACK, status: status::INVALID_COMMAND, ..header }))),
        }
        None
    }

    /// Hands an answer to whoever waits for it; one that comes too late is for nobody.
    fn answered(&self, header: Header, body: &[u8]) {
        let Some(waiter) = self.outbox.lock().waiting.remove(&header.sequence) else { return };
        let message_id = if header.id == id::SUBMIT_SM | id::ANSWER { wire::message_id(body) } else { None };
        waiter.tell.send(Ok(Reply { id: header.id, status: header.status, message_id })).ok();
    }

    /// Takes a delivery on, and answers it when it is on disk, or why it is not.
    fn deliver(self: &Arc<Self>, header: Header, body: &[u8], inbox: Option<&Arc<Inbox>>) {
        let answer = move |session: &Self, status| {
            session.answer(|out| wire::taken(out, Header { id: header.id | id::ANSWER, status, sequence: header.sequence }))
        };
        let refuse = |status| {
            answer(self, status);
        };
        let Some(inbox) = inbox else { return refuse(status::NOT_NOW) };
        let Some(delivery) = wire::delivery(header.id, body) else { return refuse(status::NEVER) };
        let Ok(permit) = Arc::clone(&self.deliveries).try_acquire_owned() else { return refuse(status::QUEUE_FULL) };
        let (session, inbox) = (Arc::clone(self), Arc::clone(inbox));
        tokio::spawn(async move {
            inbox.take(&session, delivery, |status| answer(&session, status)).await;
            drop(permit);
        });
    }
}

/// A request whose answer is waited for. Dropping it forgets the wait, not the request.
struct Waiting<'a> {
    session: &'a Session,
    sequence: u32,
    order: u64,
    told: oneshot::Receiver<Result<Reply, Fault>>,
}

impl Drop for Waiting<'_> {
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
