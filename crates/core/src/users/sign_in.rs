//! Signs people in and out.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::user::{Role, Session, User};
use nuncio_domain::{Environment, Error, ErrorCode, KeyId, ProjectId, Redacted, Result, config::Project, id::Id as _};
use nuncio_secrets::mac;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::manage::{projects_of, with_roles};
use super::{Users, password, sign_in_address};
use crate::base::{Caller, Change};

/// Lifetime of a session.
const SESSION: Duration = Duration::from_secs(14 * 86_400);
/// Maximum number of expired sessions deleted per sign-in.
const PURGED: u32 = 100;

#[derive(Clone, Debug)]
pub struct SignIn {
    pub email: String,
    pub password: Redacted<String>,
}

/// Result of the first step.
#[derive(Clone, Debug)]
pub enum SignInStep {
    /// Signed in: the session cookie.
    Done(Redacted<String>),
    /// A code is required: the ticket for the second step.
    SecondStep(Redacted<String>),
}

/// A signed-in person.
#[derive(Clone, Debug)]
pub struct SignedIn {
    pub user: User,
    /// The project that the session views.
    pub project: Project,
    /// Their role in it.
    pub role: Role,
    /// All of their projects with their role, oldest first.
    pub projects: Vec<(Project, Role)>,
    /// Whether they own the oldest project, and with it the server. Only these people set prices and create projects, since the owners of
    /// other projects are the ones who pay.
    pub owns_server: bool,
    /// Whether they can also decide about escalated broadcasts: in the oldest project they are more than a viewer. Otherwise a customer
    /// could approve what the review rejected.
    pub decides_reviews: bool,
    pub session: Session,
    /// A caller with the permissions of the person's role.
    pub caller: Caller,
    /// Must be part of every form: see [`SignedIn::is_form_key`].
    pub form_key: String,
}

impl SignedIn {
    /// Returns whether a form is of this session, and its page showed the project and environment that the session views.
    pub fn is_form_key(&self, given: &str) -> bool {
        self.form_key.as_bytes().ct_eq(given.as_bytes()).into()
    }

    /// Returns whether a form is of this session, whatever its page showed.
    pub fn is_session_key(&self, given: &str) -> bool {
        of_session(&self.form_key).ct_eq(of_session(given)).into()
    }
}

/// Returns the part of a form key that stands for the session.
fn of_session(key: &str) -> &[u8] {
    key.split_once('.').unwrap_or_default().0.as_bytes()
}

