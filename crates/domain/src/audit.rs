//! The audit log: who changed what.

use serde_json::Value;

use crate::{AuditEntryId, TenantId};

/// What kind of actor made a change.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ActorKind {
    /// A person who is signed in to the dashboard.
    Person,
    /// An API key.
    Key,
    /// The command line of the server.
    CommandLine,
    /// The client behind the link of an invitation.
    Guest,
}

impl ActorKind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[Self::Person, Self::Key, Self::CommandLine, Self::Guest];

    /// The number that is stored.
    pub const fn number(self) -> i16 {
        match self {
            Self::Person => 1,
            Self::Key => 2,
            Self::CommandLine => 3,
            Self::Guest => 4,
        }
    }

    /// The kind with this number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Person => "person",
            Self::Key => "api_key",
            Self::CommandLine => "command_line",
            Self::Guest => "guest",
        }
    }
}

/// Who made a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// What kind of actor.
    pub kind: ActorKind,
    /// The email address of a person, the id of an API key or an invitation, or `command line`: what the log is filtered by.
    pub name: String,
    /// The name of an API key at that time; empty for other actors.
    pub label: String,
}

/// One change. Entries are written once, by the transaction that changes, and never changed.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// Its id, which holds the time of the change.
    pub id: AuditEntryId,
    /// The environment. Changes of a whole project, such as of its people, are stored with those of its live environment.
    pub tenant: TenantId,
    /// Who.
    pub actor: Actor,
    /// The network address that the request came from; empty for the command line.
    pub from: String,
    /// The kind of resource, such as `sender`.
    pub kind: String,
    /// What was done to it, such as `update`.
    pub verb: String,
    /// The id of the resource, or its name if it has none.
    pub resource: String,
    /// Members that changed or went, as they were before. Without secrets, contents of messages and personal data of contacts.
    pub before: Option<Value>,
    /// Members that changed or are new, as they are now.
    pub after: Option<Value>,
}

/// Which entries to list.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Filter {
    /// Those of the actor with this name.
    pub actor: Option<String>,
    /// Those about the resource with this id or name.
    pub resource: Option<String>,
    /// Those about resources of this kind.
    pub kind: Option<String>,
}
