//! People who sign in to the dashboard, and their sessions.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::user::{Role, Session, User};
use nuncio_domain::{Environment, ProjectId, Redacted, Timestamp, UserId};
use nuncio_store::{Result, UserRepo};
use uuid::Uuid;

use super::SqlTx;
use super::directory::environment;
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
        self.changes(sql!(
            r"
                INSERT INTO users (id, project_id, email, role, password, factor, factor_version, created_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
                ON CONFLICT (email) DO NOTHING",
            [
                user.id.uuid(),
                user.project.uuid(),
                &user.email,
                user.role.number(),
                user.password.expose(),
                user.factor.as_ref().map(Redacted::expose),
                user.factor_version,
                now.millis()
            ]
        ))
        .await
    }

    async fn find_user(&mut self, email: &str) -> Result<Option<User>> {
        let row: Option<UserRow> = self
            .optional(sql!("SELECT id, project_id, email, role, password, factor, factor_version FROM users WHERE email = $1", [email]))
            .await?;
        row.map(user).transpose()
    }

    async fn find_user_by_id(&mut self, id: UserId) -> Result<Option<User>> {
        let row: Option<UserRow> = self
            .optional(sql!("SELECT id, project_id, email, role, password, factor, factor_version FROM users WHERE id = $1", [id.uuid()]))
            .await?;
        row.map(user).transpose()
    }

    async fn put_factor(&mut self, id: UserId, version: i64, factor: Option<&Redacted<Vec<u8>>>) -> Result<bool> {
        self.changes(sql!(
            "UPDATE users SET factor = $3, factor_version = factor_version + 1 WHERE id = $1 AND factor_version = $2",
            [id.uuid(), version, factor.map(Redacted::expose)]
        ))
        .await
    }

    async fn list_users(&mut self, project: ProjectId) -> Result<Vec<User>> {
        let rows: Vec<UserRow> = self
            .all(sql!(
                "SELECT id, project_id, email, role, password, factor, factor_version FROM users WHERE project_id = $1 ORDER BY id",
                [project.uuid()]
            ))
            .await?;
        rows.into_iter().map(user).collect()
    }

    async fn has_users(&mut self) -> Result<bool> {
        let row: Option<(Uuid,)> = self.optional(sql!("SELECT id FROM users LIMIT 1")).await?;
        Ok(row.is_some())
    }

    async fn update_user(&mut self, user: &User) -> Result<bool> {
        let changed = self
            .run(sql!(
                "UPDATE users SET role = $2, password = $3 WHERE id = $1",
                [user.id.uuid(), user.role.number(), user.password.expose()]
            ))
            .await?;
        self.run(sql!("DELETE FROM sessions WHERE user_id = $1", [user.id.uuid()])).await?;
        Ok(changed == 1)
    }

    async fn delete_user(&mut self, id: UserId) -> Result<bool> {
        self.run(sql!("DELETE FROM sessions WHERE user_id = $1", [id.uuid()])).await?;
        self.changes(sql!("DELETE FROM users WHERE id = $1", [id.uuid()])).await
    }

    async fn insert_session(&mut self, session: &Session) -> Result<()> {
        self.run(sql!(
            r"
                INSERT INTO sessions (hash, user_id, environment, created_at, expires_at)
                VALUES ($1, $2, $3, $4, $5)",
            [
                session.hash.as_slice(),
                session.user.uuid(),
                session.environment.as_str(),
                session.created_at.millis(),
                session.expires_at.millis()
            ]
        ))
        .await?;
        Ok(())
    }

    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>> {
        let rows: Vec<(Vec<u8>, String, i64, i64)> = self
            .all(sql!(
                r"
                SELECT hash, environment, created_at, expires_at
                FROM sessions
                WHERE user_id = $1 AND expires_at > $2
                ORDER BY created_at DESC, hash",
                [user.uuid(), now.millis()]
            ))
            .await?;
        rows.into_iter()
            .map(|(hash, environment, created_at, expires_at)| {
                let hash = hash.try_into().map_err(|_| corrupt("sessions", "a hash of another length"))?;
                session(hash, user, &environment, created_at, expires_at)
            })
            .collect()
    }

    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>> {
        let seen: Option<(String, i64, i64, Uuid)> = self
            .optional(sql!(
                "SELECT environment, created_at, expires_at, user_id FROM sessions WHERE hash = $1 AND expires_at > $2",
                [hash.as_slice(), now.millis()]
            ))
            .await?;
        let Some((environment, created_at, expires_at, id)) = seen else { return Ok(None) };
        let Some(user) = self.find_user_by_id(UserId::from_uuid(id)).await? else { return Ok(None) };
        Ok(Some((session(*hash, user.id, &environment, created_at, expires_at)?, user)))
    }

    async fn update_session(&mut self, hash: &[u8; 32], environment: Environment) -> Result<bool> {
        let changed =
            self.run(sql!("UPDATE sessions SET environment = $2 WHERE hash = $1", [hash.as_slice(), environment.as_str()])).await?;
        Ok(changed == 1)
    }

    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool> {
        self.changes(sql!("DELETE FROM sessions WHERE hash = $1", [hash.as_slice()])).await
    }

    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        let changed = self
            .run(sql!(
                "DELETE FROM sessions WHERE hash IN (SELECT hash FROM sessions WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)",
                [now.millis(), i64::from(limit)]
            ))
            .await?;
        Ok(changed)
    }
}
