//! Published changes of a message, and what an erasure strips from them.

use serde::{Deserialize, Serialize};

use crate::message::{Attempt, Cost, Failure, Status};
use crate::time::Timestamp;

/// A published change of a message.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Change {
    #[serde(rename = "s")]
    pub status: Status,
    /// Absent for a new message.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Status>,
    #[serde(rename = "t", with = "crate::time::millis")]
    pub at: Timestamp,
    /// The attempt that caused it: its index, and its state after the change.
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<(usize, Attempt)>,
    /// The failure after the change.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The cost after the change.
    #[serde(rename = "c", with = "crate::message::money::stored_cost::option", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Whether the message is a possible duplicate after the change.
    #[serde(rename = "d", default, skip_serializing_if = "std::ops::Not::not")]
    pub possible_duplicate: bool,
    /// Whether this inbound message opened a conversation: the contact's first on its channel, or the first after a day of silence.
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub conversation: bool,
}

impl Change {
    /// Strips provider error text, which may contain the recipient. Returns whether there was any.
    pub fn strip_provider_text(&mut self) -> bool {
        let attempt = self.attempt.as_mut().is_some_and(|(_, attempt)| strip_recipient_data(attempt));
        strip_provider_text(&mut self.failure) | attempt
    }
}

/// Strips what may identify the recipient: provider text, and the provider's id, which some derive from the phone number.
pub(super) fn strip_recipient_data(attempt: &mut Attempt) -> bool {
    let known = attempt.provider_message_id.take().is_some();
    strip_provider_text(&mut attempt.error) | known
}

/// Reduces a failure to its code.
pub(super) fn strip_provider_text(failure: &mut Option<Failure>) -> bool {
    let Some(failure) = failure.as_mut().filter(|f| f.message != f.code.as_str()) else { return false };
    failure.message = failure.code.as_str().to_owned();
    true
}
