//! Creates, lists, checks and revokes API keys.

use std::time::Duration;

use nuncio_domain::key::ApiKey;
use nuncio_domain::key::KeyHash;
use nuncio_domain::{Error, ErrorCode, FieldError, KeyId, Permissions, Redacted, Result, TenantId, Timestamp, key, limits};
use serde_json::{Value, json};

use super::Keys;
use crate::base::cache::TRUST;
use crate::base::{Caller, Change, FieldErrors};

/// Maximum age of the stored last use of a key in use.
const PRECISION: Duration = Duration::from_secs(120);
/// Maximum number of keys that are written at once. The others are noted again at their next look-ups.
const AT_ONCE: usize = 1_000;

/// A newly created key.
#[derive(Debug)]
pub struct NewKey {
    pub key: ApiKey,
    /// The key itself; cannot be shown again.
    pub secret: Redacted<String>,
}

impl Keys<'_> {
    /// Returns the caller of this key. A malformed, unknown, expired or revoked key is a `401 unauthorized`.
    ///
    /// The look-up can be up to a second old; the key expires on time.
    pub async fn authenticate(&self, text: &str) -> Result<Caller> {
        if key::parse(text).is_none() {
            return Err(unauthorized());
        }
        self.holder(key::hash(text)).await?.ok_or_else(unauthorized)
    }

    /// Returns the caller with this key hash, if the key exists and is valid. The look-up can be up to a second old.
    async fn holder(&self, hash: KeyHash) -> Result<Option<Caller>> {
        let read = async {
            let now = self.ids().clock.now();
            let found = self.inner.store.read().await?.find_key(&hash).await?;
            let found = found.filter(|(key, _)| key.is_valid(now));
            self.inner.good_keys.note(hash, found.is_some());
            Ok::<_, Error>(found.map(|(key, environment)| {
                self.note_use(&key, now);
                Caller {
                    tenant: key.tenant,
                    environment,
                    key: key.id,
                    key_hash: key.hash,
                    key_name: key.name,
                    permissions: key.permissions,
                    expires_at: key.expires_at,
                }
            }))
        };
        let found = self.inner.keys.get_or_read(hash, &*self.ids().clock, read).await?;
        // A key can expire while it is cached.
        Ok(found.filter(|caller| caller.expires_at.is_none_or(|at| at > self.ids().clock.now())))
    }

    /// Returns whether this key was created on this node or valid at its last look-up, without a database access.
    pub fn knows(&self, text: &str) -> bool {
        key::parse(text).is_some() && self.inner.good_keys.contains(&key::hash(text))
    }

    /// Returns whether an authenticated caller's key is still valid. The look-up can be up to a second old.
    pub(crate) async fn is_valid(&self, caller: &Caller) -> bool {
        self.holder(caller.key_hash).await.is_ok_and(|holder| holder.is_some())
    }

    /// Creates a key that is refused from `expires_at` on, if it is given.
    pub async fn create(
        &self,
        tenant: TenantId,
        environment: nuncio_domain::Environment,
        name: &str,
        permissions: Permissions,
        expires_at: Option<Timestamp>,
    ) -> Result<NewKey> {
        let new = self.prepare(tenant, environment, name, permissions, expires_at)?;
        let mut tx = self.inner.store.begin().await?;
        tx.insert_key(&new.key, self.ids().clock.now()).await?;
        Change::new("api_key", "create", new.key.id).to(&shown(&new.key)).commit(tx, tenant).await?;
        self.inner.good_keys.note(new.key.hash, true);
        Ok(new)
    }

    /// Builds a key without storing it.
    pub(super) fn prepare(
        &self,
        tenant: TenantId,
        environment: nuncio_domain::Environment,
        name: &str,
        permissions: Permissions,
        expires_at: Option<Timestamp>,
    ) -> Result<NewKey> {
        let mut errors = Vec::new();
        FieldErrors { errors: &mut errors }.name("name", Some(name), 1, limits::KEY_NAME);
        if let Some(at) = expires_at.filter(|at| *at <= self.ids().clock.now()) {
            errors.push(FieldError::new("expiresAt", format!("{at} has passed; must be in the future")));
        }
        Error::if_any(errors)?;
        let secret = key::generate(environment, &*self.ids().entropy);
        let (id, hash) = (self.ids().next(), key::hash(secret.expose()));
        let name = name.to_owned();
        Ok(NewKey { key: ApiKey { tenant, id, name, hash, permissions, revoked_at: None, expires_at, last_used_at: None }, secret })
    }

    /// Returns all keys of an environment, including expired and revoked ones.
    pub async fn list(&self, tenant: TenantId) -> Result<Vec<ApiKey>> {
        Ok(self.inner.store.read().await?.list_keys(tenant).await?)
    }

    /// Revokes a key permanently; `false` if it already was. Returns when every node rejects it.
    pub async fn revoke(&self, tenant: TenantId, id: KeyId) -> Result<bool> {
        let mut tx = self.inner.store.begin().await?;
        let key = tx.lookup_key(tenant, id).await?.ok_or_else(|| Error::not_found("API key"))?;
        let revoked = tx.revoke_key(tenant, id, self.ids().clock.now()).await?;
        if revoked {
            Change::new("api_key", "revoke", id).from(&shown(&key)).record(&mut *tx, tenant).await?;
        }
        tx.commit().await?;
        self.inner.keys.forget(&key.hash);
        self.inner.good_keys.note(key.hash, false);
        // Other nodes may use a key for that long since they last looked it up.
        tokio::time::sleep(TRUST).await;
        Ok(revoked)
    }

    /// Notes that a key is used: in memory, when it is looked up, which happens at most once a second, and only if the stored use is old. So a
    /// request pays nothing, and a key in use is written once in [`PRECISION`], whichever nodes it calls. A crash or a failing database loses
    /// what was not yet written.
    fn note_use(&self, key: &ApiKey, now: Timestamp) {
        if key.last_used_at.is_some_and(|at| now.since(at) < PRECISION) {
            return;
        }
        let mut uses = self.inner.key_uses.lock();
        if uses.len() < AT_ONCE {
            uses.entry((key.tenant, key.id)).or_insert(now);
        }
    }

    /// Writes the noted uses, all with the time of the first one. The node calls it once a second.
    pub async fn store_uses(&self) -> nuncio_store::Result<()> {
        let uses = std::mem::take(&mut *self.inner.key_uses.lock());
        let Some(first) = uses.values().min().copied() else { return Ok(()) };
        let mut tx = self.inner.store.begin().await?;
        tx.mark_keys_used(&uses.into_keys().collect::<Vec<_>>(), first).await?;
        tx.commit().await
    }
}

pub(super) fn shown(key: &ApiKey) -> Value {
    let mut shown = json!({"name": key.name, "permissions": key.permissions});
    if let Some(at) = key.expires_at {
        shown["expiresAt"] = at.to_string().into();
    }
    shown
}

fn unauthorized() -> Error {
    Error::new(ErrorCode::Unauthorized, "the API key is missing, malformed, unknown, expired or revoked")
}
