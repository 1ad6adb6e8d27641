//! What both databases share of writing messages in batches: the items, their encoding before they enter the batch, the fold of
//! transitions, and what a transaction writes because of it.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use nuncio_domain::broadcast::{ContactStatus, Counts, Halt, Part};
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Applied, Change, State, Step, Wait};
use nuncio_domain::message::{Failure, FailureCode, Message, Money, Request, Status};
use nuncio_domain::{AddressId, ContactId, MessageId, TenantId, limits};
use nuncio_store::{Accept, Accepted, DeliveryLog, MetricDelta, MetricRow, RawReceipt, Result, StoreError, Transition, Transitioned};
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::agenda::{Agenda, AgendaKey};
use crate::event_log::{self, EntryRef, LogBatch};
use crate::known::KEPT_BYTES;
use crate::row::{FixedRow, StateRow, corrupt, json};

/// One item of a lane, with the place where its answer goes.
#[derive(Debug)]
pub(crate) struct Op<I, O> {
    pub(crate) item: I,
    pub(crate) reply: oneshot::Sender<Result<O>>,
}

pub(crate) type AcceptOp = Op<Box<Prepared>, Accepted>;
pub(crate) type TransitionOp = Op<Transition, Transitioned>;
pub(crate) type MetricsOp = Op<Vec<MetricRow>, ()>;
pub(crate) type DeliveriesOp = Op<DeliveryLog, bool>;

/// An item that is written in batches.
pub(crate) trait Batched: Sized {
    /// What the transaction made of it.
    type Done;
    /// What its caller is told.
    type Answer;

    /// The answer, once the transaction is committed.
    fn answered(self, done: Self::Done) -> Self::Answer;
}

impl Batched for Box<Prepared> {
    type Done = Verdict;
    type Answer = Accepted;

    fn answered(self, verdict: Verdict) -> Accepted {
        match verdict {
            Verdict::Refused(refusal) => refusal,
            Verdict::Born { instead, address, contact } => {
                let mut message = instead.map_or(self.born, |born| *born).message;
                message.address = AddressId::from_uuid(address);
                Accepted::New { message: Box::new(message), contact: ContactId::from_uuid(contact) }
            }
        }
    }
}

impl Batched for Transition {
    type Done = Transitioned;
    type Answer = Transitioned;

    fn answered(self, done: Transitioned) -> Transitioned {
        done
    }
}

impl Batched for Vec<MetricRow> {
    type Done = ();
    type Answer = ();

    fn answered(self, (): ()) {}
}

impl Batched for DeliveryLog {
    type Done = bool;
    type Answer = bool;

    fn answered(self, fence_holds: bool) -> bool {
        fence_holds
    }
}

/// Each row once, in key order: two nodes that write the same rows must not wait for each other.
pub(crate) fn folded(deltas: Vec<MetricRow>) -> Vec<MetricRow> {
    let mut rows: BTreeMap<_, MetricDelta> = BTreeMap::new();
    for (tenant, address, channel, delta) in deltas {
        rows.entry((tenant, address, channel)).or_default().add(&delta);
    }
    rows.into_iter().map(|((tenant, address, channel), delta)| (tenant, address, channel, delta)).collect()
}

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

/// A message as it is inserted.
#[derive(Clone, Debug)]
pub(crate) struct Born {
    pub(crate) message: Message,
    pub(crate) fixed: FixedRow,
    pub(crate) state: StateRow,
    pub(crate) sequence: i64,
    pub(crate) changes: String,
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

impl Born {
    fn new(message: Message, changes: &[Change]) -> Result<Self> {
        Self::with(FixedRow::encode(&message)?, message, changes)
    }

