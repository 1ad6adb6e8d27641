//! Applies a step to a stored message.

use nuncio_domain::lifecycle::{Applied, Change, ReceiptKind, Step};
use nuncio_domain::message::{Message, State};
use nuncio_domain::{AddressId, ConnectionId, MessageId, Micros, TenantId, Timestamp};

use crate::RawReceipt;

/// One step of one message.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The environment that the message belongs to.
    pub tenant: TenantId,
    /// The message; `None` if it is the one with the provider's id in `raw`, which also gives attempt and part.
    pub id: Option<MessageId>,
    /// What happens to it. For [`Step::Start`] the store looks up itself whether the recipient is suppressed.
    pub step: Step,
    /// Time of the step.
    pub now: Timestamp,
    /// The provider receipt that caused the step, to be stored with it.
    pub raw: Option<Box<RawReceipt>>,
    /// For the result of an attempt: the connection in whose window it makes room. New messages of this connection that are claimed later are
    /// written with it or after it, so that a crash leaves no more attempts without a result than the window holds.
    pub frees: Option<ConnectionId>,
}

impl Transition {
    /// A step without a provider receipt.
    pub const fn new(tenant: TenantId, id: MessageId, step: Step, now: Timestamp) -> Self {
        Self { tenant, id: Some(id), step, now, raw: None, frees: None }
    }

    /// The step of a receipt whose message is found by the provider's reference. `at` is the time that the provider gives.
    pub fn of_reference(tenant: TenantId, receipt: RawReceipt, kind: ReceiptKind, at: Timestamp, now: Timestamp) -> Self {
        let step = Step::Receipt { attempt: None, part: 0, kind, at };
        Self { tenant, id: None, step, now, raw: Some(Box::new(receipt)), frees: None }
    }
}

/// Result of a [`Transition`].
#[derive(Clone, Debug)]
pub enum Transitioned {
    /// The message exists. The step was applied, or came too late.
    Found {
        /// The message.
        id: MessageId,
        /// Whether the step took effect.
        applied: Applied,
        /// What the step charged.
        spent: Micros,
        /// The state afterwards.
        state: Box<State>,
        /// Changes that the step published, in order.
        changes: Vec<Change>,
        /// The recipient's address row.
        address: AddressId,
        /// The whole message, if the step started an attempt.
        message: Option<Box<Message>>,
    },
    /// No message has this id, or this reference.
    Missing,
}

impl Transitioned {
    /// Whether the message exists and the step took effect.
    pub const fn is_applied(&self) -> bool {
        matches!(self, Self::Found { applied: Applied::Yes, .. })
    }

    /// Changes that the step published, in order.
    pub fn changes(&self) -> &[Change] {
        match self {
            Self::Found { changes, .. } => changes,
            Self::Missing => &[],
        }
    }
}
