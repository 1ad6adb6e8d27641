//! Idempotency: keys, fingerprints, and the 409 of a repeated request.

use nuncio_domain::{Error, ErrorCode, Result, TenantId, Timestamp, limits};
use nuncio_store::{Idempotency, IdempotentOperation, Repeat, Tx};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::{Caller, Core, rights::Resource};

/// Returns the idempotency key of a request. Body and header are equivalent and must not differ.
pub(crate) fn key(body: Option<String>, header: Option<&str>) -> Result<Option<String>> {
    if let (Some(body), Some(header)) = (body.as_deref(), header)
        && body != header
    {
        return Err(Error::field("idempotencyKey", "differs from the header Idempotency-Key; set one of them, or the same in both"));
    }
    let (path, key) = match (body, header) {
        (Some(key), _) => ("idempotencyKey", key),
        (None, Some(key)) => ("header.Idempotency-Key", key.to_owned()),
        (None, None) => return Ok(None),
    };
    let length = key.chars().count();
    if !(1..=limits::IDEMPOTENCY_KEY).contains(&length) {
        return Err(Error::field(path, format!("has {length} characters; must have 1 to {}", limits::IDEMPOTENCY_KEY)));
    }
    Ok(Some(key))
}

impl Core {
    /// Returns the stored form of a key and its request, `request` being the request without the key.
    pub(crate) fn guard(
        &self,
        tenant: TenantId,
        operation: IdempotentOperation,
        key: Option<String>,
        request: &impl Serialize,
    ) -> Option<Idempotency> {
        key.map(|key| self.inner.marks.hashed(tenant, Idempotency { operation, key, fingerprint: fingerprint(request) }))
    }

    /// Returns the earlier use of a request's key, for a request that fails before it can claim it: a repeat is reported even if the request
    /// is impossible now.
    pub(crate) async fn used(&self, tenant: TenantId, guard: Option<&Idempotency>) -> Result<Option<Repeat>> {
        if guard.is_none() {
            return Ok(None);
        }
        let mut tx = self.inner.store.begin().await?;
        // Not committed, so that the key stays free.
        claim(&mut *tx, tenant, guard, Uuid::nil(), self.ids().clock.now()).await
    }
}

/// Claims the key of a request for `resource`, in the transaction that creates it. On a repeat, the caller must not write anything.
/// The key is kept for a while after `final_at`, when the resource is final.
pub(crate) async fn claim(
    tx: &mut dyn Tx,
    tenant: TenantId,
    guard: Option<&Idempotency>,
    resource: Uuid,
    final_at: Timestamp,
) -> Result<Option<Repeat>> {
    let Some(guard) = guard else { return Ok(None) };
    Ok(tx.claim_idempotency_key(tenant, guard, resource, final_at.plus(limits::IDEMPOTENCY_RETENTION)).await?)
}

/// Returns the 409 of a repeat, with `original`, the resource that the key was used for, as far as the caller can read it.
pub(crate) fn conflict(caller: &Caller, resource: Resource, original: &impl Serialize, same_request: bool) -> Error {
    repeat(caller, resource, Some(original), same_request)
}

/// Returns the 409 of a repeat whose original may have been deleted.
pub(crate) fn repeat(caller: &Caller, resource: Resource, original: Option<&impl Serialize>, same_request: bool) -> Error {
    let Resource { name, read } = resource;
    let words = match name {
        "apiKey" => "API key",
        "phoneNumber" => "phone number",
        name => name,
    };
    let (code, request) = if same_request {
        (ErrorCode::IdempotencyConflict, "already")
    } else {
        (ErrorCode::IdempotencyKeyReused, "for a different request")
    };
    match original {
        Some(original) => {
            let shown = if caller.may_read(resource) {
                format!("here is the {words} it created")
            } else {
                format!("this API key can see only id and status of the {words} it created, as it lacks {}", read.as_str())
            };
            Error::new(code, format!("this idempotency key was used {request}; {shown}")).with_body(name, caller.view(resource, original))
        }
        None => Error::new(code, format!("this idempotency key was used {request}, and the {words} it created has been deleted")),
    }
}

/// Returns a hash of a request, independent of the order of object members.
pub(crate) fn fingerprint(request: &impl Serialize) -> [u8; 32] {
    let mut hasher = Sha256::new();
    feed(&mut hasher, &serde_json::to_value(request).unwrap_or_default());
    hasher.finalize().into()
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            // An absent member and a null one are equal.
            let mut members: Vec<_> = members.iter().filter(|(_, v)| !v.is_null()).collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            hasher.update([b'{']);
            for (name, value) in members {
                feed(hasher, &Value::from(name.as_str()));
                feed(hasher, value);
            }
            hasher.update([b'}']);
        }
        Value::Array(items) => {
            hasher.update([b'[']);
            items.iter().for_each(|item| feed(hasher, item));
            hasher.update([b']']);
        }
        scalar => {
            let text = scalar.to_string();
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text);
        }
    }
}