    fn with(fixed: FixedRow, message: Message, changes: &[Change]) -> Result<Self> {
        Ok(Self {
            fixed,
            state: StateRow::encode(&message.state)?,
            sequence: crate::row::first_sequence(message.state.version, changes),
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

/// What a batch means for broadcasts: recipients who stand elsewhere now, and what that adds to the counts.
#[derive(Debug, Default)]
pub(crate) struct Moves {
    pub(crate) contacts: Vec<Move>,
    pub(crate) counts: BTreeMap<(i64, Uuid), Counts>,
}

/// A recipient who stands elsewhere now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) tenant: i64,
    pub(crate) part: Part,
    pub(crate) status: ContactStatus,
    /// None for a recipient who is pending again.
    pub(crate) message: Option<Uuid>,
}

impl Moves {
    /// A message of a broadcast came into the world.
    pub(crate) fn born(&mut self, message: &Message) {
        self.add(message.tenant.0, message.id.uuid(), (ContactStatus::Pending, Counts::default()), &message.state);
    }

    fn add(&mut self, tenant: i64, message: Uuid, before: (ContactStatus, Counts), state: &State) {
        let Some(part) = state.detail.broadcast else { return };
        let (status, counts) = (ContactStatus::of(state), Counts::of(state));
        if status != before.0 {
            let message = (status != ContactStatus::Pending).then_some(message);
            self.contacts.push(Move { tenant, part, status, message });
        }
        if counts != before.1 {
            self.counts.entry((tenant, part.broadcast.uuid())).or_default().add(&counts.since(&before.1));
        }
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

/// Under which id a provider took a part of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) tenant: i64,
    pub(crate) connection: Uuid,
    pub(crate) reference: &'a str,
    pub(crate) message: Uuid,
    pub(crate) attempt: i16,
    pub(crate) part: i16,
}

/// A transition whose message is named.
pub(crate) type Item<'a> = Cow<'a, Transition>;
/// What a provider's id stands for: the message, its attempt and part.
pub(crate) type Named = (Uuid, i16, i16);

/// The provider's id by which a transition names its message.
pub(crate) fn by_reference(item: &Transition) -> Option<&RawReceipt> {
    item.raw.as_deref().filter(|_| item.by_reference)
}

/// The transitions of a batch, with what `find` knows of the provider's ids. One that it does not know is of no message.
pub(crate) fn items(ops: &[TransitionOp], mut find: impl FnMut(i64, &RawReceipt) -> Result<Option<Named>>) -> Result<Vec<Item<'_>>> {
    let mut named = |op: &'_ TransitionOp| {
        let found = by_reference(&op.item).map(|receipt| find(op.item.tenant.0, receipt)).transpose()?.flatten();
        Ok(found.map(|found| name(op.item.clone(), found)))
    };
    ops.iter().map(|op| Ok(named(op)?.map_or(Cow::Borrowed(&op.item), Cow::Owned))).collect()
}

fn name(mut item: Transition, (message, made, number): Named) -> Transition {
    item.id = MessageId::from_uuid(message);
    if let Step::Receipt { attempt, part, .. } = &mut item.step {
        *attempt = Some(usize::from(made.unsigned_abs()));
        *part = number as u8;
    }
    item
}

/// The messages of one batch of transitions: each is loaded once, changed by its steps in order, and written once.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    loaded: HashMap<(i64, Uuid), Loaded>,
    order: Vec<(i64, Uuid)>,
}

/// A message as a batch found it, and what the batch made of it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) known: Known,
    /// It comes from memory, and may be out of date.
    pub(crate) remembered: bool,
    pub(crate) changes: Vec<Change>,
    pub(crate) touched: bool,
    /// As it was before the batch.
    pub(crate) money: Option<Money>,
    pub(crate) flags: Flags,
    pub(crate) suppressed: bool,
    /// Why its broadcast lets no attempt start, if it was asked.
    pub(crate) halt: Option<Halt>,
    /// Where its recipient stood in the broadcast before; absent once the recipient is no longer its own.
    pub(crate) stood: Option<(ContactStatus, Counts)>,
}

/// What is known of a message.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) state: State,
    pub(crate) address: Uuid,
    /// Raised by each write of the state.
    pub(crate) revision: i64,
    /// The agenda row that guards it.
    pub(crate) agenda: Option<i64>,
    /// Its entries in the event log.
    pub(crate) history: Vec<u8>,
    /// The part that never changes; present when an attempt of it may be started.
    pub(crate) fixed: Option<Arc<Message>>,
}

/// Lists of rare messages that one of them is in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    failed: bool,
    held: bool,
}

impl Flags {
    fn of(state: &State) -> Self {
        Self { failed: state.status == Status::Failed, held: matches!(state.wait, Wait::Held { .. }) }
    }

    /// The flags as they are stored, each with whether it is set.
    fn each(self) -> [(i16, bool); 2] {
        [(FAILED, self.failed), (HELD, self.held)]
    }
}

/// Messages whose status is `failed`, as `flagged` stores it.
pub(crate) const FAILED: i16 = 1;
/// Messages that are held.
pub(crate) const HELD: i16 = 2;

impl Loaded {
    pub(crate) fn new(known: Known, suppressed: bool) -> Self {
        let state = &known.state;
        let part = state.detail.broadcast.filter(|part| !part.withdrawn);
        Self {
            money: state.detail.money.clone(),
            flags: Flags::of(state),
            stood: part.map(|_| (ContactStatus::of(state), Counts::of(state))),
            known,
            remembered: false,
            changes: Vec::new(),
            touched: false,
            suppressed,
            halt: None,
        }
    }

