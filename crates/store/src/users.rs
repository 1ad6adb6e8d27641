//! Users of the dashboard, and their sessions.

use async_trait::async_trait;
use nuncio_domain::user::{Session, User};
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

    /// Lists the users of a project, oldest first.
    async fn list_users(&mut self, project: ProjectId) -> Result<Vec<User>>;

    /// Returns whether any user exists.
    async fn has_users(&mut self) -> Result<bool>;

    /// Updates role and password of a user, and ends their sessions; `false` if there is none.
    async fn update_user(&mut self, user: &User) -> Result<bool>;

    /// Deletes a user and their sessions; `false` if there is none.
    async fn delete_user(&mut self, id: UserId) -> Result<bool>;

    async fn insert_session(&mut self, session: &Session) -> Result<()>;

    /// Returns the sessions of a user that are valid at `now`, newest first.
    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>>;

    /// Returns the session with this hash, if valid at `now`, and its user.
    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>>;

    /// Switches a session to another environment; `false` if there is none.
    async fn update_session(&mut self, hash: &[u8; 32], environment: Environment) -> Result<bool>;

    /// Ends a session; `false` if there is none.
    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool>;

    /// Deletes up to `limit` sessions that expired before `now`. Returns how many.
    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64>;
}
