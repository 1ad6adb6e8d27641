//! Creates, changes and removes people.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::user::{Member, Membership, Role, User};
use nuncio_domain::{Error, ErrorCode, FieldError, ProjectId, Redacted, Result, Timestamp, UserId, config::Project};
use nuncio_store::Tx;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;

use super::{SignedIn, Users, password, sign_in_address};
use crate::base::{Change, project_name};

#[derive(Clone, Debug)]
pub struct NewUser {
    pub email: String,
    /// At least 12 characters.
    pub password: Redacted<String>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AddedUser {
    pub email: String,
    /// Whether the person belonged to no project before, so that the given password is theirs.
    pub is_new: bool,
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
        let oldest = self.inner.store.read().await?.list_projects().await?.into_iter().next().ok_or_else(|| Error::not_found("project"))?;
        let project = project_name("project", project);
        let user = self.checked(new, project.as_ref().err().cloned()).await?;
        let project = project.map_err(|error| Error::invalid(vec![error]))?;
        let mut tx = self.change_project(&oldest).await?;
        if tx.has_users().await? {
            return Err(Error::not_found("link"));
        }
        let owner = Membership { project: oldest.id, role: Role::Owner };
        join(&mut *tx, &user, true, owner, self.ids().clock.now()).await?;
        tx.update_project(&Project { name: project.clone(), ..oldest.clone() }).await?;
        let renamed = Change::new("project", "update", oldest.id).from(&json!({"name": oldest.name})).to(&json!({"name": project}));
        renamed.by(&user.email).record_of(&mut *tx, &oldest).await?;
        Change::new("person", "create", &user.email).to(&shown(Role::Owner)).by(&user.email).record_of(&mut *tx, &oldest).await?;
        self.commit_project(&oldest, tx).await?;
        self.open_session(&user).await
    }

    /// Adds a person to the project that `who` views. Fails if the person belongs to a project that `who` does not own: its owner may have
    /// created the account, and could use its password to get into this project.
    pub async fn add_colleague(&self, who: &SignedIn, role: Role, new: &NewUser) -> Result<AddedUser> {
        let mut tx = self.inner.store.read().await?;
        if let Some(user) = tx.find_user(&sign_in_address(&new.email).unwrap_or_default()).await? {
            require_all(&mut *tx, who, &user, "add").await?;
        }
        drop(tx);
        self.add(&who.project, role, new).await
    }

    /// Adds a person to a project. Somebody who belongs to another project of this server keeps their password.
    pub async fn add(&self, project: &Project, role: Role, new: &NewUser) -> Result<AddedUser> {
        let known = self.inner.store.read().await?.find_user(&sign_in_address(&new.email).unwrap_or_default()).await?;
        let is_new = known.is_none();
        let user = match known {
            Some(user) => user,
            None => self.checked(new, None).await?,
        };
        let mut tx = self.inner.store.begin().await?;
        let joined = join(&mut *tx, &user, is_new, Membership { project: project.id, role }, self.ids().clock.now()).await?;
        if !joined {
            return Err(Error::field("email", "already belongs to this project"));
        }
        Change::new("person", "create", &user.email).to(&shown(role)).commit_of(tx, project).await?;
        Ok(AddedUser { email: user.email, is_new })
    }

    /// Changes the role of a person in a project. Fails for its last owner.
    pub async fn set_role(&self, project: &Project, email: &str, role: Role) -> Result<()> {
        let mut tx = self.change_project(project).await?;
        let member = member(&mut *tx, project, email).await?;
        if role != Role::Owner {
            keep_an_owner(&mut *tx, project, &member).await?;
        }
        tx.update_membership(member.user.id, Membership { project: project.id, role }).await?;
        Change::new("person", "update", &member.user.email).from(&shown(member.role)).to(&shown(role)).record_of(&mut *tx, project).await?;
        self.commit_project(project, tx).await
    }

    /// Sets a person's password and ends their sessions. Returns the person.
    pub async fn set_password(&self, email: &str, password: &Redacted<String>) -> Result<User> {
        Error::if_any(password::fault(password.expose()))?;
        let email = sign_in_address(email).unwrap_or_default();
        let hashed = password::hash(password.expose(), &*self.ids().entropy).await?;
        let mut tx = self.inner.store.begin().await?;
        let user = tx.find_user(&email).await?.ok_or_else(|| Error::not_found("person"))?;
        record_in_all(&mut *tx, &user, &Change::new("person", "change_password", &user.email)).await?;
        tx.put_password(user.id, &hashed).await?;
        tx.commit().await?;
        Ok(User { password: hashed, ..user })
    }

