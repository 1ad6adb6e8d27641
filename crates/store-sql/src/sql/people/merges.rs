//! Merged contacts.

use nuncio_domain::id::Id as _;
use nuncio_domain::{ContactId, TenantId, Timestamp};
use nuncio_store::Result;
use uuid::Uuid;

use super::super::SqlTx;
use crate::row::of_contact;

pub(super) async fn merge(tx: &mut SqlTx, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()> {
    for statement in [
        concat!("UPDATE addresses SET contact_id = $3 WHERE tenant_id = $1 AND ", of_contact!()),
        "UPDATE merged_contacts SET target_id = $3 WHERE tenant_id = $1 AND target_id = $2",
    ] {
        tx.run(sql!(statement, [tenant.0, source.uuid(), target.uuid()])).await?;
    }
    tx.run(sql!(
        "INSERT INTO merged_contacts (tenant_id, id, target_id, merged_at) VALUES ($1, $2, $3, $4)",
        [tenant.0, source.uuid(), target.uuid(), now.millis()]
    ))
    .await?;
    tx.run(sql!("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2", [tenant.0, source.uuid()])).await?;
    Ok(())
}

pub(super) async fn target(tx: &mut SqlTx, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>> {
    let row: Option<(Uuid,)> = tx
        .optional(sql!(
            r"
            SELECT target_id
            FROM merged_contacts
            WHERE tenant_id = $1 AND id = $2",
            [tenant.0, id.uuid()]
        ))
        .await?;
    Ok(row.map(|(target,)| ContactId::from_uuid(target)))
}

pub(super) async fn sources(tx: &mut SqlTx, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>> {
    let rows: Vec<(Uuid,)> = tx
        .all(sql!(
            r"
            SELECT id
            FROM merged_contacts
            WHERE tenant_id = $1 AND target_id = $2
            ORDER BY id",
            [tenant.0, id.uuid()]
        ))
        .await?;
    Ok(rows.into_iter().map(|(source,)| ContactId::from_uuid(source)).collect())
}
