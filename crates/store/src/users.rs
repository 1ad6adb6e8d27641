//! Users of the dashboard, their projects, and their sessions.

use async_trait::async_trait;
use nuncio_domain::user::{Member, Membership, Session, User};
use nuncio_domain::{Environment, ProjectId, Redacted, Timestamp, UserId};

use crate::error::Result;

#[async_trait]
pub trait UserRepo {
    /// Stores a user; `false` if the email address is taken.
    async fn insert_user(&mut self, user: &User, now: Timestamp) -> Result<bool>;

    /// Returns the user with this email address.
    async fn find_user(&mut self, email: &str) -> Result<Option<User>>;

    /// Returns the user with this id.
    async fn find_user_by_id(&mut self, id: UserId) -> Result<Option<User>>;

    /// Replaces the second factor of a user if its version is still `version`, and raises that. Returns whether it did.
    async fn put_factor(&mut self, id: UserId, version: i64, factor: Option<&Redacted<Vec<u8>>>) -> Result<bool>;

    /// Returns whether any user exists.
    async fn has_users(&mut self) -> Result<bool>;

    /// Replaces the password of a user and ends their sessions; `false` if there is none.
    async fn put_password(&mut self, id: UserId, password: &Redacted<String>) -> Result<bool>;

    /// Deletes a user, their memberships and their sessions; `false` if there is none.
    async fn delete_user(&mut self, id: UserId) -> Result<bool>;

    /// Adds a user to a project; `false` if they already belong to it.
    async fn insert_membership(&mut self, user: UserId, membership: Membership, now: Timestamp) -> Result<bool>;

    /// Changes the role of a user in a project; `false` if they do not belong to it.
    async fn update_membership(&mut self, user: UserId, membership: Membership) -> Result<bool>;

    /// Removes a user from a project; `false` if they do not belong to it.
    async fn delete_membership(&mut self, user: UserId, project: ProjectId) -> Result<bool>;

    /// Lists the projects of a user, oldest project first.
    async fn list_memberships(&mut self, user: UserId) -> Result<Vec<Membership>>;

    /// Lists the users of a project, oldest user first.
    async fn list_members(&mut self, project: ProjectId) -> Result<Vec<Member>>;

    /// Returns `false` if the password or the second factor of `user` was changed since it was read.
    async fn insert_session(&mut self, session: &Session, user: &User) -> Result<bool>;

    /// Returns the sessions of a user that are valid at `now`, newest first.
    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>>;

    /// Returns the session with this hash, if valid at `now`, and its user.
    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>>;

    /// Switches a session to another project or environment; `false` if there is none.
    async fn update_session(&mut self, hash: &[u8; 32], project: ProjectId, environment: Environment) -> Result<bool>;

    /// Ends a session; `false` if there is none.
    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool>;

    /// Deletes up to `limit` sessions that expired before `now`. Returns how many.
    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64>;
}
