//! Storage quotas of environments. Set by the operator; none by default.

use nuncio_domain::{Error, ErrorCode, Result, TenantId};
use nuncio_store::Storage;
use serde_json::json;

use super::Billing;
use crate::base::Change;

/// `507 storage_quota_exceeded`.
pub(crate) fn exceeded(storage: Storage, required: i64) -> Error {
    let Storage { max_bytes, stored_bytes } = storage;
    let message = format!(
        "the environment stores {stored_bytes} of {max_bytes} bytes, and the message needs {required}; ask the operator for a larger quota"
    );
    Error::new(ErrorCode::StorageQuotaExceeded, message)
        .with("storedBytes", stored_bytes.into())
        .with("maxBytes", max_bytes.into())
        .with("requiredBytes", required.into())
}

impl Billing<'_> {
    /// Returns the storage quota and usage of an environment, if it has a quota.
    pub async fn storage(&self, tenant: TenantId) -> Result<Option<Storage>> {
        Ok(self.inner.store.read().await?.find_storage(tenant).await?)
    }

    /// Sets the storage quota of an environment, or removes it; returns the new state.
    pub async fn limit_storage(&self, tenant: TenantId, max_bytes: Option<i64>) -> Result<Option<Storage>> {
        let mut tx = self.inner.store.begin().await?;
        let shown = |storage: Option<Storage>| json!({"maxBytes": storage.map(|storage| storage.max_bytes)});
        let before = tx.find_storage(tenant).await?;
        tx.limit_storage(tenant, max_bytes).await?;
        let storage = tx.find_storage(tenant).await?;
        let change = Change::new("storage_quota", "update", "storage quota").from(&shown(before)).to(&shown(storage));
        change.record(&mut *tx, tenant).await?;
        tx.commit().await?;
        Ok(storage)
    }
}
