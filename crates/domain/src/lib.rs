//! Domain types and rules: identifiers, time, money, addresses, resources and how they change.
//!
//! Everything here is pure: no clock, file or network access; time and randomness are passed in. The crate has few dependencies, so that it
//! compiles in seconds.

pub mod address;
pub mod audit;
pub mod authentication;
pub mod broadcast;
pub mod channel;
pub mod colour;
pub mod config;
pub mod contact;
pub mod country;
pub mod ctx;
pub mod error;
pub mod event;
pub mod health;
pub mod id;
pub mod invitation;
pub mod key;
pub mod ledger;
pub mod lifecycle;
pub mod limits;
pub mod line;
mod log_limit;
pub mod mailbox;
pub mod message;
pub mod money;
pub mod number;
pub mod page;
pub mod permission;
pub mod plain;
pub mod price;
pub mod profile;
pub mod redacted;
#[cfg(feature = "openapi")]
mod schema;
pub mod sms;
pub mod speech;
pub mod template;
pub mod time;
pub mod user;
pub mod webhook;

pub use address::{AddressKind, Recipient};
pub use authentication::Authentication;
pub use channel::{Channel, MessageType, RequestedChannel};
pub use colour::Colour;
pub use config::Environment;
pub use country::Country;
pub use ctx::{Clock, Entropy, Ids};
pub use error::{Error, ErrorCode, FieldError, Result};
pub use id::{
    AddressId, AttachmentId, AuditEntryId, BroadcastContactId, BroadcastId, ConnectionId, ContactChannelId, ContactId, DeliveryId, EventId,
    InvitationId, KeyId, MessageId, PhoneNumberId, ProjectId, ReceiptId, SenderId, SuppressionId, TeamId, TemplateId, TenantId, UserId,
};
pub use log_limit::LogLimit;
pub use message::Base64;
pub use money::Micros;
pub use permission::{Permission, Permissions};
pub use redacted::Redacted;
pub use time::Timestamp;

/// Replaces a field by what a change has for it, if anything.
pub fn set_if_given<T: Clone>(field: &mut T, new: &Option<T>) {
    if let Some(new) = new {
        field.clone_from(new);
    }
}
