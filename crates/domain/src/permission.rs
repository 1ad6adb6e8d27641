//! Permissions of API keys.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize, Serializer};

macro_rules! permissions {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// One permission. The text form is what stands in a key and in `details.requiredPermission` of a 403.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        #[repr(u8)]
        pub enum Permission { $($(#[$doc])* $name,)* }

        impl Permission {
            /// All permissions.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the text form.
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

permissions! {
    /// Send, react, cancel and resolve.
    MessagesSend = "messages:send";
    /// Read messages, attachments, events and the balance.
    MessagesRead = "messages:read";
    /// Read templates.
    TemplatesRead = "templates:read";
    /// Change templates.
    TemplatesWrite = "templates:write";
    /// Read contacts and suppressions.
    ContactsRead = "contacts:read";
    /// Change contacts and suppressions.
    ContactsWrite = "contacts:write";
    /// Read senders and their connections.
    SendersRead = "senders:read";
    /// Change senders and their connections.
    SendersWrite = "senders:write";
    /// Read broadcasts.
    BroadcastsRead = "broadcasts:read";
    /// Create and edit broadcasts.
    BroadcastsWrite = "broadcasts:write";
    /// Send, pause and cancel broadcasts.
    BroadcastsSend = "broadcasts:send";
    /// Read invitations.
    InvitationsRead = "invitations:read";
    /// Create and cancel invitations.
    InvitationsWrite = "invitations:write";
    /// Read phone numbers.
    NumbersRead = "numbers:read";
    /// Change phone numbers.
    NumbersWrite = "numbers:write";
    /// Read webhook deliveries.
    WebhooksRead = "webhooks:read";
    /// Change, test and replay webhooks.
    WebhooksWrite = "webhooks:write";
    /// Read the names and permissions of API keys.
    KeysRead = "keys:read";
    /// Create and revoke API keys.
    KeysWrite = "keys:write";
    /// Read the audit log.
    AuditRead = "audit:read";
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown permission {0:?}; known are * and {known}", known = Permission::ALL.iter().map(|p| p.as_str()).collect::<Vec<_>>().join(", "))]
pub struct UnknownPermission(pub String);

impl FromStr for Permission {
    type Err = UnknownPermission;
    fn from_str(text: &str) -> Result<Self, UnknownPermission> {
        Self::ALL.iter().copied().find(|p| p.as_str() == text).ok_or_else(|| UnknownPermission(text.to_owned()))
    }
}

/// A set of permissions. The set of everything is written `*`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Permissions(u32);

impl Permissions {
    /// `*`: everything, including permissions added later.
    pub const ALL: Self = Self(u32::MAX);
    pub const NONE: Self = Self(0);

    pub const fn allows(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u32) != 0
    }

    /// Returns the set with `permission` added.
    #[must_use]
    pub const fn with(self, permission: Permission) -> Self {
        Self(self.0 | (1 << permission as u32))
    }

    /// What both sets allow.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Parses permission names; an empty list, or one with `*`, means everything. An unknown name is an error even with `*`.
    pub fn parse<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownPermission> {
        let (mut set, mut any, mut all) = (Self::NONE, false, false);
        for name in names {
            any = true;
            if name == "*" {
                all = true;
            } else {
                set = set.with(name.parse()?);
            }
        }
        Ok(if any && !all { set } else { Self::ALL })
    }

    /// Returns the names in the set, or `["*"]`.
    pub fn names(self) -> Vec<&'static str> {
        if self == Self::ALL {
            return vec!["*"];
        }
        Permission::ALL.iter().filter(|p| self.allows(**p)).map(|p| p.as_str()).collect()
    }
}

impl fmt::Debug for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

impl Serialize for Permissions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.names().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Permissions {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let names = Vec::<String>::deserialize(deserializer)?;
        Self::parse(names.iter().map(String::as_str)).map_err(serde::de::Error::custom)
    }
}
