//! Contacts: people, and the ways to reach them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::channel::{Channel, named};
use crate::id::{AddressId, ContactChannelId, ContactId, Id as _};
use crate::time::Timestamp;

/// A person.
#[derive(Clone, PartialEq, Debug)]
pub struct Contact {
    /// Its identifier.
    pub id: ContactId,
    /// ISO 3166-1 alpha-2, `""` if unknown.
    pub country: String,
    /// Grows with every change; the `sequence` of its events.
    pub version: i64,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// The rest.
    pub detail: ContactDetail,
}

/// The part of a contact that no query looks at, stored as compact JSON. A contact that was made by a message has none.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct ContactDetail {
    /// The name that the caller gave.
    #[serde(rename = "n", default, skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// The name that a messaging app told.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub profile_name: Option<String>,
    /// The channel that the caller prefers.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub default_channel: Option<Channel>,
    /// The caller's own data.
    #[serde(rename = "m", default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// Which contact channel is the primary one of its type, where that is not the oldest.
    #[serde(rename = "pr", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub primaries: BTreeMap<Channel, ContactChannelId>,
    /// Contacts that were suggested for merging and turned down.
    #[serde(rename = "x", default, skip_serializing_if = "Vec::is_empty")]
    pub dismissed: Vec<ContactId>,
}

impl ContactDetail {
    /// What contacts are compared by to find two that are one person, and searched by.
    pub fn name_key(&self) -> Option<String> {
        let key = name_key(self.display_name.as_deref().or(self.profile_name.as_deref())?);
        (!key.is_empty()).then_some(key)
    }
}

/// A name in lower case, with single spaces.
pub fn name_key(name: &str) -> String {
    name.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// What a caller said of one channel of a contact. Channels that were only used have none.
#[derive(Clone, PartialEq, Debug)]
pub struct ChannelEntry {
    /// The channel; never the one-way kind.
    pub channel: Channel,
    /// Taken away by the caller, though it was used.
    pub hidden: bool,
    /// Whether it is verified; when absent, an inbound message decides.
    pub verified: Option<bool>,
    /// The caller's name for it.
    pub label: Option<String>,
    /// ISO 3166-1 alpha-2, as the caller said.
    pub country: Option<String>,
    /// The caller's own data.
    pub metadata: Option<Map<String, Value>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl ChannelEntry {
    /// An entry that says nothing but that the channel is there.
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
    /// Why nothing may be sent.
    SuppressionReason {
        /// The recipient said STOP or unsubscribed.
        OptOut = 1 "opt_out",
        /// Their mailbox bounced.
        Bounce = 2 "bounce",
        /// They complained.
        Complaint = 3 "complaint",
        /// A person entered it.
        Manual = 4 "manual",
    }
}
