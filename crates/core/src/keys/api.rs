//! `/v1/keys`: API keys, managed with an API key.

use nuncio_domain::{Error, ErrorCode, KeyId, Permission, Permissions, Redacted, Result, Timestamp, id::Id as _, key::ApiKey};
use nuncio_store::{IdempotentOperation, Repeat};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Keys, manage::shown};
use crate::base::{Caller, Change, UseCase, idempotency, list, list::Listed, parse_id, patch, rights};

/// An API key.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ApiKey)]
pub struct KeyView {
    /// Its identifier.
    pub id: KeyId,
    /// Its name.
    pub name: String,
    /// Its permissions; `*` means all.
    pub permissions: Permissions,
    /// The key itself. Only the response that creates it has this field; the server stores a hash.
    #[serde(serialize_with = "patch::shown_once")]
    #[schema(value_type = Option<String>, example = "<API_KEY>")]
    pub key: Option<Redacted<String>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was revoked; absent if it was not.
    pub revoked_at: Option<Timestamp>,
    /// From when on it is refused; absent if it does not expire.
    pub expires_at: Option<Timestamp>,
    /// When it last authenticated a request, exact to two minutes; absent before the first one.
    pub last_used_at: Option<Timestamp>,
}

impl KeyView {
    /// Makes the view of a key, with the key itself if it was just created.
    pub fn new(key: ApiKey, secret: Option<Redacted<String>>) -> Self {
        let ApiKey { id, name, permissions, revoked_at, expires_at, last_used_at, .. } = key;
        Self { id, name, permissions, key: secret, created_at: id.created_at(), revoked_at, expires_at, last_used_at }
    }
}

/// An API key to create.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateApiKey {
    /// What the key is for.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Its permissions, such as `messages:send`; `*` means all. A key cannot have permissions that the key that creates it lacks. If absent,
    /// it gets those of that key.
    #[schema(min_items = 1, max_items = 64)]
    pub permissions: Option<Vec<String>>,
    /// From when on the key is refused: a time in the future, and no later than that of the key that creates it. If absent, it expires with
    /// that key, or not at all.
    pub expires_at: Option<Timestamp>,
}

list::list_query! {
    /// Query of `GET /v1/keys`.
    ListKeys {}
}

impl Keys<'_> {
    /// `GET /v1/keys`: a page, and the cursor of the next one.
    pub async fn page(&self, caller: &Caller, asked: &ListKeys) -> Result<Listed<KeyView>> {
        caller.require(UseCase::ListKeys)?;
        let (range, errors) = list::asked!(asked);
        let listing = self.listing(caller.tenant, "keys", &range, errors)?;
        let page = self.inner.store.read().await?.page_keys(caller.tenant, listing.page).await?;
        let items = page.items.into_iter().map(|key| KeyView::new(key, None)).collect();
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// `POST /v1/keys`: creates a key of the caller's environment. It never allows more than the caller's own key.
    pub async fn issue(&self, caller: &Caller, asked: CreateApiKey, idempotency_key: Option<&str>) -> Result<KeyView> {
        caller.require(UseCase::CreateKey)?;
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateKey, idempotency::key(None, idempotency_key)?, &asked);
        let permissions = match asked.permissions {
            None => caller.permissions,
            // Perhaps a program's list that lost its items: it must not allow everything.
            Some(names) if names.is_empty() => {
                let message = "has 0 items; must have at least 1; leave it out for all permissions of the key that creates it";
                return Err(Error::field("permissions", message));
            }
            Some(names) => {
                Permissions::parse(names.iter().map(String::as_str)).map_err(|error| Error::field("permissions", error.to_string()))?
            }
        };
        if let Some(missing) = Permission::ALL.iter().find(|each| permissions.allows(**each) && !caller.permissions.allows(**each)) {
            let message = format!("a key cannot allow more than the key that creates it, which lacks {}", missing.as_str());
            return Err(Error::new(ErrorCode::Forbidden, message).with("requiredPermission", missing.as_str().into()));
        }
        let permissions = permissions.and(caller.permissions);
        let expires_at = asked.expires_at.or(caller.expires_at);
        if let (Some(asked), Some(latest)) = (asked.expires_at, caller.expires_at.filter(|latest| expires_at > Some(*latest))) {
            return Err(Error::field("expiresAt", format!("is {asked}; must not be after {latest}, when the key that creates it expires")));
        }
        let new = self.prepare(caller.tenant, caller.environment, &asked.name, permissions, expires_at)?;
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), new.key.id.uuid(), now).await?;
        if let Some(Repeat { original, same_request }) = repeat {
            drop(tx);
            let original = self.inner.store.read().await?.lookup_key(caller.tenant, KeyId::from_uuid(original)).await?;
            let original = original.map(|key| KeyView::new(key, None));
            return Err(idempotency::repeat(caller, rights::API_KEY, original.as_ref(), same_request));
        }
        tx.insert_key(&new.key, now).await?;
        Change::new("api_key", "create", new.key.id).to(&shown(&new.key)).commit(tx, caller.tenant).await?;
        self.inner.good_keys.note(new.key.hash, true);
        Ok(KeyView::new(new.key, Some(new.secret)))
    }

    /// `DELETE /v1/keys/{id}`: revokes a key, also the caller's own. Returns when every node refuses it.
    pub async fn withdraw(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::RevokeKey)?;
        self.revoke(caller.tenant, parse_id(id, "API key")?).await.map(drop)
    }
}
