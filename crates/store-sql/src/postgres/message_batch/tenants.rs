//! Epochs and storage quotas of the tenants of new messages.

use std::collections::HashMap;

use nuncio_store::{Result, StoreError};

use super::super::session::{Params, failed};
use super::{PgResult, Session, column};
use crate::message_batch::{AcceptOp, tenants};
use crate::quota::Quotas;

pub(super) const FIND: &str = r"
    SELECT w.tenant_id, w.epoch, q.max_bytes, q.stored_bytes
    FROM unnest($1::bigint[]) AS u (tenant_id)
    JOIN worlds w ON w.tenant_id = u.tenant_id
    LEFT JOIN storage_quotas q ON q.tenant_id = u.tenant_id";

/// Skips a tenant whose quota another node has used up meanwhile.
pub(super) const ADD_STORED: &str = r"
    UPDATE storage_quotas q
    SET stored_bytes = q.stored_bytes + u.bytes
    FROM unnest($1::bigint[], $2::bigint[]) AS u (tenant_id, bytes)
    WHERE q.tenant_id = u.tenant_id
      AND q.stored_bytes + u.bytes <= q.max_bytes";

/// What the database knows of the tenants of a batch.
#[derive(Debug, Default)]
pub(super) struct Tenants {
    /// A tenant that is gone has none.
    pub(super) epochs: HashMap<i64, i64>,
    pub(super) quotas: Quotas,
}

/// Reads the tenants of new messages.
pub(super) async fn find(session: &Session, accepts: &[AcceptOp]) -> PgResult<Tenants> {
    let tenants = column(&tenants(accepts), |tenant| tenant.0);
    let params: &Params<'_> = &[&tenants];
    let mut found = Tenants::default();
    for row in session.query_if(!tenants.is_empty(), &session.statements.find_tenants, params).await? {
        let tenant = row.get(0);
        found.epochs.insert(tenant, row.get(1));
        found.quotas.know(tenant, row.get(2), row.get(3));
    }
    Ok(found)
}

/// Adds the bytes of new messages to the tenants that have a quota.
pub(super) async fn add_stored(session: &Session, quotas: &Quotas) -> Result<()> {
    let added = quotas.added();
    let (tenants, bytes) = (column(&added, |(tenant, _)| *tenant), column(&added, |(_, bytes)| *bytes));
    let counted = session.execute(!added.is_empty(), &session.statements.add_stored_bytes, &[&tenants, &bytes]).await.map_err(failed)?;
    if counted < added.len() as u64 {
        return Err(StoreError::Busy("another node filled the room that this batch counted on".to_owned()));
    }
    Ok(())
}
