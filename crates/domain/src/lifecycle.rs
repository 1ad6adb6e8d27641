//! How a message changes: facts and decisions.
//!
//! A *fact* is something that happened (an attempt's result, a receipt). It is recorded whoever brings it, and raises the status
//! by rank; it never lowers it. A *decision* is what happens next (start, retry, fall back, hold, give up). It is taken only by
//! whoever holds the row's current *fence*, a number that grows with every decision and every change of owner.
//!
//! [`State::wait`] says what an unfinished message waits for; a message waits for nothing exactly when it is final. All functions
//! here are pure; the store calls them under the row's lock, so what they decide is decided on the newest state.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::authentication::Authentication;
use crate::broadcast::{Halt, Part};
use crate::channel::Channel;
use crate::id::ConnectionId;
use crate::limits;
use crate::message::{Attempt, AttemptStatus, Cost, Failure, FailureCode, HeldReason, Money, OnUnknown, QuoteState, Status};
use crate::time::Timestamp;

/// One incarnation of a node: a process, from its start to its end.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub i64);

/// What a message waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// For its next attempt, which anyone may start from `due_at` on.
    Attempt {
        /// From when on.
        due_at: Timestamp,
    },
    /// For the result of an attempt that `node` is making.
    Owned {
        /// Who is making it.
        node: NodeId,
    },
    /// For a receipt, until `deadline`.
    Receipt {
        /// When waiting ends.
        deadline: Timestamp,
    },
    /// For a person, until `deadline`.
    Held {
        /// Why.
        reason: HeldReason,
        /// When waiting ends.
        deadline: Timestamp,
    },
    /// For nothing: the message is final.
    Nothing,
}

/// A way to reach the recipient.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Route {
    /// The channel.
    #[serde(rename = "c")]
    pub channel: Channel,
    /// The connection.
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// The kind of provider behind it.
    #[serde(rename = "k")]
    pub provider: String,
}

/// The part of a message that changes.
#[derive(Clone, PartialEq, Debug)]
pub struct State {
    /// Public status.
    pub status: Status,
    /// What it waits for.
    pub wait: Wait,
    /// Grows with every decision and every change of owner.
    pub fence: i64,
    /// Grows with every change that is told to the outside; the `sequence` of its events.
    pub version: i64,
    /// When the validity ends.
    pub expires_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The route of the newest or next attempt.
    pub route: Route,
    /// The rest.
    pub detail: Detail,
}

/// The part of the state that no query looks at, stored as compact JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Detail {
    /// All calls of providers, oldest first.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// The route that is taken when the present one fails for good.
    #[serde(rename = "fb", default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Route>,
    /// What to do when nobody can tell whether an attempt went out.
    #[serde(rename = "u", default, skip_serializing_if = "is_default")]
    pub on_unknown: OnUnknown,
    /// Fall back when no receipt came this many seconds after `sent`.
    #[serde(rename = "fs", default, skip_serializing_if = "Option::is_none")]
    pub fallback_after_seconds: Option<u64>,
    /// Why the message failed.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// What it cost.
    #[serde(rename = "co", with = "stored_cost", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// What it may cost; absent when no route of it has a price.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// SMS segments, should a route of it be SMS.
    #[serde(rename = "sg", default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u16>,
    /// When a provider first took it.
    #[serde(rename = "st", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    /// When it arrived.
    #[serde(rename = "dt", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    /// When it was read.
    #[serde(rename = "rt", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// Whether the recipient may have got it more than once.
    #[serde(rename = "pd", default, skip_serializing_if = "std::ops::Not::not")]
    pub possible_duplicate: bool,
    /// An answer to STOP, START or HELP, which goes out although its recipient opted out.
    #[serde(rename = "cp", default, skip_serializing_if = "std::ops::Not::not")]
    pub compliance: bool,
    /// The provider's id of a message from outside.
    #[serde(rename = "pi", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// How an email from outside was authenticated.
    #[serde(rename = "au", default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// The recipient's data was erased.
    #[serde(rename = "er", default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    /// The broadcast that the message is part of.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Part>,
}

fn is_default(value: &OnUnknown) -> bool {
    *value == OnUnknown::default()
}

/// Costs as they are stored: fee and provider's price, in micros. As JSON for callers they are decimals, which would not read back.
mod stored_cost {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::message::Cost;
    use crate::money::Micros;

