//! People who sign in to the dashboard, their projects, and their sessions.

use async_trait::async_trait;
use nuncio_domain::user::{Member, Membership, Session, User};
use nuncio_domain::{Environment, ProjectId, Redacted, Timestamp, UserId};
use nuncio_store::{Result, UserRepo};

use super::{Columns, Record, SqlTx};

impl Record for User {
    const TABLE: &'static str = "users";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            email: row.get("email")?,
            password: row.get("password")?,
            factor: row.get("factor")?,
            factor_version: row.get("factor_version")?,
        })
    }
}

impl Record for Session {
    const TABLE: &'static str = "sessions";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            hash: row.get("hash")?,
            user: row.get("user_id")?,
            project: row.get("project_id")?,
            environment: row.get("environment")?,
            created_at: row.get("created_at")?,
            expires_at: row.get("expires_at")?,
        })
    }
}

impl Record for Membership {
    const TABLE: &'static str = "memberships";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self { project: row.get("project_id")?, role: row.get("role")? })
    }
}

impl Record for Member {
    const TABLE: &'static str = "memberships";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self { user: User::read(row)?, role: row.get("role")? })
    }
}

#[async_trait]
impl UserRepo for SqlTx {
    async fn insert_user(&mut self, user: &User, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                INSERT INTO users (id, email, password, factor, factor_version, created_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (email) DO NOTHING",
            [user.id, &user.email, &user.password, user.factor.as_ref(), user.factor_version, now]
        ))
        .await
    }

    async fn find_user(&mut self, email: &str) -> Result<Option<User>> {
        self.optional(sql!("SELECT id, email, password, factor, factor_version FROM users WHERE email = $1", [email])).await
    }

    async fn find_user_by_id(&mut self, id: UserId) -> Result<Option<User>> {
        self.optional(sql!("SELECT id, email, password, factor, factor_version FROM users WHERE id = $1", [id])).await
    }

    async fn put_factor(&mut self, id: UserId, version: i64, factor: Option<&Redacted<Vec<u8>>>) -> Result<bool> {
        self.changes(sql!(
            "UPDATE users SET factor = $3, factor_version = factor_version + 1 WHERE id = $1 AND factor_version = $2",
            [id, version, factor]
        ))
        .await
    }

    async fn has_users(&mut self) -> Result<bool> {
        let id: Option<UserId> = self.value(sql!("SELECT id FROM users LIMIT 1")).await?;
        Ok(id.is_some())
    }

    async fn put_password(&mut self, id: UserId, password: &Redacted<String>) -> Result<bool> {
        let changed = self.changes(sql!("UPDATE users SET password = $2 WHERE id = $1", [id, password])).await?;
        self.run(sql!("DELETE FROM sessions WHERE user_id = $1", [id])).await?;
        Ok(changed)
    }

    async fn delete_user(&mut self, id: UserId) -> Result<bool> {
        self.run(sql!("DELETE FROM sessions WHERE user_id = $1", [id])).await?;
        self.run(sql!("DELETE FROM memberships WHERE user_id = $1", [id])).await?;
        self.changes(sql!("DELETE FROM users WHERE id = $1", [id])).await
    }

    async fn insert_membership(&mut self, user: UserId, membership: Membership, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                INSERT INTO memberships (user_id, project_id, role, created_at)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (user_id, project_id) DO NOTHING",
            [user, membership.project, membership.role, now]
        ))
        .await
    }

    async fn update_membership(&mut self, user: UserId, membership: Membership) -> Result<bool> {
        self.changes(sql!(
            "UPDATE memberships SET role = $3 WHERE user_id = $1 AND project_id = $2",
            [user, membership.project, membership.role]
        ))
        .await
    }

    async fn delete_membership(&mut self, user: UserId, project: ProjectId) -> Result<bool> {
        self.changes(sql!("DELETE FROM memberships WHERE user_id = $1 AND project_id = $2", [user, project])).await
    }

    async fn list_memberships(&mut self, user: UserId) -> Result<Vec<Membership>> {
        self.all(sql!("SELECT project_id, role FROM memberships WHERE user_id = $1 ORDER BY project_id", [user])).await
    }

    async fn list_members(&mut self, project: ProjectId) -> Result<Vec<Member>> {
        self.all(sql!(
            r"
                SELECT u.id, u.email, u.password, u.factor, u.factor_version, m.role
                FROM memberships m
                JOIN users u ON u.id = m.user_id
                WHERE m.project_id = $1
                ORDER BY u.id",
            [project]
        ))
        .await
    }

    async fn insert_session(&mut self, session: &Session, user: &User) -> Result<bool> {
        // Locks the row: a change of the password, which ends all sessions, comes before or after this transaction.
        let unchanged = self
            .changes(sql!(
                "UPDATE users SET password = password WHERE id = $1 AND password = $2 AND factor_version = $3",
                [session.user, &user.password, user.factor_version]
            ))
            .await?;
        if !unchanged {
            return Ok(false);
        }
        self.write(sql!(
            r"
                INSERT INTO sessions (hash, user_id, project_id, environment, created_at, expires_at)
                VALUES ($1, $2, $3, $4, $5, $6)",
            [&session.hash, session.user, session.project, session.environment, session.created_at, session.expires_at]
        ))
        .await?;
        Ok(true)
    }

    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>> {
        self.all(sql!(
            r"
                SELECT hash, user_id, project_id, environment, created_at, expires_at
                FROM sessions
                WHERE user_id = $1 AND expires_at > $2
                ORDER BY created_at DESC, hash",
            [user, now]
        ))
        .await
    }

    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>> {
        let session: Option<Session> = self
            .optional(sql!(
                r"
                SELECT hash, user_id, project_id, environment, created_at, expires_at
                FROM sessions
                WHERE hash = $1 AND expires_at > $2",
                [hash, now]
            ))
            .await?;
        let Some(session) = session else { return Ok(None) };
        let user = self.find_user_by_id(session.user).await?;
        Ok(user.map(|user| (session, user)))
    }

    async fn update_session(&mut self, hash: &[u8; 32], project: ProjectId, environment: Environment) -> Result<bool> {
        self.changes(sql!("UPDATE sessions SET project_id = $2, environment = $3 WHERE hash = $1", [hash, project, environment])).await
    }

    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool> {
        self.changes(sql!("DELETE FROM sessions WHERE hash = $1", [hash])).await
    }

    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        self.run(sql!(
            r"
                DELETE FROM sessions
                WHERE hash IN (
                    SELECT hash
                    FROM sessions
                    WHERE expires_at <= $1
                    ORDER BY expires_at
                    LIMIT $2
                )",
            [now, limit]
        ))
        .await
    }
}
