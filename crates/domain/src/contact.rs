//! Contacts and their channels.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::channel::{Channel, named};
use crate::id::{AddressId, ContactChannelId, ContactId, Id as _};
use crate::time::Timestamp;

#[derive(Clone, PartialEq, Debug)]
pub struct Contact {
    pub id: ContactId,
    /// ISO 3166-1 alpha-2, `""` if unknown.
    pub country: String,
    /// Incremented by each change; the `sequence` of its events.
    pub version: i64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub detail: ContactDetail,
}

/// The part of a contact that no query filters by, stored as compact JSON. Empty for a contact created by a message.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ContactDetail {
    /// Name given by the caller.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Name reported by a messaging app.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub profile_name: Option<String>,
    /// Channel preferred by the caller.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<Channel>,
    /// The caller's own data.
    #[serde(rename = "m", default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Primary contact channel of each type, if not the oldest.
    #[serde(rename = "pr", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub primaries: BTreeMap<Channel, ContactChannelId>,
    /// Dismissed merge suggestions.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    pub dismissed: Vec<ContactId>,
}

impl ContactDetail {
    /// Returns the key for searching by name and for suggesting merges.
    pub fn name_key(&self) -> Option<String> {
        let key = name_key(self.display_name.as_deref().or(self.profile_name.as_deref())?);
        (!key.is_empty()).then_some(key)
    }
}

/// A name in lower case, with single spaces.
pub fn name_key(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// What a caller has set for a channel of a contact. Channels known only from use have no entry.
#[derive(Clone, PartialEq, Debug)]
pub struct ChannelEntry {
    /// Never the one-way kind.
    pub channel: Channel,
    /// Whether the caller removed it although it was used.
    pub hidden: bool,
    /// `None` means that an inbound message decides.
    pub verified: Option<bool>,
    pub label: Option<String>,
    /// ISO 3166-1 alpha-2, as given by the caller.
    pub country: Option<String>,
    /// The caller's own data.
    pub metadata: Option<Map<String, Value>>,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl ChannelEntry {
    /// Makes an entry without details.
    pub fn new(channel: Channel, now: Timestamp) -> Self {
        Self { channel, hidden: false, verified: None, label: None, country: None, metadata: None, created_at: now, updated_at: now }
    }
}

impl ContactChannelId {
    /// The identifier of a channel of an address. It follows from both, so that a channel which was only used has one without a row,
    /// and keeps it when its address moves to another contact.
    pub fn of(address: AddressId, channel: Channel) -> Self {
        Self::from_uuid(Uuid::from_u128(address.uuid().as_u128() ^ channel.number() as u128))
    }
}

named! {
    /// Reason for a suppression.
    SuppressionReason {
        /// The recipient said STOP or unsubscribed.
        OptOut = 1 "opt_out",
        /// Their mailbox bounced an email.
        Bounce = 2 "bounce",
        /// They complained.
        Complaint = 3 "complaint",
        /// An operator or caller added it.
        Manual = 4 "manual",
    }
}