    pub(super) fn serialize<S: Serializer>(cost: &Option<Cost>, serializer: S) -> Result<S::Ok, S::Error> {
        cost.map(|c| (c.fee.0, c.provider.0)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cost>, D::Error> {
        let stored = Option::<(i64, i64)>::deserialize(deserializer)?;
        Ok(stored.map(|(fee, provider)| Cost { fee: Micros(fee), provider: Micros(provider) }))
    }
}

/// How a provider tells what became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receipts {
    /// Not at all: taken is all that will be known.
    Never,
    /// By our own identifiers, which it carries along.
    ByAttempt,
    /// By the ids that it answered, which are therefore kept beside the message.
    ByReference,
}

/// What an attempt's provider answered.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// It took the message.
    Accepted {
        /// Its ids for it: one for each part that it was sent in.
        refs: Vec<String>,
        /// What it cost, when the answer says.
        cost: Option<Cost>,
        /// How it will tell what became of it.
        receipts: Receipts,
    },
    /// Not now; again after the given time.
    Deferred {
        /// Why.
        failure: Failure,
    },
    /// Never by this route.
    Rejected {
        /// Why.
        failure: Failure,
    },
    /// It may have gone out.
    Unknown {
        /// Why nobody can tell.
        failure: Failure,
        /// The provider's ids for the parts that it did take.
        refs: Vec<String>,
    },
}

/// Most parts of one attempt that are told apart.
const PARTS: usize = 32;

impl Outcome {
    /// The provider's ids under which receipts may come.
    pub fn references(&self) -> &[String] {
        let refs = match self {
            Self::Accepted { refs, receipts: Receipts::ByReference, .. } | Self::Unknown { refs, .. } => refs.as_slice(),
            Self::Accepted { .. } | Self::Deferred { .. } | Self::Rejected { .. } => &[],
        };
        &refs[..refs.len().min(PARTS)]
    }

    /// Notes on the attempt what the provider took of it.
    fn note(&self, attempt: &mut Attempt) {
        let (refs, missing) = match self {
            Self::Accepted { refs, .. } => (refs, 0),
            Self::Unknown { refs, .. } => (refs, 1), // at least one part is not known to be taken
            Self::Deferred { .. } | Self::Rejected { .. } => return,
        };
        if let Some(first) = refs.first() {
            attempt.provider_message_id = Some(first.clone());
        }
        let parts = self.references().len() + missing;
        if parts > 1 {
            attempt.parts = parts as u8;
        }
    }
}

/// What a receipt says.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptKind {
    /// On its way.
    Sent,
    /// Arrived.
    Delivered,
    /// Read.
    Read,
    /// Did not arrive.
    Failed(Failure),
}

/// One thing that happens to a message.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Decision: begin the attempt that is due.
    Start {
        /// Who makes it.
        node: NodeId,
        /// The fence that the starter saw.
        fence: i64,
        /// Whether the recipient is suppressed by now.
        suppressed: bool,
    },
    /// Fact: an attempt has a result. The decision that follows is taken only if `fence` still holds.
    Settle {
        /// Which attempt, from 0.
        attempt: usize,
        /// The fence that its start returned.
        fence: i64,
        /// What came of it.
        outcome: Outcome,
        /// How long to wait before the next attempt, should there be one.
        retry_in: Duration,
        /// How long to wait for a receipt.
        receipt_wait: Duration,
    },
    /// Fact: a receipt came.
    Receipt {
        /// Which attempt, from 0; the newest when unknown.
        attempt: Option<usize>,
        /// Which part of it, from 0. A message has arrived when all its parts have.
        part: u8,
        /// What it says.
        kind: ReceiptKind,
        /// When it happened, as the provider says.
        at: Timestamp,
    },
    /// Decision: the connection of the next attempt is gone; the next route is taken, if there is one.
    Disconnected {
        /// The fence that was seen.
        fence: i64,
    },
    /// Decision: waiting for a receipt or a person has ended.
    Deadline {
        /// The fence that was seen.
        fence: i64,
    },
    /// Decision: the owner is dead; its attempt's result cannot be known.
    Recover {
        /// The dead one.
        node: NodeId,
        /// How long to wait before a resend.
        retry_in: Duration,
    },
    /// Decision: wait for a person.
    Hold {
        /// Why.
        reason: HeldReason,
    },
    /// Decision of the caller: do not send.
    Cancel,
    /// Decision: a message that waits for its attempt does not start, because its broadcast is paused or cancelled.
    Withdraw {
        /// Why. The store looks it up in the transaction of the step; nothing happens without a reason.
        halt: Option<Halt>,
    },
    /// Decision: the recipient's data is erased. Nothing more is sent, and no words of a provider are kept, now or later.
    Erase,
    /// Decision of a person about a held message.
    Resolve {
        /// What to do.
        action: Resolution,
    },
}

