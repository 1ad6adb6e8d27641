//! Encodes new messages before they enter a batch.

use std::borrow::Cow;

use nuncio_domain::lifecycle::{Change, Wait};
use nuncio_domain::limits;
use nuncio_domain::message::{Failure, FailureCode, Message, Request, Status};
use nuncio_store::{Accept, Accepted, Result};
use uuid::Uuid;

use crate::event_log;
use crate::row::{FixedRow, StateRow, corrupt, first_sequence, json};

/// An accept with everything computed that does not need the database.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) item: Accept,
    pub(crate) born: Born,
    /// Pieces of the request that do not fit the row; written before the item enters the lane.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Bytes of the request as it is stored, chunks included.
    pub(crate) stored: i64,
}

impl Prepared {
    pub(crate) fn new(item: Accept) -> Result<Self> {
        let mut message = item.message.clone();
        let mut changes = birth(&mut message);
        if let Some(claim) = item.claim {
            message.state.begin_attempt(claim.node, item.now, &mut changes);
        }
        let mut born = Born::new(message, &changes)?;
        let chunks = spool(&mut born)?;
        let stored = born.fixed.request.len() + chunks.iter().map(Vec::len).sum::<usize>();
        Ok(Self { item, born, chunks, stored: stored as i64 })
    }

    /// What to insert. A suppressed recipient's message is born failed.
    pub(crate) fn birth(&self, suppressed: bool, (address, contact): (Uuid, Uuid)) -> Result<Birth<'_>> {
        let born = if suppressed { Cow::Owned(self.suppressed()?) } else { Cow::Borrowed(&self.born) };
        Ok(Birth { born, address, contact })
    }

    /// The item as it is born when the recipient turns out to be suppressed: failed, at no cost.
    fn suppressed(&self) -> Result<Born> {
        let mut message = self.item.message.clone();
        let mut changes = birth(&mut message);
        let failure = Failure::own(FailureCode::RecipientSuppressed, "the recipient opted out, bounced or complained");
        message.state.status = Status::Failed;
        message.state.wait = Wait::Nothing;
        message.state.detail.failure = Some(failure.clone());
        message.state.detail.money = None;
        if let Some(change) = changes.first_mut() {
            change.status = Status::Failed;
            change.failure = Some(failure);
        }
        // What never changes is encoded already, and may be large.
        Born::with(self.born.fixed.clone(), message, &changes)
    }
}

/// A message as it is inserted.
#[derive(Clone, Debug)]
pub(crate) struct Born {
    pub(crate) message: Message,
    pub(crate) fixed: FixedRow,
    pub(crate) state: StateRow,
    pub(crate) sequence: i64,
    pub(crate) changes: String,
}

impl Born {
    fn new(message: Message, changes: &[Change]) -> Result<Self> {
        Self::with(FixedRow::encode(&message)?, message, changes)
    }

    fn with(fixed: FixedRow, message: Message, changes: &[Change]) -> Result<Self> {
        Ok(Self {
            fixed,
            state: StateRow::encode(&message.state)?,
            sequence: first_sequence(message.state.version, changes),
            changes: event_log::without_words(changes)?,
            message,
        })
    }

    /// A message that comes into the world finished, from outside.
    pub(crate) fn received(mut message: Message, conversation: bool) -> Result<Self> {
        let mut changes = birth(&mut message);
        changes.iter_mut().for_each(|change| change.conversation = conversation);
        Self::new(message, &changes)
    }

    /// A message that waits for its attempt.
    pub(crate) fn waiting(mut message: Message) -> Result<Self> {
        let changes = birth(&mut message);
        Self::new(message, &changes)
    }
}

/// The change by which a message comes into the world.
fn birth(message: &mut Message) -> Vec<Change> {
    message.state.version += 1;
    let change = Change {
        status: message.state.status,
        previous: None,
        at: message.state.updated_at,
        attempt: None,
        failure: None,
        cost: None,
        possible_duplicate: false,
        conversation: false,
    };
    vec![change]
}

/// A message as it is inserted, with what the database knows of its recipient.
#[derive(Debug)]
pub(crate) struct Birth<'a> {
    pub(crate) born: Cow<'a, Born>,
    pub(crate) address: Uuid,
    pub(crate) contact: Uuid,
}

/// What a transaction makes of a new message.
#[derive(Clone, Debug)]
pub(crate) enum Verdict {
    /// It is written.
    Born {
        /// How, if not as it was prepared.
        instead: Option<Box<Born>>,
        address: Uuid,
        contact: Uuid,
    },
    /// Nothing is.
    Refused(Accepted),
}

impl From<Birth<'_>> for Verdict {
    fn from(Birth { born, address, contact }: Birth<'_>) -> Self {
        let instead = if let Cow::Owned(born) = born { Some(Box::new(born)) } else { None };
        Self::Born { instead, address, contact }
    }
}

/// Moves a request that is too large for the row into chunks. What lists show of it stays in the row.
fn spool(born: &mut Born) -> Result<Vec<Vec<u8>>> {
    if born.fixed.request.len() <= limits::SPOOL_THRESHOLD_BYTES {
        return Ok(Vec::new());
    }
    let mut outline = Request::clone(&born.message.request);
    outline.forget_bulk();
    let mut kept = json(&outline)?;
    if kept.len() > limits::SPOOL_THRESHOLD_BYTES {
        outline.cut_text();
        kept = json(&outline)?;
    }
    let request = std::mem::replace(&mut born.fixed.request, kept);
    let chunks: Vec<Vec<u8>> = request.as_bytes().chunks(limits::SPOOL_THRESHOLD_BYTES).map(<[u8]>::to_vec).collect();
    born.fixed.spooled = chunks.len() as i32;
    Ok(chunks)
}

/// A request put together from its chunks.
pub(crate) fn unspool(fixed: &mut FixedRow, chunks: Vec<Vec<u8>>) -> Result<()> {
    if chunks.len() != fixed.spooled as usize {
        return Err(corrupt("spool_chunks", format!("{} of {} chunks", chunks.len(), fixed.spooled)));
    }
    // Each chunk goes as it is taken over: a large request is not held twice.
    let mut request = Vec::with_capacity(chunks.iter().map(Vec::len).sum());
    chunks.into_iter().for_each(|chunk| request.extend(chunk));
    fixed.request = String::from_utf8(request).map_err(|e| corrupt("spool_chunks", e))?;
    Ok(())
}
