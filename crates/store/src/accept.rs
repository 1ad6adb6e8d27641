//! Stores a new message.

use nuncio_domain::message::{Message, NodeId};
use nuncio_domain::{AddressId, ContactId, MessageId, Recipient, Timestamp};

use crate::ledger::Shortage;
use crate::quotas::Storage;

/// A planned message, ready to be stored.
#[derive(Clone, Debug)]
pub struct Accept {
    /// The message as it is born: `queued` or `scheduled`, waiting for an attempt. Its `address` is [`Self::new_address`];
    /// the store puts the real one in when the recipient is known.
    pub message: Message,
    /// The recipient: kind and canonical identifier.
    pub recipient: Recipient,
    /// Country of the recipient (ISO 3166-1 alpha-2, `""` if unknown), stored if a contact is created.
    pub country: String,
    /// Keyed hash of the recipient's identifier, under which suppressions of erased contacts are stored. If the recipient is unknown,
    /// suppressions with this hash get the identifier back and apply again.
    pub mark: String,
    /// Id of the address row that is inserted if the recipient is unknown.
    pub new_address: AddressId,
    /// Id of the contact that is inserted if the recipient is unknown.
    pub new_contact: ContactId,
    /// The caller's idempotency key.
    pub idempotency: Option<Idempotency>,
    /// The configuration epoch that the plan rests on.
    pub epoch: i64,
    /// For a message of a broadcast: the fence with which this node claimed the broadcast. If the fence has changed, nothing is written
    /// ([`Accepted::Closed`]), so that only one node at a time spends the broadcast's reservation.
    pub broadcast_fence: i64,
    /// Set if this node holds a permit: the message is stored as `sending`, with its first attempt started.
    pub claim: Option<Claim>,
    /// The time of the request.
    pub now: Timestamp,
}

/// Starts the first attempt in the accept transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// The node that runs the attempt.
    pub node: NodeId,
}

/// An idempotency key and the request that it guards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idempotency {
    /// The kind of request. Equal keys of different operations are independent.
    pub operation: IdempotentOperation,
    /// Keyed hash of the caller's key.
    pub key: String,
    /// Hash of the request with defaults filled in, without the key.
    pub fingerprint: [u8; 32],
}

/// Requests that an idempotency key can guard. Equal keys of different operations are independent. The numbers are stored: none is ever
/// given to another operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdempotentOperation {
    /// `POST /v1/messages`.
    SendMessage = 1,
    /// `POST /v1/messages/{id}/reactions`.
    React = 2,
    /// `POST /v1/contacts`.
    CreateContact = 3,
    /// `POST /v1/contacts/{id}/channels`.
    AddContactChannel = 4,
    /// `POST /v1/senders`.
    CreateSender = 5,
    /// `POST /v1/broadcasts`.
    CreateBroadcast = 6,
    /// `POST /v1/templates`.
    CreateTemplate = 7,
    /// `POST /v1/phone-numbers`.
    AcquirePhoneNumber = 8,
    /// `POST /v1/invitations`.
    CreateInvitation = 9,
    /// `POST /v1/suppressions`.
    CreateSuppression = 10,
    /// `POST /v1/broadcasts/{id}/contacts`.
    AddBroadcastContacts = 11,
    /// `POST /v1/sandbox/inbound`.
    PlayInbound = 12,
    /// `POST /v1/keys`.
    CreateKey = 13,
    /// `POST /v1/broadcasts/{id}/test`.
    TestBroadcast = 14,
    /// `POST /v1/broadcasts/{id}/clone`.
    CloneBroadcast = 15,
}

impl IdempotentOperation {
    /// The number that is stored.
    pub const fn number(self) -> i16 {
        self as i16
    }
}

/// Result of an [`Accept`].
#[derive(Clone, Debug)]
pub enum Accepted {
    /// Stored.
    New {
        /// The message as stored: started, waiting, or failed because the recipient is suppressed.
        message: Box<Message>,
        /// The contact that its recipient belongs to.
        contact: ContactId,
    },
    /// The idempotency key was used; nothing was written.
    Duplicate {
        /// The message that used it first.
        original: MessageId,
        /// Whether the two requests were the same.
        same_request: bool,
    },
    /// The plan rests on an old configuration epoch; nothing was written.
    Stale,
    /// The message may cost more than is available; nothing was written, and its idempotency key is still free.
    Short(Shortage),
    /// The storage quota of the environment leaves no room for the message; nothing was written, and its idempotency key is still free.
    Full {
        /// Quota and usage of the environment, without the message.
        storage: Storage,
        /// How many bytes the message needs.
        required: i64,
    },
    /// The broadcast of the message is not being sent, was claimed by another node, or has enqueued this recipient already; nothing was
    /// written.
    Closed,
}