/// What a person decides about a held message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "openapi", schema(as = MessageResolution))]
pub enum Resolution {
    /// Send it (again).
    Resend,
    /// It went out.
    Sent,
    /// It did not; give up.
    Failed,
}

/// A change that the outside is told of.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// The new status.
    #[serde(rename = "s")]
    pub status: Status,
    /// The status before; absent at birth.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Status>,
    /// When.
    #[serde(rename = "t", with = "crate::time::millis")]
    pub at: Timestamp,
    /// The attempt that brought it about, by index, as it was afterwards.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<(usize, Attempt)>,
    /// The message's failure afterwards.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The cost afterwards.
    #[serde(rename = "c", with = "stored_cost", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// The mark of a possible duplicate afterwards.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub possible_duplicate: bool,
    /// Whether this inbound message opened a conversation: the contact's first by its channel, or the first after a day of silence.
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub conversation: bool,
}

impl Change {
    /// Takes out what a provider said in words, which may repeat whom a message was for. Answers whether there was anything.
    pub fn forget_words(&mut self) -> bool {
        let attempt = self.attempt.as_mut().is_some_and(|(_, attempt)| forget_whom(attempt));
        forget_words(&mut self.failure) | attempt
    }
}

impl Detail {
    /// The provider's id of the message: of the newest attempt that has one, or of the message that came from outside.
    pub fn provider_message_id(&self) -> Option<&str> {
        let sent = self.attempts.iter().rev().find_map(|attempt| attempt.provider_message_id.as_deref());
        sent.or(self.provider_id.as_deref())
    }
}

/// Takes out of an attempt what may tell whom it was for: words of the provider, and its id, which some make from the phone number.
fn forget_whom(attempt: &mut Attempt) -> bool {
    let known = attempt.provider_message_id.take().is_some();
    forget_words(&mut attempt.error) | known
}

/// Leaves of a failure what stands in closed lists.
fn forget_words(failure: &mut Option<Failure>) -> bool {
    let Some(failure) = failure.as_mut().filter(|f| f.message != f.code.as_str()) else { return false };
    failure.message = failure.code.as_str().to_owned();
    true
}

/// What follows a result that is not final.
#[derive(Clone, Copy)]
struct Policy {
    retry_in: Duration,
    receipt_wait: Duration,
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Applied {
    /// It took effect, as a fact, a decision or both.
    Yes,
    /// The row belongs to someone else by now, or is past it; nothing changed.
    Lost,
}

impl State {
    /// Whether nothing more will be done.
    pub const fn is_final(&self) -> bool {
        matches!(self.wait, Wait::Nothing)
    }

    /// The moment at which somebody must look at the message, if no event comes before.
    pub const fn due_at(&self) -> Option<Timestamp> {
        match self.wait {
            Wait::Attempt { due_at } => Some(due_at),
            Wait::Receipt { deadline } | Wait::Held { deadline, .. } => Some(deadline),
            Wait::Owned { .. } | Wait::Nothing => None,
        }
    }

    /// Records the start of an attempt by `node` and returns its index. The caller has checked that it may.
    pub fn begin_attempt(&mut self, node: NodeId, now: Timestamp, changes: &mut Vec<Change>) -> usize {
        let index = self.detail.attempts.len();
        self.detail.attempts.push(Attempt {
            channel: self.route.channel,
            connection: self.route.connection,
            provider: self.route.provider.clone(),
            status: AttemptStatus::Started,
            started_at: now,
            finished_at: None,
            provider_message_id: None,
            parts: 0,
            arrived: 0,
            error: None,
        });
        self.note_duplicate();
        self.wait = Wait::Owned { node };
        self.fence += 1;
        self.raise(Status::Sending, now, Some(index), changes);
        index
    }

