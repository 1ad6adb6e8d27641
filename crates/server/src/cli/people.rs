//! `nuncio people`: who may sign in to the dashboard.

use clap::Subcommand;

use crate::admin::Command;

#[derive(Debug, Subcommand)]
pub(super) enum PeopleAction {
    /// List people who can sign in.
    List,
    /// Show the link that makes its first visitor the owner.
    Link,
    /// Add a person to a project. Prints the password of a new person once; others keep theirs.
    Add {
        /// Their email address.
        email: String,
        /// viewer (reads), operator (sends and changes) or owner (also manages keys and people).
        #[arg(long, default_value = "operator")]
        role: String,
    },
    /// Change the role of a person in a project.
    Role {
        /// Their email address.
        email: String,
        /// viewer (reads), operator (sends and changes) or owner (also manages keys and people).
        role: String,
    },
    /// Give a person a new password, which is printed once, and end their sessions.
    Password {
        /// Their email address.
        email: String,
    },
    /// Remove the second factor of a person who lost it.
    ResetFactor {
        /// Their email address.
        email: String,
    },
    /// Remove a person from a project, and altogether if they belong to no other.
    Remove {
        /// Their email address.
        email: String,
    },
}

impl From<PeopleAction> for Command {
    fn from(action: PeopleAction) -> Self {
        match action {
            PeopleAction::List => Self::PeopleList,
            PeopleAction::Link => Self::PeopleLink,
            PeopleAction::Add { email, role } => Self::PeopleAdd { email, role },
            PeopleAction::Role { email, role } => Self::PeopleRole { email, role },
            PeopleAction::Password { email } => Self::PeoplePassword { email },
            PeopleAction::ResetFactor { email } => Self::PeopleResetFactor { email },
            PeopleAction::Remove { email } => Self::PeopleRemove { email },
        }
    }
}
