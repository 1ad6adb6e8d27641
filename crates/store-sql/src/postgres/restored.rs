//! An event log that was restored into another cluster.
//!
//! The place of a row in the log is the number of the transaction that wrote it. A new cluster counts from the beginning, so what a dump
//! brought stands above every transaction to come: readers would wait until the numbers have caught up.

use nuncio_store::Result;
use sqlx::PgPool;

use crate::SqlxResult as _;

/// Rows of one statement.
const ROWS: i64 = 5_000;

/// Worlds with places that no transaction of this cluster can have given.
const FOREIGN: &str = "SELECT EXISTS (SELECT 1 FROM worlds w WHERE \
     EXISTS (SELECT 1 FROM events e WHERE e.tenant_id = w.tenant_id AND e.position >= x.next) \
     OR EXISTS (SELECT 1 FROM webhook_cursors c WHERE c.tenant_id = w.tenant_id AND c.position >= x.next)) \
     FROM (SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS TEXT) AS BIGINT) AS next) x";

/// A reader goes on before the first row that it has not read. Rows that were written at the same time may have come out of order: some
/// may be read once more.
const MOVE_CURSOR: &str = "UPDATE webhook_cursors c SET position = 0, entry = COALESCE( \
     (SELECT MIN(e.entry) - 1 FROM events e WHERE e.tenant_id = c.tenant_id AND (e.position, e.entry) > (c.position, c.entry)), \
     (SELECT MAX(n.entry) FROM (SELECT entry FROM events e WHERE e.tenant_id = c.tenant_id ORDER BY position DESC, e.entry DESC LIMIT 1000) n), 0) \
     WHERE c.tenant_id = $1 AND c.position > 0";

const MOVE_ROWS: &str = "WITH part AS (SELECT tenant_id, resource_id, sequence, position FROM events \
       WHERE tenant_id = $1 AND position >= $2 ORDER BY position, entry LIMIT $3), \
     moved AS (UPDATE events e SET position = 0 FROM part p \
       WHERE e.tenant_id = p.tenant_id AND e.resource_id = p.resource_id AND e.sequence = p.sequence) \
     SELECT MAX(position) FROM part";

/// Puts all rows before the first transaction if some stand where none of this cluster can have written them; their order is kept by
/// `entry`. May be ended half-way: what stands highest goes last, so the next start goes on.
pub(super) async fn lower_foreign_places(pool: &PgPool) -> Result<()> {
    let (foreign,): (bool,) = sqlx::query_as(FOREIGN).fetch_one(pool).await.store()?;
    if !foreign {
        return Ok(());
    }
    tracing::warn!("the event log comes from another cluster; its rows are put before those to come, which may take a while");
    let tenants: Vec<(i64,)> = sqlx::query_as("SELECT tenant_id FROM worlds ORDER BY tenant_id").fetch_all(pool).await.store()?;
    for (tenant,) in tenants {
        sqlx::query(MOVE_CURSOR).bind(tenant).execute(pool).await.store()?;
        let mut from = Some(1);
        while let Some(at) = from {
            (from,) = sqlx::query_as::<_, (Option<i64>,)>(MOVE_ROWS).bind(tenant).bind(at).bind(ROWS).fetch_one(pool).await.store()?;
        }
    }
    Ok(())
}
