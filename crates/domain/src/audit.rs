//! The audit log: who changed what.

use serde_json::Value;

use crate::{AuditEntryId, TenantId, channel::named};

named! {
    /// What kind of actor made a change.
    #[cfg_attr(feature = "openapi", schema(as = AuditActorType))]
    ActorKind {
        /// A person who is signed in to the dashboard.
        Person = 1 "person",
        ApiKey = 2 "api_key",
        /// The command line of the server.
        CommandLine = 3 "command_line",
        /// The client behind the link of an invitation.
        Guest = 4 "guest",
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
