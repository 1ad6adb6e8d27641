//! Encodes new messages before they enter a batch.

use std::borrow::Cow;

use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Change;
use nuncio_domain::message::{Failure, FailureCode, Message, Request, Status, Wait};
use nuncio_domain::{AddressId, ContactId, limits};
use nuncio_store::{Accept, Accepted, Result, Store};
use uuid::Uuid;

use crate::event_log;
use crate::row::{FixedRow, StateRow, corrupt, first_sequence, json};

/// An accept with everything computed that does not need the database.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub(crate) item: Accept,
    pub(crate) encoded: EncodedMessage,
    /// Parts of the request that do not fit the row; written before the item joins a batch.
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Bytes of the stored request, including chunks.
    pub(crate) stored: i64,
}

impl Prepared {
    /// Whether it is one of many, for which no caller waits.
    pub(crate) fn is_bulk(&self) -> bool {
        self.item.message.state.detail.broadcast.is_some()
    }

    pub(crate) fn new(item: Accept) -> Result<Self> {
        let mut message = item.message.clone();
        let mut changes = first_change(&mut message);
        if let Some(claim) = item.claim {
            message.state.begin_attempt(claim.node, item.now, &mut changes);
        }
        let mut encoded = EncodedMessage::new(message, &changes)?;
        let chunks = spool(&mut encoded)?;
        let stored = encoded.fixed.request.len() + chunks.iter().map(Vec::len).sum::<usize>();
        Ok(Self { item, encoded, chunks, stored: stored as i64 })
    }

    /// The message as it is inserted; failed if its recipient is suppressed.
    pub(crate) fn to_insert(&self, suppressed: bool, (address, contact): (Uuid, Uuid)) -> Result<MessageInsert<'_>> {
        let encoded = if suppressed { Cow::Owned(self.suppressed()?) } else { Cow::Borrowed(&self.encoded) };
        Ok(MessageInsert { encoded, address, contact })
    }

    /// The message to a suppressed recipient: failed, at no cost.
    fn suppressed(&self) -> Result<EncodedMessage> {
        let mut message = self.item.message.clone();
        let mut changes = first_change(&mut message);
        let failure = Failure::own(FailureCode::RecipientSuppressed, "the recipient is suppressed");
        message.state.status = Status::Failed;
        message.state.wait = Wait::Nothing;
        message.state.detail.failure = Some(failure.clone());
        message.state.detail.money = None;
        if let Some(change) = changes.first_mut() {
            change.status = Status::Failed;
            change.failure = Some(failure);
        }
        // What never changes is encoded already, and may be large.
        EncodedMessage::with(self.encoded.fixed.clone(), message, &changes)
    }
}

/// A message encoded for its rows.
#[derive(Clone, Debug)]
pub(crate) struct EncodedMessage {
    pub(crate) message: Message,
    pub(crate) fixed: FixedRow,
    pub(crate) state: StateRow,
    pub(crate) sequence: i64,
    pub(crate) changes: String,
}

impl EncodedMessage {
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

    /// An inbound message, which is final at once.
    pub(crate) fn received(mut message: Message, conversation: bool) -> Result<Self> {
        let mut changes = first_change(&mut message);
        changes.iter_mut().for_each(|change| change.conversation = conversation);
        Self::new(message, &changes)
    }

    /// An outbound message that waits for its attempt.
    pub(crate) fn waiting(mut message: Message) -> Result<Self> {
        let changes = first_change(&mut message);
        Self::new(message, &changes)
    }
}

/// The first change of a message.
fn first_change(message: &mut Message) -> Vec<Change> {
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

/// A message to insert, with the address and contact of its recipient.
#[derive(Debug)]
pub(crate) struct MessageInsert<'a> {
    pub(crate) encoded: Cow<'a, EncodedMessage>,
    pub(crate) address: Uuid,
    pub(crate) contact: Uuid,
}

