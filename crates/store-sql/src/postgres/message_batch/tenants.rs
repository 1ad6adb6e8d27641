//! Epochs and storage quotas of the tenants of new messages.

use std::collections::HashMap;

use super::super::session::Params;
use super::{PgResult, Session, column};
use crate::message_batch::{AcceptOp, tenants};
use crate::quota::Quotas;

pub(super) const FIND: &str = r"
    SELECT w.tenant_id, w.epoch, q.max_bytes, q.stored_bytes
    FROM unnest($1::bigint[]) AS u (tenant_id)
    JOIN worlds w ON w.tenant_id = u.tenant_id
    LEFT JOIN storage_quotas q ON q.tenant_id = u.tenant_id";

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
