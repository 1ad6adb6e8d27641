//! Creates, changes and removes people.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_domain::config::Project;
use nuncio_domain::user::{Role, User};
use nuncio_domain::{Error, ErrorCode, FieldError, ProjectId, Redacted, Result, limits, line};
use nuncio_store::Tx;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::{Users, password, sign_in_address};
use crate::base::Change;

#[derive(Clone, Debug)]
pub struct NewUser {
    pub email: String,
    /// At least 12 characters.
    pub password: Redacted<String>,
}

impl Users<'_> {
    /// Returns the token of the link that creates the first person; `None` once there is one.
    pub async fn first_run_token(&self) -> Result<Option<String>> {
        let begun = self.inner.store.read().await?.has_users().await?;
        Ok((!begun).then(|| self.token()))
    }

    /// Derived from the encryption key: the same on every node, and not stored.
    fn token(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.inner.sealer.derive(b"the first person of the dashboard").expose())
    }

    /// Returns whether this token creates the first person, and none exists yet.
    pub async fn may_begin(&self, token: &str) -> Result<bool> {
        let known = bool::from(self.token().as_bytes().ct_eq(token.as_bytes()));
        Ok(known && !self.inner.store.read().await?.has_users().await?)
    }

    /// Creates the first person as owner of the oldest project, and names the project. Returns the session cookie. Works once.
    pub async fn begin(&self, token: &str, project: &str, new: &NewUser) -> Result<Redacted<String>> {
        if !self.may_begin(token).await? {
            return Err(Error::not_found("link"));
        }
        let oldest = self.projects().list().await?.into_iter().next().ok_or_else(|| Error::not_found("project"))?;
        let named = line::check("project", project, 1, limits::PROJECT_NAME);
        let user = self.checked(oldest.id, Role::Owner, new, named).await?;
        let mut tx = self.change_project(&oldest).await?;
        if tx.has_users().await? {
            return Err(Error::not_found("link"));
        }
        tx.insert_user(&user, self.ids().clock.now()).await?;
        tx.update_project(&Project { name: project.to_owned(), ..oldest.clone() }).await?;
        Change::new("person", "create", &user.email).to(&shown(&user)).by(&user.email).record_of(&mut *tx, &oldest).await?;
        self.commit_project(&oldest, tx).await?;
        self.open_session(&user).await
    }

    /// Creates a person. Fails if the email address is in use.
    pub async fn create(&self, project: &Project, role: Role, new: &NewUser) -> Result<User> {
        let user = self.checked(project.id, role, new, None).await?;
        let mut tx = self.inner.store.begin().await?;
        if !tx.insert_user(&user, self.ids().clock.now()).await? {
            return Err(Error::field("email", "is already in use"));
        }
        Change::new("person", "create", &user.email).to(&shown(&user)).record_of(&mut *tx, project).await?;
        tx.commit().await?;
        Ok(user)
    }

    /// Sets a person's password and ends their sessions.
    pub async fn set_password(&self, email: &str, password: &Redacted<String>) -> Result<()> {
        if let Some(fault) = password::fault(password.expose()) {
            return Err(Error::invalid(vec![fault]));
        }
        let email = sign_in_address(email).unwrap_or_default();
        let hashed = password::hash(password.expose(), &*self.ids().entropy).await?;
        let mut tx = self.inner.store.begin().await?;
        let user = tx.find_user(&email).await?.ok_or_else(|| Error::not_found("person"))?;
        let project = project_of(&mut *tx, &user).await?;
        Change::new("person", "change_password", &user.email).record_of(&mut *tx, &project).await?;
        tx.update_user(&User { password: hashed, ..user }).await?;
        Ok(tx.commit().await?)
    }

    /// Removes a person. Fails for the last owner of a project.
    pub async fn remove(&self, email: &str) -> Result<()> {
        let email = sign_in_address(email).unwrap_or_default();
        let mut tx = self.inner.store.begin().await?;
        let user = tx.find_user(&email).await?.ok_or_else(|| Error::not_found("person"))?;
        let owners = tx.list_users(user.project).await?.iter().filter(|other| other.role == Role::Owner).count();
        if user.role == Role::Owner && owners == 1 {
            return Err(Error::new(
                ErrorCode::InvalidRequest,
                format!("{email} is the only owner of the project; add another owner first"),
            ));
        }
        let project = project_of(&mut *tx, &user).await?;
        Change::new("person", "delete", &user.email).from(&shown(&user)).record_of(&mut *tx, &project).await?;
        tx.delete_user(user.id).await?;
        Ok(tx.commit().await?)
    }

    /// Returns the people of a project, oldest first.
    pub async fn list(&self, project: ProjectId) -> Result<Vec<User>> {
        Ok(self.inner.store.read().await?.list_users(project).await?)
    }

    async fn checked(&self, project: ProjectId, role: Role, new: &NewUser, named: Option<FieldError>) -> Result<User> {
        let email = sign_in_address(&new.email);
        let wrong = email.as_ref().err().map(|error| FieldError::new("email", error.to_string()));
        let faults: Vec<FieldError> = [named, wrong, password::fault(new.password.expose())].into_iter().flatten().collect();
        if !faults.is_empty() {
            return Err(Error::invalid(faults));
        }
        let password = password::hash(new.password.expose(), &*self.ids().entropy).await?;
        Ok(User { id: self.ids().next(), project, email: email.unwrap_or_default(), role, password, factor: None, factor_version: 0 })
    }
}

/// Returns the members that the audit log records.
pub(super) fn shown(user: &User) -> Value {
    json!({"role": user.role.as_str()})
}

/// Returns the project of a person.
pub(super) async fn project_of(tx: &mut dyn Tx, user: &User) -> Result<Project> {
    let found = tx.list_projects().await?.into_iter().find(|project| project.id == user.project);
    found.ok_or_else(|| Error::not_found("project"))
}
