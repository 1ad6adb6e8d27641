//! Changing a message.

use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Applied, Change, ReceiptKind, State, Step};
use nuncio_domain::message::Message;
use nuncio_domain::{AddressId, MessageId, TenantId, Timestamp};

use crate::RawReceipt;

/// One step of one message.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The world.
    pub tenant: TenantId,
    /// The message.
    pub id: MessageId,
    /// What happens to it. For [`Step::Start`] the store looks up itself whether the recipient is suppressed.
    pub step: Step,
    /// When.
    pub now: Timestamp,
    /// The receipt that tells of the step, to be kept as it came.
    pub raw: Option<Box<RawReceipt>>,
    /// Whether the message is not that of `id` but the one that the receipt's reference stands for; attempt and part of the step then are
    /// those that it stands for, too.
    pub by_reference: bool,
}

impl Transition {
    /// A step that no receipt tells of.
    pub const fn new(tenant: TenantId, id: MessageId, step: Step, now: Timestamp) -> Self {
        Self { tenant, id, step, now, raw: None, by_reference: false }
    }

    /// What a receipt says about the message that its reference stands for.
    pub fn of_reference(tenant: TenantId, receipt: RawReceipt, kind: ReceiptKind, at: Timestamp, now: Timestamp) -> Self {
        let step = Step::Receipt { attempt: None, part: 0, kind, at };
        let id = MessageId::from_uuid(uuid::Uuid::nil());
        Self { tenant, id, step, now, raw: Some(Box::new(receipt)), by_reference: true }
    }
}

/// What became of a [`Transition`].
#[derive(Clone, Debug)]
pub enum Transitioned {
    /// The message, as it is now, after the step was applied or found to come too late. Whole for a step that started an attempt.
    Found {
        /// Whether the step took effect.
        applied: Applied,
        /// The state afterwards.
        state: Box<State>,
        /// What this step told the outside.
        changes: Vec<Change>,
        /// The recipient's address row.
        address: AddressId,
        /// The whole message, if the step started an attempt.
        message: Option<Box<Message>>,
    },
    /// There is no such message, or no message with such a reference.
    Missing,
}
