//! Accepting a message.

use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::message::Message;
use nuncio_domain::{AddressId, ContactId, MessageId, Recipient, Timestamp};

use crate::ledger::Shortage;
use crate::quotas::Storage;

/// A planned message, ready to be written.
#[derive(Clone, Debug)]
pub struct Accept {
    /// The message as it is born: `queued` or `scheduled`, waiting for an attempt. Its `address` is [`Self::new_address`];
    /// the store puts the real one in when the recipient is known.
    pub message: Message,
    /// The recipient.
    pub recipient: Recipient,
    /// Country of the recipient (ISO 3166-1 alpha-2, `""` if unknown), for a contact that is made.
    pub country: String,
    /// What stands for the recipient's identifier in suppressions of somebody who was erased. Should the recipient be unknown, such
    /// suppressions hold again, with the identifier that is known anew.
    pub mark: String,
    /// Identifier of the address row, should the recipient be unknown.
    pub new_address: AddressId,
    /// Identifier of the contact, should the recipient be unknown.
    pub new_contact: ContactId,
    /// The caller's idempotency key.
    pub idempotency: Option<Idempotency>,
    /// The configuration epoch that the plan rests on.
    pub epoch: i64,
    /// Of a message that is part of a broadcast: the broadcast's fence as whoever hands over took it. Under any other nothing is written,
    /// so that one alone pays out of the broadcast's reservation at a time.
    pub broadcast_fence: i64,
    /// Set when a permit is at hand: the message is born `sending`, its first attempt started by this node.
    pub claim: Option<Claim>,
    /// The time of the request.
    pub now: Timestamp,
}

/// Starts the first attempt in the accept transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Claim {
    /// Who makes the attempt.
    pub node: NodeId,
}

/// An idempotency key and what it stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Idempotency {
    /// What kind of request it guards.
    pub operation: Operation,
    /// What stands for the caller's key.
    pub key: String,
    /// Hash of the request with defaults filled in, without the key.
    pub fingerprint: [u8; 32],
}

/// Requests that an idempotency key can guard. Keys of different operations do not meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// `POST /v1/messages`.
    SendMessage,
    /// `POST /v1/messages/{id}/reactions`.
    React,
    /// `POST /v1/contacts`.
    CreateContact,
    /// `POST /v1/contacts/{id}/channels`.
    AddContactChannel,
    /// `POST /v1/senders`.
    CreateSender,
    /// `POST /v1/broadcasts`.
    CreateBroadcast,
    /// `POST /v1/templates`.
    CreateTemplate,
    /// `POST /v1/phone-numbers`.
    AcquirePhoneNumber,
    /// `POST /v1/invitations`.
    CreateInvitation,
    /// `POST /v1/suppressions`.
    CreateSuppression,
    /// `POST /v1/broadcasts/{id}/contacts`.
    AddBroadcastContacts,
    /// `POST /v1/sandbox/inbound`.
    PlayInbound,
}

impl Operation {
    /// The operations that make a message.
    pub const OF_MESSAGES: [Self; 2] = [Self::SendMessage, Self::React];

    /// The number that is stored. Never given to another operation.
    pub const fn number(self) -> i16 {
        match self {
            Self::SendMessage => 1,
            Self::React => 2,
            Self::CreateContact => 3,
            Self::AddContactChannel => 4,
            Self::CreateSender => 5,
            Self::CreateBroadcast => 6,
            Self::CreateTemplate => 7,
            Self::AcquirePhoneNumber => 8,
            Self::CreateInvitation => 9,
            Self::CreateSuppression => 10,
            Self::AddBroadcastContacts => 11,
            Self::PlayInbound => 12,
        }
    }
}

/// What became of an [`Accept`].
#[derive(Clone, Debug)]
pub enum Accepted {
    /// It is written. The message is as stored: started, waiting, or failed because the recipient is suppressed.
    New {
        /// The message.
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
    /// The world has a quota that leaves no room for the message; nothing was written, and its idempotency key is still free.
    Full {
        /// What the world keeps, without the message.
        storage: Storage,
        /// How many bytes the message needs.
        required: i64,
    },
    /// The message is part of a broadcast that is not being sent or was taken by somebody else since, or whose recipient was handed over
    /// before; nothing was written.
    Closed,
}
