//! Attempts and their failures.

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, named};
use crate::{id::ConnectionId, time::Timestamp};

named! {
    /// The closed list of failure reasons.
    #[cfg_attr(feature = "openapi", schema(as = MessageErrorCode))]
    FailureCode {
        /// The recipient does not exist.
        InvalidRecipient = 1 "invalid_recipient",
        /// Delivery failed.
        Undeliverable = 2 "undeliverable",
        /// The recipient is suppressed: opted out, bounced, complained, or was added by hand.
        RecipientSuppressed = 3 "recipient_suppressed",
        /// The recipient blocked the sender.
        BlockedByRecipient = 4 "blocked_by_recipient",
        /// The conversation window is closed.
        WindowClosed = 5 "window_closed",
        /// The provider rejected the content.
        ContentRejected = 6 "content_rejected",
        /// An attachment could not be fetched.
        AttachmentUnavailable = 7 "attachment_unavailable",
        /// The provider rejected the message for another reason.
        ProviderRejected = 8 "provider_rejected",
        /// The provider rejected the credentials.
        CredentialsInvalid = 9 "credentials_invalid",
        /// The provider throttled the connection until the validity ended.
        RateLimited = 10 "rate_limited",
        Expired = 11 "expired",
        /// It is unknown whether it was sent.
        UnknownOutcome = 12 "unknown_outcome",
        Cancelled = 13 "cancelled",
        /// An internal error.
        Internal = 14 "internal",
    }
}

named! {
    /// What to do after an attempt with an unknown outcome.
    #[derive(Default)]
    OnUnknown {
        /// Retry, and mark the message as a possible duplicate.
        #[default]
        Resend = 1 "resend",
        /// Wait for a human decision.
        Hold = 2 "hold",
        /// Give up.
        Fail = 3 "fail",
    }
}

/// A channel and the connection that carries it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Route {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// Kind of provider.
    #[serde(rename = "k")]
    pub provider: String,
}

named! {
    /// Status of an attempt.
    AttemptStatus {
        /// The provider call is in flight, or was when the process died.
        Started = 1 "started",
        /// The provider accepted it.
        Accepted = 2 "accepted",
        /// A receipt reports delivery.
        Delivered = 3 "delivered",
        Failed = 4 "failed",
        /// The message might have been sent.
        Unknown = 5 "unknown",
    }
}

/// One provider call for a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// Kind of provider, such as `smtp`.
    #[serde(rename = "k")]
    pub provider: String,
    #[serde(rename = "s")]
    pub status: AttemptStatus,
    /// When its start was stored.
    #[serde(rename = "b", with = "crate::time::millis")]
    pub started_at: Timestamp,
    #[serde(rename = "e", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Number of parts, if there is more than one and each gets its own receipts.
    #[serde(rename = "n", default, skip_serializing_if = "super::is_default")]
    pub parts: u8,
    /// Delivered parts, one bit each.
    #[serde(rename = "d", default, skip_serializing_if = "super::is_default")]
    pub arrived: u32,
    /// Failure, if it failed.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
    /// What it was before each correction of its result, with the version of the message until then; for events of that time.
    #[serde(rename = "h", default, skip_serializing_if = "Vec::is_empty")]
    pub superseded: Vec<(i64, Self)>,
}

impl Attempt {
    /// Returns the attempt as it was when the message had this version; results of the first attempt alone are in the changes themselves.
    pub fn as_of(&self, version: i64) -> &Self {
        self.superseded.iter().find(|(until, _)| *until >= version).map_or(self, |(_, attempt)| attempt)
    }
}

/// A failure reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Reason from the closed list.
    #[serde(rename = "c")]
    pub code: FailureCode,
    /// The provider's own code.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// Explanation for people.
    #[serde(rename = "m")]
    pub message: String,
}

impl Failure {
    /// Makes a failure that nuncio itself detected.
    pub fn own(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, provider_code: None, message: message.into() }
    }
}
