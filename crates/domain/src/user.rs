//! People who sign in to the dashboard.

use crate::permission::{Permission, Permissions};
use crate::{Environment, ProjectId, Redacted, Timestamp, UserId};

/// What a person may do. A higher role includes the lower ones.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Role {
    /// Looks at everything and changes nothing.
    Viewer,
    /// Sends, changes and decides.
    Operator,
    /// Also makes API keys and looks after people.
    Owner,
}

impl Role {
    /// Every role.
    pub const ALL: &'static [Self] = &[Self::Viewer, Self::Operator, Self::Owner];

    /// The number that is stored.
    pub const fn number(self) -> i16 {
        match self {
            Self::Viewer => 1,
            Self::Operator => 2,
            Self::Owner => 3,
        }
    }

    /// The role with this number.
    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.number() == number)
    }

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Operator => "operator",
            Self::Owner => "owner",
        }
    }

    /// The role with this name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|role| role.as_str() == text)
    }

    /// What it allows, in the words of API keys.
    pub fn permissions(self) -> Permissions {
        if self > Self::Viewer {
            return Permissions::ALL;
        }
        let reads = Permission::ALL.iter().filter(|permission| permission.as_str().ends_with(":read"));
        reads.fold(Permissions::NONE, |set, permission| set.with(*permission))
    }
}

/// A person of a project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    /// Its identifier.
    pub id: UserId,
    /// The project.
    pub project: ProjectId,
    /// The canonical email address, by which they sign in. One person has one address on this installation.
    pub email: String,
    /// What they may do.
    pub role: Role,
    /// The password, hashed with Argon2id in the PHC string format.
    pub password: Redacted<String>,
}

/// A browser that is signed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// The SHA-256 hash of the cookie.
    pub hash: [u8; 32],
    /// Who signed in.
    pub user: UserId,
    /// The environment that they look at.
    pub environment: Environment,
    /// When they signed in.
    pub created_at: Timestamp,
    /// When they must sign in again.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_reads_and_changes_nothing() {
        for permission in Permission::ALL {
            let reads = permission.as_str().ends_with(":read");
            assert_eq!(Role::Viewer.permissions().allows(*permission), reads, "{}", permission.as_str());
            assert!(Role::Operator.permissions().allows(*permission));
        }
    }
}
