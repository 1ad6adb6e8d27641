//! People who sign in to the dashboard, their projects, and their sessions.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::user::{Member, Membership, Role, Session, User};
use nuncio_domain::{Environment, ProjectId, Redacted, Timestamp, UserId};
use nuncio_store::{Result, UserRepo};
use uuid::Uuid;

use super::SqlTx;
use super::projects::environment;
use crate::row::corrupt;

type UserRow = (Uuid, String, String, Option<Vec<u8>>, i64);
type SessionRow = (Vec<u8>, Uuid, Uuid, String, i64, i64);

fn user((id, email, password, factor, factor_version): UserRow) -> User {
    let (password, factor) = (Redacted::new(password), factor.map(Redacted::new));
    User { id: UserId::from_uuid(id), email, password, factor, factor_version }
}

fn role(number: i16) -> Result<Role> {
    Role::from_number(number).ok_or_else(|| corrupt("memberships", format!("role {number}")))
}

fn session((hash, user, project, looks_at, created_at, expires_at): SessionRow) -> Result<Session> {
    Ok(Session {
        hash: hash.try_into().map_err(|_| corrupt("sessions", "a hash of another length"))?,
        user: UserId::from_uuid(user),
        project: ProjectId::from_uuid(project),
        environment: environment(&looks_at)?,
        created_at: Timestamp::from_millis(created_at),
        expires_at: Timestamp::from_millis(expires_at),
    })
}

