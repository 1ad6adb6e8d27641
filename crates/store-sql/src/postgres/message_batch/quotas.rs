//! Storage quotas.

use nuncio_store::{Result, StoreError};

use super::super::session::failed;
use super::{Session, column};
use crate::quota::Quotas;

/// Skips a tenant whose quota another node has used up meanwhile.
pub(super) const ADD: &str = r"
    UPDATE storage_quotas q
    SET stored_bytes = q.stored_bytes + u.bytes
    FROM unnest($1::bigint[], $2::bigint[]) AS u (tenant_id, bytes)
    WHERE q.tenant_id = u.tenant_id
      AND q.stored_bytes + u.bytes <= q.max_bytes";

/// Adds the bytes of new messages to the tenants that have a quota.
pub(super) async fn add(session: &Session, quotas: &Quotas) -> Result<()> {
    let added = quotas.added();
    let (tenants, bytes) = (column(&added, |(tenant, _)| *tenant), column(&added, |(_, bytes)| *bytes));
    let counted = session.execute(!added.is_empty(), &session.statements.add_stored_bytes, &[&tenants, &bytes]).await.map_err(failed)?;
    if counted < added.len() as u64 {
        return Err(StoreError::Busy("another node filled the room that this batch counted on".to_owned()));
    }
    Ok(())
}
