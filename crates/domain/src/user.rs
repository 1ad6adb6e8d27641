//! Users of the dashboard.

use crate::permission::{Permission, Permissions};
use crate::{Environment, ProjectId, Redacted, Timestamp, UserId, channel::named};

named! {
    /// Role of a user. A higher role includes the lower ones.
    Role {
        /// Can read everything but the audit log.
        Viewer = 1 "viewer",
        /// Can also send, change and decide.
        Operator = 2 "operator",
        /// Can also create API keys and manage users.
        Owner = 3 "owner",
    }
}

impl Role {
    /// Returns the equivalent permissions of an API key.
    pub fn permissions(self) -> Permissions {
        if self > Self::Viewer {
            return Permissions::ALL;
        }
        let reads =
            Permission::ALL.iter().filter(|permission| permission.as_str().ends_with(":read") && **permission != Permission::AuditRead);
        reads.fold(Permissions::NONE, |set, permission| set.with(*permission))
    }
}

/// A person who signs in. What they may do is their role in a project, see [`Membership`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct User {
    pub id: UserId,
    /// Canonical email address, used to sign in. Unique in the installation.
    pub email: String,
    /// Argon2id hash of the password, in PHC string format.
    pub password: Redacted<String>,
    /// What the second factor is made of, sealed; `None` for somebody who signs in with the password alone.
    pub factor: Option<Redacted<Vec<u8>>>,
    /// Grows with each change and each use of the second factor.
    pub factor_version: i64,
}

/// A project that a user belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Membership {
    pub project: ProjectId,
    pub role: Role,
}

/// A user of a project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Member {
    pub user: User,
    pub role: Role,
}

/// A signed-in browser.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// SHA-256 of the cookie.
    pub hash: [u8; 32],
    pub user: UserId,
    /// The project the user is viewing. If they no longer belong to it, they view another of theirs.
    pub project: ProjectId,
    /// The environment the user is viewing.
    pub environment: Environment,
    /// When the user signed in.
    pub created_at: Timestamp,
    /// When the user must sign in again.
    pub expires_at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_reads_and_changes_nothing() {
        for permission in Permission::ALL {
            // Viewers do not see what their colleagues changed.
            let reads = permission.as_str().ends_with(":read") && *permission != Permission::AuditRead;
            assert_eq!(Role::Viewer.permissions().allows(*permission), reads, "{}", permission.as_str());
            assert!(Role::Operator.permissions().allows(*permission));
        }
    }
}