impl Users<'_> {
    /// Signs a person in by password. `401 unauthorized` does not say whether the address or the password is wrong.
    pub async fn sign_in(&self, entered: &SignIn) -> Result<SignInStep> {
        let email = sign_in_address(&entered.email).unwrap_or_default();
        let user = self.inner.store.read().await?.find_user(&email).await?;
        if !password::is(entered.password.expose(), user.as_ref().map(|user| &user.password)).await? {
            return Err(Error::new(ErrorCode::Unauthorized, "the email address or the password is wrong"));
        }
        let user = user.ok_or_else(|| Error::new(ErrorCode::Unauthorized, "the email address or the password is wrong"))?;
        if self.has_factor(&user)? {
            return Ok(SignInStep::SecondStep(self.ticket(&user)));
        }
        self.open_session(&user).await.map(SignInStep::Done)
    }

    /// Opens a session for `user` as they proved to be: `401 unauthorized` if their password or second factor was changed since they were read.
    pub(super) async fn open_session(&self, user: &User) -> Result<Redacted<String>> {
        let now = self.ids().clock.now();
        let mut secret = [0; 32];
        self.ids().entropy.fill(&mut secret);
        let cookie = URL_SAFE_NO_PAD.encode(secret);
        let mut tx = self.inner.store.begin().await?;
        tx.purge_sessions(now, PURGED).await?;
        let last = tx.list_sessions(user.id, now).await?.into_iter().next().map(|session| session.project);
        let mut projects = projects_of(&mut *tx, user.id).await?.into_iter().map(|(project, _)| project);
        let first = projects.next().ok_or_else(|| Error::new(ErrorCode::Unauthorized, "you no longer belong to a project"))?;
        let project = if last == Some(first.id) { first } else { projects.find(|project| Some(project.id) == last).unwrap_or(first) };
        let (environment, expires_at) = (Environment::Test, now.plus(SESSION));
        let session = Session { hash: hash(&cookie), user: user.id, project: project.id, environment, created_at: now, expires_at };
        if !tx.insert_session(&session, user).await? {
            return Err(Error::new(ErrorCode::Unauthorized, "the password was just changed; sign in again"));
        }
        Change::new("person", "sign_in", &user.email).by(&user.email).commit_of(tx, &project).await?;
        Ok(Redacted::new(cookie))
    }

    /// Returns the person of a session cookie; `None` if it is unknown or expired.
    pub async fn signed_in(&self, cookie: &str) -> Result<Option<SignedIn>> {
        let mut tx = self.inner.store.read().await?;
        let Some((session, user)) = tx.find_session(&hash(cookie), self.ids().clock.now()).await? else { return Ok(None) };
        let all = tx.list_projects().await?;
        let oldest = all.first().map(|project| project.id);
        let projects = with_roles(all, &tx.list_memberships(user.id).await?);
        let of_server = projects.iter().find(|(project, _)| Some(project.id) == oldest).map(|(_, role)| *role);
        let (owns_server, decides_reviews) = (of_server == Some(Role::Owner), matches!(of_server, Some(Role::Owner | Role::Operator)));
        let viewed = projects.iter().find(|(project, _)| project.id == session.project).or(projects.first());
        let Some((project, role)) = viewed.cloned() else { return Ok(None) };
        let caller = Caller {
            tenant: project.tenant(session.environment),
            environment: session.environment,
            key: KeyId::from_uuid(user.id.uuid()),
            key_hash: session.hash,
            key_name: user.email.clone(),
            permissions: role.permissions(),
            expires_at: None,
        };
        let form_key = self.form_key(cookie, project.id, session.environment);
        Ok(Some(SignedIn { user, project, role, projects, owns_server, decides_reviews, session, caller, form_key }))
    }

    /// Returns the form key of a session: a part that stands for the session, and one for what it views.
    fn form_key(&self, cookie: &str, project: ProjectId, environment: Environment) -> String {
        let (key, project) = (self.inner.sealer.derive(b"forms of the dashboard"), project.uuid());
        let view: [&[u8]; 3] = [cookie.as_bytes(), project.as_bytes(), environment.as_str().as_bytes()];
        let part = |of: &[&[u8]]| URL_SAFE_NO_PAD.encode(&mac(key.expose(), of)[..16]);
        format!("{}.{}", part(&view[..1]), part(&view))
    }

    /// Switches the session to a project of the person and an environment. `404 not_found` for a project that is not theirs.
    pub async fn look_at(&self, signed_in: &SignedIn, project: ProjectId, environment: Environment) -> Result<()> {
        let mut tx = self.inner.store.begin().await?;
        if !tx.list_memberships(signed_in.user.id).await?.iter().any(|membership| membership.project == project) {
            return Err(Error::not_found("project"));
        }
        tx.update_session(&signed_in.session.hash, project, environment).await?;
        Ok(tx.commit().await?)
    }

    /// Ends the session.
    pub async fn sign_out(&self, signed_in: &SignedIn) -> Result<()> {
        let mut tx = self.inner.store.begin().await?;
        tx.delete_session(&signed_in.session.hash).await?;
        Ok(Change::new("person", "sign_out", &signed_in.user.email).commit_of(tx, &signed_in.project).await?)
    }
}

fn hash(cookie: &str) -> [u8; 32] {
    Sha256::digest(cookie).into()
}
