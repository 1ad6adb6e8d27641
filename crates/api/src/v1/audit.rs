use nuncio_core::audit::{AuditEntryView, ListAuditEntries};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(list_audit_entries))
}

page! {
    /// A page of the audit log.
    AuditEntryPage of AuditEntryView
}

/// List the audit log
///
/// Who changed what in this environment, newest first: people, API keys, the command line of the server and clients of invitations. Changes
/// of the whole project, such as of its people and prices, are in the log of the live environment. Sending a message is not a change.
#[utoipa::path(
    get, path = "/v1/audit-log", tag = "Audit log", params(ListAuditEntries),
    responses((status = 200, description = "A page of changes.", body = AuditEntryPage)),
)]
pub(crate) async fn list_audit_entries(Call(core, caller): Call, Query(list): Query<ListAuditEntries>) -> Result<Reply<AuditEntryPage>> {
    Ok(Reply::ok(core.audit().list(&caller, &list).await?.into()))
}