    /// Applies `step` at `now` and appends what the outside is told to `changes`.
    pub fn apply(&mut self, step: &Step, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let seen = changes.len();
        let applied = match step {
            Step::Start { node, fence, suppressed } => self.start(*node, *fence, *suppressed, now, changes),
            Step::Settle { attempt, fence, outcome, retry_in, receipt_wait } => {
                let policy = Policy { retry_in: *retry_in, receipt_wait: *receipt_wait };
                self.settle(*attempt, *fence, outcome, policy, now, changes)
            }
            Step::Receipt { attempt, part, kind, at } => self.receipt((*attempt, *part), kind, *at, now, changes),
            Step::Disconnected { fence } => self.disconnected(*fence, now, changes),
            Step::Deadline { fence } => self.deadline(*fence, now, changes),
            Step::Recover { node, retry_in } => self.recover(*node, *retry_in, now, changes),
            Step::Hold { reason } => self.hold(*reason, now),
            Step::Cancel => self.cancel(now, changes),
            Step::Withdraw { halt } => self.withdraw(*halt, now, changes),
            Step::Erase => self.erase(),
            Step::Resolve { action } => self.resolve(*action, now, changes),
        };
        if self.detail.erased {
            self.stay_erased(seen, now, changes);
        }
        if applied == Applied::Yes {
            self.updated_at = now;
            self.close_account();
        }
        applied
    }

    fn start(&mut self, node: NodeId, fence: i64, suppressed: bool, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let Wait::Attempt { due_at } = self.wait else { return Applied::Lost };
        if self.fence != fence {
            return Applied::Lost;
        }
        if suppressed && !self.detail.compliance {
            let failure = Failure::own(FailureCode::RecipientSuppressed, "the recipient opted out, bounced or complained");
            self.fail(failure, now, changes);
        } else if self.status == Status::Scheduled && now.since(due_at) > limits::PAST_DUE {
            self.hold(HeldReason::PastDue, now);
        } else if now >= self.expires_at {
            self.expire(now, changes);
        } else {
            self.begin_attempt(node, now, changes);
        }
        Applied::Yes
    }

