//! Links messages to broadcasts.

use serde::{Deserialize, Serialize};

use crate::broadcast::RecipientQuietHours;
use crate::id::{BroadcastContactId, BroadcastId};

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
