//! Nodes that read the log for webhooks.

use nuncio_domain::TenantId;
use nuncio_domain::message::NodeId;
use nuncio_store::{LogReader, Position, Result};

use super::super::SqlTx;

pub(super) async fn open(tx: &mut SqlTx, tenant: TenantId, from: Position) -> Result<()> {
    tx.run(sql!(
        r"
            INSERT INTO webhook_cursors (tenant_id, position, entry, owner, fence)
            VALUES ($1, $2, $3, NULL, 0)
            ON CONFLICT (tenant_id) DO NOTHING",
        [tenant.0, from.commit, from.entry]
    ))
    .await?;
    Ok(())
}

pub(super) async fn close(tx: &mut SqlTx, tenant: TenantId) -> Result<()> {
    tx.run(sql!("DELETE FROM webhook_cursors WHERE tenant_id = $1", [tenant.0])).await?;
    Ok(())
}

pub(super) async fn list(tx: &mut SqlTx) -> Result<Vec<LogReader>> {
    let rows: Vec<(i64, i64, i64, Option<i64>, i64)> =
        tx.all(sql!("SELECT tenant_id, position, entry, owner, fence FROM webhook_cursors ORDER BY tenant_id")).await?;
    let reader = |(tenant, commit, entry, owner, fence): (i64, i64, i64, Option<i64>, i64)| LogReader {
        tenant: TenantId(tenant),
        read: Position { commit, entry },
        owner: owner.map(NodeId),
        fence,
    };
    Ok(rows.into_iter().map(reader).collect())
}

pub(super) async fn claim(tx: &mut SqlTx, tenant: TenantId, fence: i64, node: Option<NodeId>) -> Result<Option<i64>> {
    let changed = tx
        .run(sql!(
            r"
            UPDATE webhook_cursors
            SET owner = $3, fence = fence + 1
            WHERE tenant_id = $1 AND fence = $2",
            [tenant.0, fence, node.map(|n| n.0)]
        ))
        .await?;
    Ok((changed == 1).then_some(fence + 1))
}