    /// Removes a person from a project, and altogether if it was their only one. Fails for the last owner.
    pub async fn remove(&self, project: &Project, email: &str) -> Result<()> {
        let mut tx = self.change_project(project).await?;
        let member = member(&mut *tx, project, email).await?;
        keep_an_owner(&mut *tx, project, &member).await?;
        let Member { user, role } = member;
        Change::new("person", "delete", &user.email).from(&shown(role)).record_of(&mut *tx, project).await?;
        tx.delete_membership(user.id, project.id).await?;
        if tx.list_memberships(user.id).await?.is_empty() {
            tx.delete_user(user.id).await?;
        }
        self.commit_project(project, tx).await
    }

    /// Returns the people of a project, oldest first.
    pub async fn list(&self, project: ProjectId) -> Result<Vec<Member>> {
        Ok(self.inner.store.read().await?.list_members(project).await?)
    }

    async fn checked(&self, new: &NewUser, named: Option<FieldError>) -> Result<User> {
        let email = sign_in_address(&new.email);
        let wrong = email.as_ref().err().map(|error| FieldError::new("email", error.to_string()));
        let faults: Vec<FieldError> = [named, wrong, password::fault(new.password.expose())].into_iter().flatten().collect();
        Error::if_any(faults)?;
        let password = password::hash(new.password.expose(), &*self.ids().entropy).await?;
        Ok(User { id: self.ids().next(), email: email.unwrap_or_default(), password, factor: None, factor_version: 0 })
    }
}

/// Fails unless `who` owns all projects of `user`, and names the command that the operator has for it.
pub(super) async fn require_all(tx: &mut dyn Tx, who: &SignedIn, user: &User, command: &str) -> Result<()> {
    let mine = tx.list_memberships(who.user.id).await?;
    let owns = |project| mine.iter().any(|membership| membership.project == project && membership.role == Role::Owner);
    if tx.list_memberships(user.id).await?.iter().all(|membership| owns(membership.project)) {
        return Ok(());
    }
    let email = &user.email;
    let text = format!("{email} also belongs to a project that you do not own; on the server, run nuncio people {command} {email}");
    Err(Error::new(ErrorCode::InvalidRequest, text))
}

/// Stores a membership, and the user if they are new. Returns `false` if they already belong to the project.
pub(super) async fn join(tx: &mut dyn Tx, user: &User, is_new: bool, membership: Membership, now: Timestamp) -> Result<bool> {
    if is_new && !tx.insert_user(user, now).await? {
        return Err(Error::unavailable("this person was just added; try again"));
    }
    Ok(tx.insert_membership(user.id, membership, now).await?)
}

/// Returns the members that the audit log records.
pub(super) fn shown(role: Role) -> Value {
    json!({"role": role.as_str()})
}

/// Returns the projects of a person with their role, oldest first.
pub(super) async fn projects_of(tx: &mut dyn Tx, user: UserId) -> Result<Vec<(Project, Role)>> {
    let memberships = tx.list_memberships(user).await?;
    Ok(with_roles(tx.list_projects().await?, &memberships))
}

/// Returns those projects that have a membership, with its role.
pub(super) fn with_roles(projects: Vec<Project>, memberships: &[Membership]) -> Vec<(Project, Role)> {
    let role = |project: &Project| memberships.iter().find(|membership| membership.project == project.id).map(|found| found.role);
    projects.into_iter().filter_map(|project| role(&project).map(|role| (project, role))).collect()
}

/// Records a change of a person in the audit log of each of their projects.
pub(super) async fn record_in_all(tx: &mut dyn Tx, user: &User, change: &Change) -> Result<()> {
    for (project, _) in projects_of(tx, user.id).await? {
        change.clone().record_of(tx, &project).await?;
    }
    Ok(())
}

async fn member(tx: &mut dyn Tx, project: &Project, email: &str) -> Result<Member> {
    let email = sign_in_address(email).unwrap_or_default();
    let found = tx.list_members(project.id).await?.into_iter().find(|member| member.user.email == email);
    found.ok_or_else(|| Error::not_found("person"))
}

/// Fails if the member is the only owner. The caller's transaction began with a change of the project, so no other owner leaves meanwhile.
async fn keep_an_owner(tx: &mut dyn Tx, project: &Project, member: &Member) -> Result<()> {
    let owners = tx.list_members(project.id).await?.iter().filter(|other| other.role == Role::Owner).count();
    if member.role != Role::Owner || owners > 1 {
        return Ok(());
    }
    let text = format!("{} is the only owner of the project; add another owner first", member.user.email);
    Err(Error::new(ErrorCode::InvalidRequest, text))
}
