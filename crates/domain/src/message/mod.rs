//! Messages: the caller's request and the delivery state.

use std::sync::Arc;

use crate::channel::MessageType;
use crate::id::{AddressId, MessageId, SenderId, TenantId};

mod attempt;
mod content;
mod detail;
pub(crate) mod money;
mod request;
mod state;

pub use attempt::{Attempt, AttemptStatus, Failure, FailureCode, OnUnknown, Route};
pub use content::{Button, Card, Content, CtaHeaderType, Row, Section};
pub use detail::{Detail, Membership};
pub use money::{Cost, Money, Quote, QuoteState};
pub use request::{Attachment, AttachmentSource, Base64, Considered, Request, Routing, beginning};
pub use state::{Direction, HeldReason, NodeId, State, Status, Wait};

/// A stored message: the immutable request and the mutable [`State`].
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    pub tenant: TenantId,
    /// Also holds the creation time.
    pub id: MessageId,
    pub direction: Direction,
    pub message_type: MessageType,
    /// The recipient in canonical form.
    pub to: String,
    /// The sender's phone number or address at the time of acceptance; `""` if none.
    pub from: String,
    pub sender: SenderId,
    /// The recipient's address row; links to the contact.
    pub address: AddressId,
    /// Shared, as it never changes and can be large.
    pub request: Arc<Request>,
    pub state: State,
}

impl Message {
    /// Returns the request for modification; copies it first if it is shared.
    pub fn request_mut(&mut self) -> &mut Request {
        Arc::make_mut(&mut self.request)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
