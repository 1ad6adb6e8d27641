//! Lets people manage their own account: signed-in browsers and password.

use nuncio_domain::{Error, Redacted, Result, Timestamp, user::Session};

use super::{SignedIn, Users, password};
use crate::base::Change;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Browser {
    /// Identifies the session among those of the person; does not authenticate.
    pub id: String,
    /// When the person signed in.
    pub since: Timestamp,
    /// When the session expires.
    pub until: Timestamp,
    /// Whether it is the browser that makes the request.
    pub is_this: bool,
}

impl Users<'_> {
    /// Returns the person's signed-in browsers, newest first.
    pub async fn browsers(&self, who: &SignedIn) -> Result<Vec<Browser>> {
        let sessions = self.inner.store.read().await?.list_sessions(who.user.id, self.ids().clock.now()).await?;
        let browser = |session: Session| Browser {
            id: id(&session),
            since: session.created_at,
            until: session.expires_at,
            is_this: session.hash == who.session.hash,
        };
        Ok(sessions.into_iter().map(browser).collect())
    }

    /// Signs out a browser of this person.
    pub async fn sign_out_browser(&self, who: &SignedIn, browser: &str) -> Result<()> {
        let mut tx = self.inner.store.begin().await?;
        let sessions = tx.list_sessions(who.user.id, self.ids().clock.now()).await?;
        let session = sessions.iter().find(|session| id(session) == browser).ok_or_else(|| Error::not_found("browser"))?;
        tx.delete_session(&session.hash).await?;
        Ok(Change::new("person", "sign_out_browser", &who.user.email).commit_of(tx, &who.project).await?)
    }

    /// Changes the password and signs out all browsers; returns the cookie of a new session.
    pub async fn change_password(&self, who: &SignedIn, current: &Redacted<String>, new: &Redacted<String>) -> Result<Redacted<String>> {
        if !password::is(current.expose(), Some(&who.user.password)).await? {
            return Err(Error::field("current", "is not your password"));
        }
        let user = self.set_password(&who.user.email, new).await?;
        self.open_session(&user).await
    }
}

/// Returns a prefix of the hash, which distinguishes the sessions of a person.
fn id(session: &Session) -> String {
    session.hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