    fn settle(
        &mut self,
        index: usize,
        fence: i64,
        outcome: &Outcome,
        policy: Policy,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Applied {
        let decides = self.fence == fence && matches!(self.wait, Wait::Owned { .. });
        let newer = self.detail.attempts.len() > index + 1;
        let Some(attempt) = self.detail.attempts.get_mut(index) else { return Applied::Lost };
        let open = matches!(attempt.status, AttemptStatus::Started | AttemptStatus::Unknown);
        if !open && !decides {
            return Applied::Lost; // the same result told twice
        }
        if open {
            attempt.finished_at = Some(now);
            (attempt.status, attempt.error) = match outcome {
                Outcome::Accepted { .. } => (AttemptStatus::Accepted, None),
                Outcome::Deferred { failure } | Outcome::Rejected { failure } => (AttemptStatus::Failed, Some(failure.clone())),
                Outcome::Unknown { failure, .. } => (AttemptStatus::Unknown, Some(failure.clone())),
            };
        }
        // Also when a receipt was faster than the answer: the ids still are news.
        outcome.note(attempt);
        let Outcome::Accepted { cost, receipts, .. } = outcome else {
            if decides {
                self.decide(outcome, policy, now, changes);
            }
            return Applied::Yes;
        };
        let tells = *receipts != Receipts::Never;
        if let Some(part) = &mut self.detail.broadcast {
            part.no_receipts = !tells;
        }
        self.add_told_cost(*cost);
        if !tells {
            self.charge_taken();
        }
        self.note_duplicate();
        if newer {
            self.detail.possible_duplicate = true;
        }
        self.raise(Status::Sent, now, Some(index), changes);
        if decides {
            self.decide(outcome, policy, now, changes);
        } else if !newer {
            self.stop_resend(tells.then_some(policy.receipt_wait), now);
        }
        Applied::Yes
    }

    /// The newest attempt, thought to be unknown, was taken after all: it is not sent again, and no person need decide.
    fn stop_resend(&mut self, receipt_wait: Option<Duration>, now: Timestamp) {
        if matches!(self.wait, Wait::Attempt { .. } | Wait::Held { .. }) {
            self.fence += 1;
            self.wait = receipt_wait.map_or(Wait::Nothing, |wait| Wait::Receipt { deadline: now.plus(wait) });
        }
    }

    fn decide(&mut self, outcome: &Outcome, policy: Policy, now: Timestamp, changes: &mut Vec<Change>) {
        self.fence += 1;
        match outcome {
            // The receipt was faster than the answer: there is nothing left to wait for.
            _ if matches!(self.status, Status::Delivered | Status::Read) => self.wait = Wait::Nothing,
            Outcome::Accepted { .. } | Outcome::Unknown { .. } if self.newest_failed() => self.next_route_or_fail(now, changes),
            Outcome::Accepted { receipts: Receipts::Never, .. } => self.wait = Wait::Nothing,
            // Taken by this route already, by an earlier attempt or, as a receipt says, by this one: another would be a duplicate.
            Outcome::Deferred { .. } | Outcome::Rejected { .. } | Outcome::Unknown { .. } if self.taken_by_route() => {
                self.wait = Wait::Receipt { deadline: now.plus(policy.receipt_wait) };
            }
            Outcome::Accepted { .. } => {
                let patience = self.detail.fallback_after_seconds.filter(|_| self.detail.fallback.is_some());
                let wait = patience.map_or(policy.receipt_wait, |s| policy.receipt_wait.min(Duration::from_secs(s)));
                self.wait = Wait::Receipt { deadline: now.plus(wait) };
            }
            Outcome::Deferred { .. } => self.retry(policy.retry_in, now, changes),
            Outcome::Rejected { .. } => self.next_route_or_fail(now, changes),
            Outcome::Unknown { .. } => self.unknown(policy.retry_in, now, changes),
        }
    }

    /// Applies the policy for an attempt whose outcome nobody can tell.
    fn unknown(&mut self, retry_in: Duration, now: Timestamp, changes: &mut Vec<Change>) {
        match self.detail.on_unknown {
            OnUnknown::Resend => self.retry(retry_in, now, changes),
            OnUnknown::Hold => {
                self.hold(HeldReason::UnknownOutcome, now);
            }
            OnUnknown::Fail => self.fail(unknown_outcome(), now, changes),
        }
    }

    fn receipt(
        &mut self,
        (attempt, part): (Option<usize>, u8),
        kind: &ReceiptKind,
        at: Timestamp,
        now: Timestamp,
        changes: &mut Vec<Change>,
    ) -> Applied {
        let index = attempt.unwrap_or(self.detail.attempts.len().saturating_sub(1));
        let newest = index + 1 == self.detail.attempts.len();
        let Some(attempt) = self.detail.attempts.get_mut(index) else { return Applied::Lost };
        let at = Timestamp::from_millis(at.millis().clamp(attempt.started_at.millis(), now.millis().max(attempt.started_at.millis())));
        match kind {
            ReceiptKind::Sent | ReceiptKind::Delivered | ReceiptKind::Read => {
                let (before, known) = ((self.status, self.detail.read_at), (attempt.status, attempt.arrived));
                let arrived = !matches!(kind, ReceiptKind::Sent) && attempt.has_arrived_with(part, matches!(kind, ReceiptKind::Read));
                if arrived {
                    attempt.status = AttemptStatus::Delivered;
                    attempt.error = None;
                } else if matches!(attempt.status, AttemptStatus::Started | AttemptStatus::Unknown) {
                    attempt.status = AttemptStatus::Accepted;
                }
                attempt.finished_at.get_or_insert(now);
                let (changed, more) = (attempt.status != known.0, attempt.arrived != known.1);
                if arrived && changed {
                    self.charge_taken();
                }
                self.note_duplicate();
                self.raise(Status::Sent, at, Some(index), changes);
                if arrived {
                    self.arrived(matches!(kind, ReceiptKind::Read), at, index, changes);
                } else if changed && newest {
                    self.stop_resend(Some(limits::RECEIPT_WAIT), now);
                }
                if changed || more || before != (self.status, self.detail.read_at) { Applied::Yes } else { Applied::Lost }
            }
            ReceiptKind::Failed(failure) => {
                if matches!(attempt.status, AttemptStatus::Delivered | AttemptStatus::Failed) {
                    return Applied::Lost;
                }
                attempt.status = AttemptStatus::Failed;
                attempt.finished_at.get_or_insert(now);
                attempt.error = Some(failure.clone());
                let all_failed = self.detail.attempts.iter().all(|a| a.status == AttemptStatus::Failed);
                if all_failed
                    && matches!(self.wait, Wait::Receipt { .. } | Wait::Held { .. } | Wait::Nothing)
                    && self.status < Status::Failed
                {
                    self.fence += 1;
                    self.next_route_or_fail(now, changes);
                }
                Applied::Yes
            }
        }
    }

    fn arrived(&mut self, read: bool, at: Timestamp, index: usize, changes: &mut Vec<Change>) {
        // Clocks of providers differ from ours: the order of the three times is kept.
        let mut at = self.detail.sent_at.map_or(at, |sent| at.max(sent));
        let delivered = *self.detail.delivered_at.get_or_insert(at);
        if read {
            at = *self.detail.read_at.get_or_insert(at.max(delivered));
        }
        let status = if read { Status::Read } else { Status::Delivered };
        if self.status < status {
            self.detail.failure = None;
        }
        self.raise(status, at, Some(index), changes);
        if !matches!(self.wait, Wait::Owned { .. } | Wait::Nothing) {
            self.fence += 1;
            self.wait = Wait::Nothing;
        }
    }

    fn disconnected(&mut self, fence: i64, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if self.fence != fence || !matches!(self.wait, Wait::Attempt { .. }) {
            return Applied::Lost;
        }
        if self.detail.fallback.is_some() {
            self.fence += 1;
            self.fall_back(now);
        } else {
            self.fail(Failure::own(FailureCode::Undeliverable, "the connection that was to carry it was removed"), now, changes);
        }
        Applied::Yes
    }

    fn deadline(&mut self, fence: i64, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let due = self.due_at().is_some_and(|due| due <= now);
        if self.fence != fence || !due {
            return Applied::Lost;
        }
        match self.wait {
            Wait::Receipt { .. } if self.detail.fallback.is_some() && self.detail.fallback_after_seconds.is_some() => {
                self.fence += 1;
                self.fall_back(now);
            }
            Wait::Receipt { .. } => {
                self.fence += 1;
                self.wait = Wait::Nothing;
            }
            Wait::Held { .. } => self.fail(unknown_outcome(), now, changes),
            Wait::Attempt { .. } | Wait::Owned { .. } | Wait::Nothing => return Applied::Lost,
        }
        Applied::Yes
    }

    fn recover(&mut self, dead: NodeId, retry_in: Duration, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if self.wait != (Wait::Owned { node: dead }) {
            return Applied::Lost;
        }
        self.fence += 1;
        if let Some(attempt) = self.detail.attempts.last_mut().filter(|a| a.status == AttemptStatus::Started) {
            attempt.status = AttemptStatus::Unknown;
            attempt.finished_at = Some(now);
            attempt.error =
                Some(Failure::own(FailureCode::UnknownOutcome, "the node that made the attempt ended before its result was known"));
        }
        // What receipts told meanwhile goes first; then only the decision is missing.
        if matches!(self.status, Status::Delivered | Status::Read) {
            self.wait = Wait::Nothing;
        } else if self.taken_by_route() {
            self.wait = Wait::Receipt { deadline: now.plus(limits::RECEIPT_WAIT) };
        } else if self.newest_failed() {
            self.next_route_or_fail(now, changes);
        } else {
            self.unknown(retry_in, now, changes);
        }
        Applied::Yes
    }

    fn hold(&mut self, reason: HeldReason, now: Timestamp) -> Applied {
        let arrived = matches!(self.status, Status::Delivered | Status::Read);
        if arrived || matches!(self.wait, Wait::Held { .. } | Wait::Receipt { .. } | Wait::Nothing) {
            return Applied::Lost;
        }
        self.fence += 1;
        self.wait = Wait::Held { reason, deadline: now.plus(limits::HOLD_MAX) };
        self.updated_at = now;
        Applied::Yes
    }

    /// Whether no provider has it, and none is being called.
    pub fn can_cancel(&self) -> bool {
        let unsent = self.detail.attempts.iter().all(|a| a.status == AttemptStatus::Failed);
        unsent && matches!(self.wait, Wait::Attempt { .. } | Wait::Held { .. }) && self.status <= Status::Sending
    }

    fn cancel(&mut self, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if !self.can_cancel() {
            return Applied::Lost;
        }
        self.fence += 1;
        self.wait = Wait::Nothing;
        self.detail.failure = Some(Failure::own(FailureCode::Cancelled, "cancelled before it was handed to a provider"));
        self.raise(Status::Cancelled, now, None, changes);
        Applied::Yes
    }

    fn withdraw(&mut self, halt: Option<Halt>, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let waits = matches!(self.wait, Wait::Attempt { .. });
        match halt {
            Some(Halt::Cancelled) if self.can_cancel() => self.cancel(now, changes),
            Some(Halt::Paused) if waits && self.can_cancel() => self.give_back(now, changes),
            // A provider has or had an earlier attempt of it: it is this message that goes on, or ends.
            Some(Halt::Cancelled) if waits => {
                let error = self.detail.attempts.last().and_then(|a| a.error.clone());
                self.fail(error.unwrap_or_else(|| Failure::own(FailureCode::Cancelled, "the broadcast was cancelled")), now, changes);
                Applied::Yes
            }
            Some(Halt::Paused) if waits => {
                self.fence += 1;
                self.wait = Wait::Attempt { due_at: now.plus(limits::PAUSED_LOOK) };
                Applied::Yes
            }
            _ => Applied::Lost,
        }
    }

    /// Ends the message, and gives its recipient and what it took over of the reservation back to the broadcast.
    fn give_back(&mut self, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        let Some(part) = &mut self.detail.broadcast else { return Applied::Lost };
        part.withdrawn = true;
        if let Some(money) = self.detail.money.as_mut().filter(|money| money.prepaid) {
            let open = money.quotes.iter_mut().filter(|quote| quote.state == QuoteState::Open);
            open.for_each(|quote| quote.state = QuoteState::Returned);
        }
        self.fence += 1;
        self.wait = Wait::Nothing;
        let why = "the broadcast was paused before a provider had it; its recipient gets another message when the broadcast is resumed";
        self.detail.failure = Some(Failure::own(FailureCode::Cancelled, why));
        self.raise(Status::Cancelled, now, None, changes);
        Applied::Yes
    }

    fn erase(&mut self) -> Applied {
        if std::mem::replace(&mut self.detail.erased, true) { Applied::Lost } else { Applied::Yes }
    }

    /// Whatever the step was: what is erased is not sent, and keeps no words.
    fn stay_erased(&mut self, seen: usize, now: Timestamp, changes: &mut Vec<Change>) {
        let waits = matches!(self.wait, Wait::Attempt { .. } | Wait::Held { .. });
        if waits && self.cancel(now, changes) == Applied::Lost {
            self.fail(Failure::own(FailureCode::Cancelled, "the contact was erased"), now, changes);
        }
        for attempt in &mut self.detail.attempts {
            forget_whom(attempt);
        }
        self.detail.provider_id = None;
        forget_words(&mut self.detail.failure);
        for change in &mut changes[seen..] {
            change.forget_words();
        }
    }

    fn resolve(&mut self, action: Resolution, now: Timestamp, changes: &mut Vec<Change>) -> Applied {
        if !matches!(self.wait, Wait::Held { .. }) {
            return Applied::Lost;
        }
        self.fence += 1;
        match action {
            Resolution::Resend => {
                // A person has decided after looking: the age of the schedule no longer matters, the validity starts anew.
                let validity = Duration::from_secs(limits::VALIDITY_DEFAULT);
                self.expires_at = self.expires_at.max(now.plus(validity));
                if self.status == Status::Scheduled {
                    self.raise(Status::Queued, now, None, changes);
                }
                self.wait = Wait::Attempt { due_at: now };
            }
            Resolution::Sent => {
                self.wait = Wait::Nothing;
                let newest = self.detail.attempts.len().checked_sub(1);
                if let Some(attempt) = self.detail.attempts.last_mut() {
                    attempt.status = AttemptStatus::Accepted;
                    attempt.error = None;
                    attempt.finished_at.get_or_insert(now);
                }
                self.charge_taken();
                self.note_duplicate();
                self.raise(Status::Sent, now, newest, changes);
            }
            Resolution::Failed => self.fail(unknown_outcome(), now, changes),
        }
        Applied::Yes
    }

    fn retry(&mut self, retry_in: Duration, now: Timestamp, changes: &mut Vec<Change>) {
        let due_at = now.plus(retry_in);
        if due_at >= self.expires_at {
            return self.expire(now, changes);
        }
        self.wait = Wait::Attempt { due_at };
    }

    fn next_route_or_fail(&mut self, now: Timestamp, changes: &mut Vec<Change>) {
        if self.detail.fallback.is_some() {
            return self.fall_back(now);
        }
        let failure = self.detail.attempts.last().and_then(|a| a.error.clone());
        self.fail(failure.unwrap_or_else(unknown_outcome), now, changes);
    }

    fn fall_back(&mut self, now: Timestamp) {
        if let Some(route) = self.detail.fallback.take() {
            self.route = route;
        }
        self.wait = Wait::Attempt { due_at: now };
    }

    fn expire(&mut self, now: Timestamp, changes: &mut Vec<Change>) {
        let slowed = self.detail.attempts.last().and_then(|a| a.error.clone()).filter(|f| f.code == FailureCode::RateLimited);
        let failure = slowed.unwrap_or_else(|| Failure::own(FailureCode::Expired, "its validity ended before a provider took it"));
        self.fail(failure, now, changes);
    }

    fn fail(&mut self, failure: Failure, now: Timestamp, changes: &mut Vec<Change>) {
        self.fence += 1;
        self.wait = Wait::Nothing;
        let newest = self.detail.attempts.len().checked_sub(1);
        // Another attempt of this message was taken and not refused since: its status is the best over all attempts.
        let taken = self.detail.attempts.iter().any(|a| matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered));
        if taken {
            return;
        }
        self.detail.failure = Some(failure);
        self.raise(Status::Failed, now, newest, changes);
    }

