//! What someone does about their own account: the browsers that are signed in, and the password.

use nuncio_domain::user::Session;
use nuncio_domain::{Error, Redacted, Result, Timestamp};

use super::{SignedIn, Users, password};
use crate::base::Change;

/// A browser that is signed in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Browser {
    /// What it is ended by. It opens nothing.
    pub id: String,
    /// When someone signed in with it.
    pub since: Timestamp,
    /// When they must sign in again.
    pub until: Timestamp,
    /// Whether it is the one that asks.
    pub is_this: bool,
}

impl Users<'_> {
    /// The browsers with which this person is signed in, newest first.
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

    /// Signs another browser of this person out.
    pub async fn sign_out_browser(&self, who: &SignedIn, browser: &str) -> Result<()> {
        let mut tx = self.inner.store.begin().await?;
        let sessions = tx.list_sessions(who.user.id, self.ids().clock.now()).await?;
        let session = sessions.iter().find(|session| id(session) == browser).ok_or_else(|| Error::not_found("browser"))?;
        tx.delete_session(&session.hash).await?;
        Change::new("person", "sign_out_browser", &who.user.email).record_of(&mut *tx, &who.project).await?;
        Ok(tx.commit().await?)
    }

    /// Gives this person another password. All browsers are signed out; the cookie is that of a new session.
    pub async fn change_password(&self, who: &SignedIn, current: &Redacted<String>, new: &Redacted<String>) -> Result<Redacted<String>> {
        if !password::is(current.expose(), Some(&who.user.password)).await? {
            return Err(Error::field("current", "is not your password"));
        }
        self.set_password(&who.user.email, new).await?;
        self.open_session(&who.user).await
    }
}

/// The beginning of the hash, which is enough to tell the sessions of a person apart.
fn id(session: &Session) -> String {
    session.hash[..8].iter().map(|byte| format!("{byte:02x}")).collect()
}
