//! The stored JSON part of a message's state.

use serde::{Deserialize, Serialize};

use super::attempt::{Attempt, Failure, OnUnknown, Route};
use super::money::{Cost, Money};
use crate::id::{BroadcastContactId, BroadcastId};
use crate::{authentication::Authentication, broadcast::RecipientQuietHours, channel::Channel, country::Country, time::Timestamp};

/// The part of the state that no query filters by, stored as compact JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Oldest first.
    #[serde(rename = "a", default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// Route to use after the current one fails permanently.
    #[serde(rename = "fb", default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<Route>,
    /// The sender's number or address on that route, if it is not that of the message.
    #[serde(rename = "ff", default, skip_serializing_if = "Option::is_none")]
    pub fallback_from: Option<String>,
    /// Channel of the fallback, from when the message takes it after an attempt by the first route until its own first attempt.
    #[serde(rename = "nc", default, skip_serializing_if = "Option::is_none")]
    pub next_channel: Option<Channel>,
    /// What to do after an attempt with an unknown outcome.
    #[serde(rename = "u", default, skip_serializing_if = "super::is_default")]
    pub on_unknown: OnUnknown,
    /// Fall back if no receipt arrives this many seconds after `sent`.
    #[serde(rename = "fs", default, skip_serializing_if = "Option::is_none")]
    pub fallback_after_seconds: Option<u64>,
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The failure of a message that arrived after all, for events of the time before.
    #[serde(rename = "sf", default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<Failure>,
    /// The ends of the validity that a resend replaced, each with the version of the message until then; for events of that time.
    #[serde(rename = "ex", default, skip_serializing_if = "Vec::is_empty")]
    pub extended: Vec<(i64, Timestamp)>,
    /// Actual cost.
    #[serde(rename = "co", with = "super::money::stored_cost::option", default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
    /// Agreed prices; absent if no route has a price.
    #[serde(rename = "m", default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
    /// Number of SMS segments, if a route is SMS.
    #[serde(rename = "sg", default, skip_serializing_if = "Option::is_none")]
    pub segments: Option<u16>,
    /// Country of the recipient's phone number.
    #[serde(rename = "y", default, skip_serializing_if = "Country::is_unknown")]
    pub country: Country,
    /// When it was to be sent, if not at once.
    #[serde(rename = "sc", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// When a provider first accepted it.
    #[serde(rename = "st", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub sent_at: Option<Timestamp>,
    #[serde(rename = "dt", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<Timestamp>,
    #[serde(rename = "rt", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub read_at: Option<Timestamp>,
    /// Whether the recipient might have received it more than once.
    #[serde(rename = "pd", default, skip_serializing_if = "std::ops::Not::not")]
    pub possible_duplicate: bool,
    /// A reply to STOP, START or HELP; sent even though its recipient opted out.
    #[serde(rename = "cp", default, skip_serializing_if = "std::ops::Not::not")]
    pub compliance: bool,
    /// The provider's id of an inbound message.
    #[serde(rename = "pi", default, skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Authentication of an inbound email.
    #[serde(rename = "au", default, skip_serializing_if = "Option::is_none")]
    pub authentication: Option<Authentication>,
    /// Whether the recipient's data was erased.
    #[serde(rename = "er", default, skip_serializing_if = "std::ops::Not::not")]
    pub erased: bool,
    /// The broadcast the message belongs to.
    #[serde(rename = "b", default, skip_serializing_if = "Option::is_none")]
    pub broadcast: Option<Membership>,
}

impl Detail {
    /// Returns the sender's number or address on the fallback, if the newest attempt went by it, or the first will.
    pub fn taken_fallback_from(&self) -> Option<&str> {
        self.fallback_from.as_deref().filter(|_| self.fallback.is_none() && self.next_channel.is_none())
    }

    /// Drops the fallback: nothing will be sent by it.
    pub(crate) fn drop_fallback(&mut self) {
        if self.fallback.take().is_some() {
            self.fallback_from = None;
        }
    }

    /// Returns the provider's id of the newest attempt that has one, or of the inbound message.
    pub fn provider_message_id(&self) -> Option<&str> {
        let sent = self.attempts.iter().rev().find_map(|attempt| attempt.provider_message_id.as_deref());
        sent.or(self.provider_id.as_deref())
    }
}

/// Links a message to its broadcast and recipient. Stored in the message's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Membership {
    #[serde(rename = "i")]
    pub broadcast: BroadcastId,
    /// The recipient's row in the broadcast.
    #[serde(rename = "c")]
    pub contact: BroadcastContactId,
    /// Whether the provider sends no receipts.
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub no_receipts: bool,
    /// Whether a pause withdrew the message. Its recipient is pending again and gets another message, so this one no longer counts.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
    /// When no attempt may start.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<RecipientQuietHours>,
}

impl Membership {
    /// Links a message to a recipient of a broadcast.
    pub const fn new(broadcast: BroadcastId, contact: BroadcastContactId, no_receipts: bool) -> Self {
        Self { broadcast, contact, no_receipts, withdrawn: false, quiet_hours: None }
    }
}