#[async_trait]
impl UserRepo for SqlTx {
    async fn insert_user(&mut self, user: &User, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                INSERT INTO users (id, email, password, factor, factor_version, created_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (email) DO NOTHING",
            [
                user.id.uuid(),
                &user.email,
                user.password.expose(),
                user.factor.as_ref().map(Redacted::expose),
                user.factor_version,
                now.millis()
            ]
        ))
        .await
    }

    async fn find_user(&mut self, email: &str) -> Result<Option<User>> {
        let row: Option<UserRow> =
            self.optional(sql!("SELECT id, email, password, factor, factor_version FROM users WHERE email = $1", [email])).await?;
        Ok(row.map(user))
    }

    async fn find_user_by_id(&mut self, id: UserId) -> Result<Option<User>> {
        let row: Option<UserRow> =
            self.optional(sql!("SELECT id, email, password, factor, factor_version FROM users WHERE id = $1", [id.uuid()])).await?;
        Ok(row.map(user))
    }

    async fn put_factor(&mut self, id: UserId, version: i64, factor: Option<&Redacted<Vec<u8>>>) -> Result<bool> {
        self.changes(sql!(
            "UPDATE users SET factor = $3, factor_version = factor_version + 1 WHERE id = $1 AND factor_version = $2",
            [id.uuid(), version, factor.map(Redacted::expose)]
        ))
        .await
    }

    async fn has_users(&mut self) -> Result<bool> {
        let row: Option<(Uuid,)> = self.optional(sql!("SELECT id FROM users LIMIT 1")).await?;
        Ok(row.is_some())
    }

    async fn put_password(&mut self, id: UserId, password: &Redacted<String>) -> Result<bool> {
        self.run(sql!("DELETE FROM sessions WHERE user_id = $1", [id.uuid()])).await?;
        self.changes(sql!("UPDATE users SET password = $2 WHERE id = $1", [id.uuid(), password.expose()])).await
    }

    async fn delete_user(&mut self, id: UserId) -> Result<bool> {
        self.run(sql!("DELETE FROM sessions WHERE user_id = $1", [id.uuid()])).await?;
        self.run(sql!("DELETE FROM memberships WHERE user_id = $1", [id.uuid()])).await?;
        self.changes(sql!("DELETE FROM users WHERE id = $1", [id.uuid()])).await
    }

    async fn insert_membership(&mut self, user: UserId, membership: Membership, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                INSERT INTO memberships (user_id, project_id, role, created_at)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (user_id, project_id) DO NOTHING",
            [user.uuid(), membership.project.uuid(), membership.role.number(), now.millis()]
        ))
        .await
    }

    async fn update_membership(&mut self, user: UserId, membership: Membership) -> Result<bool> {
        self.changes(sql!(
            "UPDATE memberships SET role = $3 WHERE user_id = $1 AND project_id = $2",
            [user.uuid(), membership.project.uuid(), membership.role.number()]
        ))
        .await
    }

    async fn delete_membership(&mut self, user: UserId, project: ProjectId) -> Result<bool> {
        self.changes(sql!("DELETE FROM memberships WHERE user_id = $1 AND project_id = $2", [user.uuid(), project.uuid()])).await
    }

    async fn list_memberships(&mut self, user: UserId) -> Result<Vec<Membership>> {
        let rows: Vec<(Uuid, i16)> =
            self.all(sql!("SELECT project_id, role FROM memberships WHERE user_id = $1 ORDER BY project_id", [user.uuid()])).await?;
        rows.into_iter().map(|(project, number)| Ok(Membership { project: ProjectId::from_uuid(project), role: role(number)? })).collect()
    }

    async fn list_members(&mut self, project: ProjectId) -> Result<Vec<Member>> {
        let rows: Vec<(Uuid, String, String, Option<Vec<u8>>, i64, i16)> = self
            .all(sql!(
                r"
                SELECT u.id, u.email, u.password, u.factor, u.factor_version, m.role
                FROM memberships m
                JOIN users u ON u.id = m.user_id
                WHERE m.project_id = $1
                ORDER BY u.id",
                [project.uuid()]
            ))
            .await?;
        rows.into_iter()
            .map(|(id, email, password, factor, version, number)| {
                Ok(Member { user: user((id, email, password, factor, version)), role: role(number)? })
            })
            .collect()
    }

    async fn insert_session(&mut self, session: &Session) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO sessions (hash, user_id, project_id, environment, created_at, expires_at)
                VALUES ($1, $2, $3, $4, $5, $6)",
            [
                session.hash.as_slice(),
                session.user.uuid(),
                session.project.uuid(),
                session.environment.as_str(),
                session.created_at.millis(),
                session.expires_at.millis()
            ]
        ))
        .await
    }

    async fn list_sessions(&mut self, user: UserId, now: Timestamp) -> Result<Vec<Session>> {
        let rows: Vec<SessionRow> = self
            .all(sql!(
                r"
                SELECT hash, user_id, project_id, environment, created_at, expires_at
                FROM sessions
                WHERE user_id = $1 AND expires_at > $2
                ORDER BY created_at DESC, hash",
                [user.uuid(), now.millis()]
            ))
            .await?;
        rows.into_iter().map(session).collect()
    }

    async fn find_session(&mut self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(Session, User)>> {
        let row: Option<SessionRow> = self
            .optional(sql!(
                r"
                SELECT hash, user_id, project_id, environment, created_at, expires_at
                FROM sessions
                WHERE hash = $1 AND expires_at > $2",
                [hash.as_slice(), now.millis()]
            ))
            .await?;
        let Some(session) = row.map(session).transpose()? else { return Ok(None) };
        let user = self.find_user_by_id(session.user).await?;
        Ok(user.map(|user| (session, user)))
    }

    async fn update_session(&mut self, hash: &[u8; 32], project: ProjectId, environment: Environment) -> Result<bool> {
        self.changes(sql!(
            "UPDATE sessions SET project_id = $2, environment = $3 WHERE hash = $1",
            [hash.as_slice(), project.uuid(), environment.as_str()]
        ))
        .await
    }

    async fn delete_session(&mut self, hash: &[u8; 32]) -> Result<bool> {
        self.changes(sql!("DELETE FROM sessions WHERE hash = $1", [hash.as_slice()])).await
    }

    async fn purge_sessions(&mut self, now: Timestamp, limit: u32) -> Result<u64> {
        let changed = self
            .run(sql!(
                r"
                DELETE FROM sessions
                WHERE hash IN (
                    SELECT hash
                    FROM sessions
                    WHERE expires_at <= $1
                    ORDER BY expires_at
                    LIMIT $2
                )",
                [now.millis(), i64::from(limit)]
            ))
            .await?;
        Ok(changed)
    }
}