    /// The broadcast to ask before an attempt may start.
    pub(crate) fn broadcast(&self) -> Option<Uuid> {
        self.known.state.detail.broadcast.map(|part| part.broadcast.uuid())
    }
}

/// A state to be written.
#[derive(Debug)]
pub(crate) struct StateWrite<'a> {
    pub(crate) tenant: i64,
    pub(crate) id: Uuid,
    pub(crate) row: Cow<'a, StateRow>,
    pub(crate) revision: i64,
    pub(crate) agenda: Option<i64>,
    pub(crate) history: Vec<u8>,
}

/// A message that enters or leaves a list of rare ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flag {
    pub(crate) tenant: i64,
    pub(crate) kind: i16,
    pub(crate) id: Uuid,
}

/// What one transaction writes beside the messages themselves.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub(crate) log: LogBatch,
    pub(crate) agenda: Agenda,
    /// Messages that leave their agenda row.
    pub(crate) leaving: BTreeMap<AgendaKey, usize>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) flags_gone: Vec<Flag>,
    entries: HashMap<(i64, Uuid), EntryRef>,
}

impl Writes {
    /// The first state of a new message.
    pub(crate) fn born<'a>(&mut self, born: &'a Born) -> StateWrite<'a> {
        let (tenant, id) = (born.fixed.tenant_id, born.fixed.id);
        let what = (ResourceKind::Message, id, born.sequence);
        let entry = self.log.push(tenant, what, born.state.updated_at, &born.changes);
        let mut history = Vec::new();
        event_log::append(&mut history, entry);
        let agenda = self.agenda.guard(tenant, id, 1, &born.message.state);
        for (kind, _) in Flags::of(&born.message.state).each().into_iter().filter(|(_, set)| *set) {
            self.flags.push(Flag { tenant, kind, id });
        }
        StateWrite { tenant, id, row: Cow::Borrowed(&born.state), revision: 1, agenda, history }
    }

    /// The next state of a message, which [`Self::written`] or [`Self::withdraw`] must be told about.
    pub(crate) fn update(&mut self, (tenant, id): (i64, Uuid), loaded: &Loaded) -> Result<StateWrite<'static>> {
        let Known { state, revision, history, .. } = &loaded.known;
        let row = StateRow::encode(state)?;
        let mut history = history.clone();
        if !loaded.changes.is_empty() {
            let sequence = crate::row::first_sequence(state.version, &loaded.changes);
            let changes = event_log::without_words(&loaded.changes)?;
            let entry = self.log.push(tenant, (ResourceKind::Message, id, sequence), row.updated_at, &changes);
            event_log::append(&mut history, entry);
            self.entries.insert((tenant, id), entry);
        }
        let revision = revision + 1;
        Ok(StateWrite { tenant, id, revision, agenda: self.agenda.guard(tenant, id, revision, state), row: Cow::Owned(row), history })
    }

    /// A state was written: what follows from it.
    pub(crate) fn written(&mut self, write: &StateWrite<'_>, loaded: &Loaded) {
        let (tenant, id) = (write.tenant, write.id);
        if let Some(agenda) = loaded.known.agenda {
            *self.leaving.entry((tenant, agenda)).or_default() += 1;
        }
        for ((kind, before), (_, after)) in loaded.flags.each().into_iter().zip(Flags::of(&loaded.known.state).each()) {
            match (before, after) {
                (false, true) => self.flags.push(Flag { tenant, kind, id }),
                (true, false) => self.flags_gone.push(Flag { tenant, kind, id }),
                _ => {}
            }
        }
    }

    /// A state was not written, since another node changed it first.
    pub(crate) fn withdraw(&mut self, write: &StateWrite<'_>) {
        self.agenda.withdraw(write.tenant, write.id);
        if let Some(entry) = self.entries.remove(&(write.tenant, write.id)) {
            self.log.withdraw(write.tenant, entry);
        }
    }
}

impl Known {
    /// A new message as it is remembered. What never changes of it is kept if an attempt is yet to be started, and it is small.
    pub(crate) fn born(birth: &Birth<'_>, write: StateWrite<'_>) -> Self {
        let Born { message, fixed, .. } = &*birth.born;
        let is_kept = matches!(message.state.wait, Wait::Attempt { .. }) && fixed.spooled == 0 && fixed.request.len() <= KEPT_BYTES;
        let state = message.state.clone();
        let whole = || Arc::new(Message { address: AddressId::from_uuid(birth.address), ..message.clone() });
        Self::after(write, state, birth.address, is_kept.then(whole))
    }