/// Result of a new message.
#[derive(Clone, Debug)]
pub(crate) enum AcceptOutcome {
    Inserted {
        /// What was inserted, if not the prepared message.
        replacement: Option<Box<EncodedMessage>>,
        address: Uuid,
        contact: Uuid,
    },
    /// Nothing was written.
    Refused(Accepted),
}

impl AcceptOutcome {
    /// The answer, once the transaction is committed.
    pub(crate) fn answer(self, prepared: Prepared) -> Accepted {
        match self {
            Self::Refused(refusal) => refusal,
            Self::Inserted { replacement, address, contact } => {
                let mut message = replacement.map_or(prepared.encoded, |encoded| *encoded).message;
                message.address = AddressId::from_uuid(address);
                Accepted::New { message: Box::new(message), contact: ContactId::from_uuid(contact) }
            }
        }
    }
}

impl From<MessageInsert<'_>> for AcceptOutcome {
    fn from(MessageInsert { encoded, address, contact }: MessageInsert<'_>) -> Self {
        let replacement = if let Cow::Owned(encoded) = encoded { Some(Box::new(encoded)) } else { None };
        Self::Inserted { replacement, address, contact }
    }
}

/// Stores a new message by `write`; the chunks of a large request before, each in a separate transaction.
pub(crate) async fn accept_with_chunks<F>(store: &dyn Store, item: Accept, write: impl FnOnce(Box<Prepared>) -> F) -> Result<Accepted>
where
    F: Future<Output = Result<Accepted>>,
{
    let mut prepared = Box::new(Prepared::new(item)?);
    let (tenant, message, now) = (prepared.item.message.tenant, prepared.item.message.id, prepared.item.now);
    let chunks = std::mem::take(&mut prepared.chunks);
    for (index, chunk) in chunks.iter().enumerate() {
        let mut tx = store.begin().await?;
        tx.insert_spool_chunk(tenant, message, index as i32, chunk, now).await?;
        tx.commit().await?;
    }
    let accepted = write(prepared).await?;
    // Repeated rejections must not fill the disk before the purge.
    if !chunks.is_empty() && !matches!(accepted, Accepted::New { .. }) {
        let mut tx = store.begin().await?;
        tx.delete_spool(tenant, message).await?;
        tx.commit().await?;
    }
    Ok(accepted)
}

/// Moves a request that is too large for the row into chunks. The row keeps what lists show.
pub(crate) fn spool(encoded: &mut EncodedMessage) -> Result<Vec<Vec<u8>>> {
    if encoded.fixed.request.len() <= limits::SPOOL_THRESHOLD_BYTES {
        return Ok(Vec::new());
    }
    let mut outline = Request::clone(&encoded.message.request);
    outline.drop_bulk();
    let mut kept = json(&outline)?;
    if kept.len() > limits::SPOOL_THRESHOLD_BYTES {
        outline.truncate_text();
        kept = json(&outline)?;
    }
    let request = std::mem::replace(&mut encoded.fixed.request, kept);
    let chunks: Vec<Vec<u8>> = request.as_bytes().chunks(limits::SPOOL_THRESHOLD_BYTES).map(<[u8]>::to_vec).collect();
    encoded.fixed.spooled = chunks.len() as i32;
    Ok(chunks)
}

/// Assembles a request from its chunks.
pub(crate) fn unspool(fixed: &mut FixedRow, chunks: Vec<Vec<u8>>) -> Result<()> {
    if chunks.len() != fixed.spooled as usize {
        return Err(corrupt("spool_chunks", format!("{} of {} chunks", chunks.len(), fixed.spooled)));
    }
    // Each chunk is freed once it is copied: a large request is not held twice.
    let mut request = Vec::with_capacity(chunks.iter().map(Vec::len).sum());
    chunks.into_iter().for_each(|chunk| request.extend(chunk));
    fixed.request = String::from_utf8(request).map_err(|e| corrupt("spool_chunks", e))?;
    Ok(())
}
