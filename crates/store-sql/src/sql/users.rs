//! People who sign in to the dashboard, and their sessions.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::user::{Role, Session, User};
use nuncio_domain::{Environment, ProjectId, Redacted, Timestamp, UserId};
use nuncio_store::{Result, UserRepo};
use uuid::Uuid;

use super::SqlTx;
use super::directory::environment;
use crate::SqlxResult as _;
use crate::row::corrupt;

type UserRow = (Uuid, Uuid, String, i16, String, Option<Vec<u8>>, i64);

fn user((id, project, email, role, password, factor, factor_version): UserRow) -> Result<User> {
    Ok(User {
        id: UserId::from_uuid(id),
        project: ProjectId::from_uuid(project),
        email,
        role: Role::from_number(role).ok_or_else(|| corrupt("users", format!("role {role}")))?,
        password: Redacted::new(password),
        factor: factor.map(Redacted::new),
        factor_version,
    })
}

fn session(hash: [u8; 32], user: UserId, looks_at: &str, created_at: i64, expires_at: i64) -> Result<Session> {
    let (created_at, expires_at) = (Timestamp::from_millis(created_at), Timestamp::from_millis(expires_at));
    Ok(Session { hash, user, environment: environment(looks_at)?, created_at, expires_at })
}

#[async_trait]
impl UserRepo for SqlTx {
    async fn insert_user(&mut self, user: &User, now: Timestamp) -> Result<bool> {
        let done = sqlx::query(
            r"
                INSERT INTO users (id, project_id, email, role, password, factor, factor_version, created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (email) DO NOTHING",
        )
        .bind(user.id.uuid())
        .bind(user.project.uuid())
        .bind(&user.email)
        .bind(user.role.number())
        .bind(user.password.expose())
        .bind(user.factor.as_ref().map(Redacted::expose))
        .bind(user.factor_version)
        .bind(now.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn find_user(&mut self, email: &str) -> Result<Option<User>> {
        let row: Option<UserRow> =
            sqlx::query_as("SELECT id, project_id, email, role, password, factor, factor_version FROM users WHERE email = $1")
                .bind(email)
                .fetch_optional(self.conn())
                .await
                .or_end(self)?;
        row.map(user).transpose()
    }

    async fn find_user_by_id(&mut self, id: UserId) -> Result<Option<User>> {
        let row: Option<UserRow> =
            sqlx::query_as("SELECT id, project_id, email, role, password, factor, factor_version FROM users WHERE id = $1")
                .bind(id.uuid())
                .fetch_optional(self.conn())
                .await
                .or_end(self)?;
        row.map(user).transpose()
    }

    async fn put_factor(&mut self, id: UserId, version: i64, factor: Option<&Redacted<Vec<u8>>>) -> Result<bool> {
        let done = sqlx::query("UPDATE users SET factor = $3, factor_version = factor_version + 1 WHERE id = $1 AND factor_version = $2")
            .bind(id.uuid())
            .bind(version)
            .bind(factor.map(Redacted::expose))
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn list_users(&mut self, project: ProjectId) -> Result<Vec<User>> {
        let rows: Vec<UserRow> = sqlx::query_as(
            "SELECT id, project_id, email, role, password, factor, factor_version FROM users WHERE project_id = $1 ORDER BY id",
        )
        .bind(project.uuid())
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter().map(user).collect()
    }

    async fn has_users(&mut self) -> Result<bool> {
        let row: Option<(Uuid,)> = sqlx::query_as("SELECT id FROM users LIMIT 1").fetch_optional(self.conn()).await.or_end(self)?;
        Ok(row.is_some())
    }

    async fn update_user(&mut self, user: &User) -> Result<bool> {
        let done = sqlx::query("UPDATE users SET role = $2, password = $3 WHERE id = $1")
            .bind(user.id.uuid())
            .bind(user.role.number())
            .bind(user.password.expose())
            .execute(self.conn())
            .await
            .or_end(self)?;
        sqlx::query("DELETE FROM sessions WHERE user_id = $1").bind(user.id.uuid()).execute(self.conn()).await.or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete_user(&mut self, id: UserId) -> Result<bool> {
        sqlx::query("DELETE FROM sessions WHERE user_id = $1").bind(id.uuid()).execute(self.conn()).await.or_end(self)?;
        let done = sqlx::query("DELETE FROM users WHERE id = $1").bind(id.uuid()).execute(self.conn()).await.or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn insert_session(&mut self, session: &Session) -> Result<()> {
        sqlx::query(
            r"
                INSERT INTO sessions (hash, user_id, environment, created_at, expires_at)
                VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(session.hash.as_slice())
        .bind(session.user.uuid())
        .bind(session.environment.as_str())
        .bind(session.created_at.millis())
        .bind(session.expires_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>> {
        let rows: Vec<(Vec<u8>, String, i64, i64)> = sqlx::query_as(
            r"
                SELECT hash, environment, created_at, expires_at
                FROM sessions
                WHERE user_id = $1 AND expires_at > $2
                ORDER BY created_at DESC, hash",
        )
        .bind(user.uuid())
        .bind(now.millis())
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter()
            .map(|(hash, environment, created_at, expires_at)| {
                let hash = hash.try_into().map_err(|_| corrupt("sessions", "a hash of another length"))?;
                session(hash, user, &environment, created_at, expires_at)
            })
            .collect()
    }

    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>> {
        let seen: Option<(String, i64, i64, Uuid)> =
            sqlx::query_as("SELECT environment, created_at, expires_at, user_id FROM sessions WHERE hash = $1 AND expires_at > $2")
                .bind(hash.as_slice())
                .bind(now.millis())
                .fetch_optional(self.conn())
                .await
                .or_end(self)?;
        let Some((environment, created_at, expires_at, id)) = seen else { return Ok(None) };
        let Some(user) = self.find_user_by_id(UserId::from_uuid(id)).await? else { return Ok(None) };
        Ok(Some((session(*hash, user.id, &environment, created_at, expires_at)?, user)))
    }

    async fn update_session(&mut self, hash: &[u8; 32], environment: Environment) -> Result<bool> {
        let done = sqlx::query("UPDATE sessions SET environment = $2 WHERE hash = $1")
            .bind(hash.as_slice())
            .bind(environment.as_str())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool> {
        let done = sqlx::query("DELETE FROM sessions WHERE hash = $1").bind(hash.as_slice()).execute(self.conn()).await.or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        let done = sqlx::query(
            "DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
        )
        .bind(now.millis())
        .bind(i64::from(limit))
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected())
    }
}