    /// A message as `write` wrote it.
    pub(crate) fn after(write: StateWrite<'_>, state: State, address: Uuid, fixed: Option<Arc<Message>>) -> Self {
        Self { state, address, revision: write.revision, agenda: write.agenda, history: write.history, fixed }
    }
}

impl Fold {
    pub(crate) fn key(item: &Transition) -> (i64, Uuid) {
        (item.tenant.0, item.id.uuid())
    }

    pub(crate) fn insert(&mut self, key: (i64, Uuid), loaded: Loaded) {
        self.order.push(key);
        self.loaded.insert(key, loaded);
    }

    pub(crate) fn contains(&self, key: &(i64, Uuid)) -> bool {
        self.loaded.contains_key(key)
    }

    /// Takes out a message, so that it can be loaded again.
    pub(crate) fn remove(&mut self, key: &(i64, Uuid)) {
        self.loaded.remove(key);
        self.order.retain(|other| other != key);
    }

    pub(crate) fn get(&self, key: &(i64, Uuid)) -> Option<&Loaded> {
        self.loaded.get(key)
    }

    /// Messages that a step of the batch came too late for, if what memory says of them holds. They must be looked up.
    pub(crate) fn doubtful(&self, items: &[Item<'_>], answers: &[Transitioned]) -> BTreeSet<(i64, Uuid)> {
        let lost = items.iter().zip(answers).filter(|(_, answer)| matches!(answer, Transitioned::Found { applied: Applied::Lost, .. }));
        lost.map(|(item, _)| Self::key(item)).filter(|key| self.loaded.get(key).is_some_and(|loaded| loaded.remembered)).collect()
    }

    /// Notes that nothing may be sent to the recipient of a message.
    pub(crate) fn suppress(&mut self, key: &(i64, Uuid)) {
        if let Some(loaded) = self.loaded.get_mut(key) {
            loaded.suppressed = true;
        }
    }

    /// Applies one item and answers it. The answer must not be given before the commit.
    pub(crate) fn apply(&mut self, item: &Transition) -> Result<Transitioned> {
        let Some(loaded) = self.loaded.get_mut(&Self::key(item)) else { return Ok(Transitioned::Missing) };
        let seen = loaded.changes.len();
        let step = match &item.step {
            Step::Start { fence, .. } if loaded.halt.is_some() && *fence == loaded.known.state.fence => {
                &Step::Withdraw { halt: loaded.halt }
            }
            Step::Withdraw { .. } => &Step::Withdraw { halt: loaded.halt },
            Step::Start { node, fence, .. } => &Step::Start { node: *node, fence: *fence, suppressed: loaded.suppressed },
            other => other,
        };
        let state = &mut loaded.known.state;
        let applied = state.apply(step, item.now, &mut loaded.changes);
        loaded.touched |= applied == Applied::Yes || loaded.changes.len() > seen;
        let started = applied == Applied::Yes && matches!(item.step, Step::Start { .. }) && matches!(state.wait, Wait::Owned { .. });
        // A message starts once in a batch, and may be large.
        let fixed = if started { loaded.known.fixed.take() } else { None };
        let message = fixed.map(|fixed| Box::new(Message { state: state.clone(), ..Arc::unwrap_or_clone(fixed) }));
        Ok(Transitioned::Found {
            applied,
            state: Box::new(state.clone()),
            changes: loaded.changes[seen..].to_vec(),
            address: AddressId::from_uuid(loaded.known.address),
            message,
        })
    }

    /// The broadcasts whose status decides about steps of the batch.
    pub(crate) fn deciding_broadcasts(&self, items: &[Item<'_>]) -> BTreeSet<(i64, Uuid)> {
        let asking = items.iter().filter(|item| asks_broadcast(&item.step)).map(|item| Self::key(item));
        asking.filter_map(|key| Some((key.0, self.loaded.get(&key)?.broadcast()?))).collect()
    }

    /// Notes which broadcasts let no attempt start.
    pub(crate) fn halt(&mut self, halted: &HashMap<(i64, Uuid), Halt>) {
        for (key, loaded) in &mut self.loaded {
            loaded.halt = loaded.broadcast().and_then(|broadcast| halted.get(&(key.0, broadcast)).copied());
        }
    }

    /// The provider's ids that the batch's answers brought, each once. Some providers begin to count anew: an id then is the newer
    /// message's.
    pub(crate) fn references<'a>(&self, items: &'a [Item<'_>]) -> Vec<Reference<'a>> {
        let mut references = BTreeMap::new();
        for item in items.iter().map(|item| &**item) {
            let Step::Settle { attempt, outcome, .. } = &item.step else { continue };
            let Some(loaded) = self.loaded.get(&Self::key(item)) else { continue };
            let Some(made) = loaded.known.state.detail.attempts.get(*attempt) else { continue };
            let (tenant, message) = Self::key(item);
            for (reference, part) in outcome.references().iter().zip(0_i16..) {
                let connection = made.connection.uuid();
                let new = Reference { tenant, connection, reference, message, attempt: *attempt as i16, part };
                let known = references.entry((tenant, connection, reference)).or_insert(new);
                if known.message < message {
                    *known = new;
                }
            }
        }
        references.into_values().collect()
    }

    /// The receipts as they came, with their world and message.
    pub(crate) fn receipts<'a>(&self, items: &'a [Item<'_>]) -> Vec<(i64, Uuid, &'a RawReceipt)> {
        // Of a message that was erased nothing is kept that came from outside.
        let is_kept = |item: &&Transition| self.loaded.get(&Self::key(item)).is_some_and(|loaded| !loaded.known.state.detail.erased);
        let known = items.iter().map(|item| &**item).filter(is_kept);
        known.filter_map(|item| item.raw.as_deref().map(|raw| (item.tenant.0, item.id.uuid(), raw))).collect()
    }

    /// What the batch means for broadcasts.
    pub(crate) fn moves(&self) -> Moves {
        let mut moves = Moves::default();
        for ((tenant, id), loaded) in self.loaded.iter().filter(|(_, l)| l.touched) {
            if let Some(stood) = loaded.stood {
                moves.add(*tenant, *id, stood, &loaded.known.state);
            }
        }
        moves.contacts.sort_unstable_by_key(|m| (m.tenant, m.part.broadcast, m.part.contact));
        moves
    }

    /// What must be written, in key order.
    pub(crate) fn touched(&mut self) -> Vec<((i64, Uuid), &Loaded)> {
        self.order.sort_unstable();
        self.order.iter().filter_map(|key| self.loaded.get(key).filter(|l| l.touched).map(|l| (*key, l))).collect()
    }
}

/// Whether the status of a message's broadcast decides what comes of a step.
pub(crate) const fn asks_broadcast(step: &Step) -> bool {
    matches!(step, Step::Start { .. } | Step::Withdraw { .. })
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

/// Every distinct world of a batch, in order.
pub(crate) fn tenants(items: &[AcceptOp]) -> Vec<TenantId> {
    let mut tenants: Vec<TenantId> = items.iter().map(|op| op.item.item.message.tenant).collect();
    tenants.sort_unstable();
    tenants.dedup();
    tenants
}

/// The same failure once more, for each item of a batch that failed as a whole.
pub(crate) fn again(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy(what) => StoreError::Busy(what.clone()),
        StoreError::Unavailable(what) => StoreError::Unavailable(what.clone()),
        StoreError::InDoubt(what) => StoreError::InDoubt(what.clone()),
        StoreError::Corrupt { table, what } => StoreError::Corrupt { table, what: what.clone() },
        StoreError::Conflict(source) => StoreError::Conflict(source.to_string().into()),
        StoreError::Other(source) => StoreError::Other(source.to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use nuncio_domain::Channel;

    /// Suppressions are found by what identifies a recipient on the message's channel, which the statements tell by numbers.
    #[test]
    fn the_statements_know_what_identifies_a_recipient_on_each_channel() {
        for source in [include_str!("sqlite/message_batch.rs"), include_str!("postgres/message_batch.rs")] {
            let (_, rest) = source.split_once("kind = CASE ").expect("a CASE by channel");
            let (_, rest) = rest.split_once(" WHEN ").expect("a WHEN");
            let (cases, rest) = rest.split_once(" ELSE ").expect("an ELSE");
            let otherwise: i16 = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            let cases: Vec<Vec<i16>> =
                cases.split(" WHEN ").map(|case| case.split(" THEN ").map(|n| n.parse().expect("a number")).collect()).collect();
            for channel in Channel::ALL {
                let kind = cases.iter().find(|case| case[0] == channel.number()).map_or(otherwise, |case| case[1]);
                assert_eq!(kind, channel.address_kind().number(), "{channel}");
            }
        }
    }
}