    fn newest_failed(&self) -> bool {
        self.detail.attempts.last().is_some_and(|a| a.status == AttemptStatus::Failed)
    }

    /// Whether an attempt by the present route was taken and not refused since.
    fn taken_by_route(&self) -> bool {
        let here = |a: &Attempt| a.channel == self.route.channel && a.connection == self.route.connection;
        self.detail.attempts.iter().any(|a| here(a) && matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered))
    }

    /// Two attempts that may both have gone out may both have arrived.
    fn note_duplicate(&mut self) {
        if self.detail.attempts.iter().filter(|a| a.status != AttemptStatus::Failed).count() > 1 {
            self.detail.possible_duplicate = true;
        }
    }

    /// What a provider says that it costs counts where no price was agreed on.
    fn add_told_cost(&mut self, cost: Option<Cost>) {
        if let Some(cost) = cost.filter(|_| self.detail.money.is_none()) {
            self.add_cost(cost);
        }
    }

    /// Charges the routes by which an attempt was taken, each once.
    fn charge_taken(&mut self) {
        let Detail { money: Some(money), attempts, .. } = &mut self.detail else { return };
        let taken = |channel| {
            attempts.iter().any(|a| a.channel == channel && matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered))
        };
        let mut charged = Vec::new();
        for quote in money.quotes.iter_mut().filter(|q| q.state == QuoteState::Open && taken(q.channel)) {
            quote.state = QuoteState::Charged;
            charged.push(quote.cost);
        }
        charged.into_iter().for_each(|cost| self.add_cost(cost));
    }

    /// With the message its money is final: what was taken is paid, the rest is given back. Later corrections cost nothing.
    fn close_account(&mut self) {
        if !self.is_final() || !self.detail.money.as_ref().is_some_and(Money::is_open) {
            return;
        }
        self.charge_taken();
        let open = self.detail.money.iter_mut().flat_map(|m| &mut m.quotes).filter(|q| q.state == QuoteState::Open);
        open.for_each(|quote| quote.state = QuoteState::Released);
    }

    fn add_cost(&mut self, cost: Cost) {
        let sum = self.detail.cost.get_or_insert_with(Cost::default);
        sum.fee.0 = sum.fee.0.saturating_add(cost.fee.0);
        sum.provider.0 = sum.provider.0.saturating_add(cost.provider.0);
    }

    /// Raises the status to `to` if that ranks higher, and records the change.
    fn raise(&mut self, to: Status, at: Timestamp, attempt: Option<usize>, changes: &mut Vec<Change>) {
        if to <= self.status {
            return;
        }
        match to {
            Status::Sent | Status::Delivered | Status::Read => {
                self.detail.sent_at.get_or_insert(at);
            }
            _ => {}
        }
        let previous = std::mem::replace(&mut self.status, to);
        self.version += 1;
        changes.push(Change {
            status: to,
            previous: Some(previous),
            at,
            attempt: attempt.and_then(|i| self.detail.attempts.get(i).map(|a| (i, a.clone()))),
            failure: self.detail.failure.clone(),
            cost: self.detail.cost,
            possible_duplicate: self.detail.possible_duplicate,
            conversation: false,
        });
    }
}

fn unknown_outcome() -> Failure {
    Failure::own(FailureCode::UnknownOutcome, "nobody can tell whether the last attempt went out")
}
