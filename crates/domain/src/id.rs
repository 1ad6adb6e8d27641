//! Typed identifiers.
//!
//! Every identifier is a UUIDv7 (RFC 9562 §5.7): 48 bits of Unix milliseconds, then random bits. Its text form, the only one
//! that leaves the process, is a prefix and 26 characters of lower-case Crockford base32. Both forms sort by time of birth.
//! The prefixes are append-only: one that was ever given out is never used for something else.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

use crate::time::Timestamp;

/// Key of one environment of a project. Leads every primary key of tenant data. Internal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TenantId(pub i64);

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const TEXT_LEN: usize = 26;

/// Not an identifier of the expected kind. Returned as `404 not_found` for a path parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier of the form {prefix}_ followed by 26 characters")]
pub struct InvalidId {
    pub prefix: &'static str,
}

fn encode(bytes: Uuid, out: &mut [u8; TEXT_LEN]) {
    let mut value = bytes.as_u128();
    for slot in out.iter_mut().rev() {
        *slot = ALPHABET[(value & 31) as usize];
        value >>= 5;
    }
}

static DIGITS: [Option<u8>; 256] = {
    let mut table = [None; 256];
    let mut digit = 0;
    while digit < ALPHABET.len() {
        table[ALPHABET[digit] as usize] = Some(digit as u8);
        digit += 1;
    }
    table
};

fn decode(text: &str) -> Option<Uuid> {
    let bytes = text.as_bytes();
    if bytes.len() != TEXT_LEN || DIGITS[usize::from(bytes[0])]? > 7 {
        return None; // 26 digits hold 130 bits: the first digit can use only three
    }
    let mut value = 0_u128;
    for byte in bytes {
        value = (value << 5) | u128::from(DIGITS[usize::from(*byte)]?);
    }
    Some(Uuid::from_u128(value))
}

/// Makes a UUIDv7 with the given time; `random` fills the other 74 bits (6 of its bits give way to version and variant).
pub fn uuid_v7(at: Timestamp, random: [u8; 10]) -> Uuid {
    let millis = at.millis().max(0) as u64;
    let mut bytes = [0_u8; 16];
    bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&random);
    bytes[6] = (bytes[6] & 0x0f) | 0x70;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}

/// Returns the smallest UUIDv7 with the given time.
pub fn uuid_floor(at: Timestamp) -> Uuid {
    Uuid::from_u128(uuid_v7(at, [0; 10]).as_u128() & !((1 << 80) - 1))
}

/// Returns the time of a UUIDv7, to the millisecond.
pub fn uuid_time(id: Uuid) -> Timestamp {
    Timestamp::from_millis((id.as_u128() >> 80) as i64)
}

/// Common operations of all identifier types.
pub trait Id: Copy + Eq + fmt::Display + fmt::Debug + Send + Sync + 'static {
    /// Letters before the underscore.
    const PREFIX: &'static str;
    fn from_uuid(uuid: Uuid) -> Self;
    fn uuid(self) -> Uuid;
    /// Returns the creation time, to the millisecond.
    fn created_at(self) -> Timestamp {
        uuid_time(self.uuid())
    }
}

/// The schema of identifiers with this prefix.
#[cfg(feature = "openapi")]
fn schema(prefix: &str) -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
    utoipa::openapi::ObjectBuilder::new()
        .schema_type(utoipa::openapi::schema::Type::String)
        .description(Some(format!("`{prefix}_` and 26 characters. Sorts by creation time.")))
        .pattern(Some(format!("^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$")))
        .examples([format!("{prefix}_01hgw2bbg0e9tatjpp9vyrkcyk")])
        .into()
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Uuid);

        impl Id for $name {
            const PREFIX: &'static str = $prefix;
            fn from_uuid(uuid: Uuid) -> Self { Self(uuid) }
            fn uuid(self) -> Uuid { self.0 }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = [0_u8; TEXT_LEN];
                encode(self.0, &mut text);
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(std::str::from_utf8(&text).unwrap_or_default())
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> { schema($prefix) }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { fmt::Display::fmt(self, f) }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                text.strip_prefix(concat!($prefix, "_")).and_then(decode).map(Self).ok_or(InvalidId { prefix: $prefix })
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> { serializer.collect_str(self) }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}

ids! {
    /// A message.
    MessageId = "msg";
    /// A contact: one person with any number of addresses.
    ContactId = "con";
    /// One channel of a contact.
    ContactChannelId = "chn";
    /// An address row: one identifier of one kind in one environment. Internal.
    AddressId = "adr";
    /// A sender profile.
    SenderId = "snd";
    /// A provider account that carries one channel of a sender.
    ConnectionId = "cnx";
    /// An API key.
    KeyId = "key";
    /// A project: a live and a test environment.
    ProjectId = "prj";
    /// The team that a project belongs to.
    TeamId = "team";
    /// An entry of the event log.
    EventId = "evt";
    /// An attachment.
    AttachmentId = "att";
    /// A suppressed recipient.
    SuppressionId = "sup";
    /// A broadcast.
    BroadcastId = "brd";
    /// One recipient of a broadcast.
    BroadcastContactId = "bct";
    /// A template.
    TemplateId = "tpl";
    /// A receipt as a provider sent it.
    ReceiptId = "rcp";
    /// A phone number of the operator's inventory.
    PhoneNumberId = "num";
    /// An invitation.
    InvitationId = "inv";
    /// A person who signs in to the dashboard.
    UserId = "usr";
    /// A webhook delivery.
    DeliveryId = "dlv";
    /// An entry of the audit log.
    AuditEntryId = "aud";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_round_trips_and_sorts_by_time() {
        let early = MessageId::from_uuid(uuid_v7(Timestamp::from_millis(1_000), [0xff; 10]));
        let late = MessageId::from_uuid(uuid_v7(Timestamp::from_millis(1_001), [0; 10]));
        assert_eq!(early.to_string().parse::<MessageId>(), Ok(early));
        assert_eq!(early.to_string().len(), 30);
        assert!(early.to_string() < late.to_string());
        assert_eq!(late.created_at(), Timestamp::from_millis(1_001));
    }

    #[test]
    fn what_is_no_identifier_is_refused() {
        for text in [
            "",
            "msg_",
            "con_00000000000000000000000000",
            "msg_80000000000000000000000000",
            "msg_0000000000000000000000000i",
            "msg_0000000000000000000000000é",
        ] {
            assert!(text.parse::<MessageId>().is_err(), "{text}");
        }
    }
}
