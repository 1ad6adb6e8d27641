//! Changing a message.

use nuncio_domain::lifecycle::{Applied, Change, State, Step};
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
}

impl Transition {
    /// A step that no receipt tells of.
    pub const fn new(tenant: TenantId, id: MessageId, step: Step, now: Timestamp) -> Self {
        Self { tenant, id, step, now, raw: None }
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
    /// There is no such message.
    Missing,
}
