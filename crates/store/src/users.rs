//! People who sign in to the dashboard, and their sessions.

use async_trait::async_trait;
use nuncio_domain::user::{Session, User};
use nuncio_domain::{Environment, ProjectId, Timestamp, UserId};

use crate::error::Result;

/// People who sign in, and their sessions.
#[async_trait]
pub trait UserRepo {
    /// Writes a person; `false` when their email address has one already.
    async fn insert_user(&mut self, user: &User, now: Timestamp) -> Result<bool>;

    /// The person with this email address.
    async fn find_user(&mut self, email: &str) -> Result<Option<User>>;

    /// The people of a project, oldest first.
    async fn list_users(&mut self, project: ProjectId) -> Result<Vec<User>>;

    /// Whether anybody can sign in at all.
    async fn has_users(&mut self) -> Result<bool>;

    /// Replaces role and password of a person, and ends their sessions; `false` when there is none.
    async fn update_user(&mut self, user: &User) -> Result<bool>;

    /// Removes a person and their sessions; `false` when there is none.
    async fn delete_user(&mut self, id: UserId) -> Result<bool>;

    /// Writes a session.
    async fn insert_session(&mut self, session: &Session) -> Result<()>;

    /// The sessions of a person that have not expired at `now`, newest first.
    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>>;

    /// The session with this hash that has not expired at `now`, and who signed in.
    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>>;

    /// Has a session look at another environment; `false` when there is none.
    async fn update_session(&mut self, hash: &[u8; 32], environment: Environment) -> Result<bool>;

    /// Ends a session; `false` when there is none.
    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool>;

    /// Removes up to `limit` sessions that expired before `now`. How many there were.
    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64>;
}
