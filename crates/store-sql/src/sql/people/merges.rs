//! Merged contacts.

use nuncio_domain::id::Id as _;
use nuncio_domain::{ContactId, TenantId, Timestamp};
use nuncio_store::Result;
use uuid::Uuid;

use super::super::SqlTx;
use crate::SqlxResult as _;
use crate::row::of_contact;

pub(super) async fn merge(tx: &mut SqlTx, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()> {
    for statement in [
        concat!("UPDATE addresses SET contact_id = $3 WHERE tenant_id = $1 AND ", of_contact!()),
        "UPDATE merged_contacts SET target_id = $3 WHERE tenant_id = $1 AND target_id = $2",
    ] {
        sqlx::query(statement).bind(tenant.0).bind(source.uuid()).bind(target.uuid()).execute(tx.conn()).await.or_end(tx)?;
    }
    sqlx::query("INSERT INTO merged_contacts (tenant_id, id, target_id, merged_at) VALUES ($1, $2, $3, $4)")
        .bind(tenant.0)
        .bind(source.uuid())
        .bind(target.uuid())
        .bind(now.millis())
        .execute(tx.conn())
        .await
        .or_end(tx)?;
    sqlx::query("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2")
        .bind(tenant.0)
        .bind(source.uuid())
        .execute(tx.conn())
        .await
        .or_end(tx)?;
    Ok(())
}

pub(super) async fn target(tx: &mut SqlTx, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>> {
    let row: Option<(Uuid,)> = sqlx::query_as(
        r"
            SELECT target_id
            FROM merged_contacts
            WHERE tenant_id = $1 AND id = $2",
    )
    .bind(tenant.0)
    .bind(id.uuid())
    .fetch_optional(tx.conn())
    .await
    .or_end(tx)?;
    Ok(row.map(|(target,)| ContactId::from_uuid(target)))
}

pub(super) async fn sources(tx: &mut SqlTx, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>> {
    let rows: Vec<(Uuid,)> = sqlx::query_as(
        r"
            SELECT id
            FROM merged_contacts
            WHERE tenant_id = $1 AND target_id = $2
            ORDER BY id",
    )
    .bind(tenant.0)
    .bind(id.uuid())
    .fetch_all(tx.conn())
    .await
    .or_end(tx)?;
    Ok(rows.into_iter().map(|(source,)| ContactId::from_uuid(source)).collect())
}
