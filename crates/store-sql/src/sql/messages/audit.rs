//! Looks for unfinished messages that no agenda row guards.

use std::collections::{BTreeSet, HashMap};

use nuncio_store::Result;
use uuid::Uuid;

use super::super::SqlTx;
use crate::agenda::members;
use crate::row::{DueRow, select_due};

/// Tenant, id, owner, due time and members.
type AgendaRow = (i64, i64, Option<i64>, Option<i64>, Vec<u8>);
/// Owner and due time of an agenda row.
type Guard = (Option<i64>, Option<i64>);

/// Reads every state. That takes as long as it takes: nobody waits for it but the operator who asked.
pub(super) async fn count_unguarded_messages(tx: &mut SqlTx) -> Result<i64> {
    tx.limit_time(false).await?;
    let count = count(tx).await;
    tx.limit_time(true).await?;
    count
}

async fn count(tx: &mut SqlTx) -> Result<i64> {
    let faulty: Vec<(i64, Uuid)> = tx
        .all(sql!(
            r"
            SELECT tenant_id, id
            FROM states s
            WHERE NOT (
                (
                    wait = 0
                    AND due_at IS NULL
                    AND owner IS NULL
                    AND agenda IS NULL
                    AND status IN (4, 5, 6, 7, 8, 9)
                )
                OR (wait IN (1, 3) AND due_at IS NOT NULL AND owner IS NULL)
                OR (wait = 4 AND due_at IS NOT NULL AND owner IS NULL AND held <> 0)
                OR (
                    wait = 2
                    AND due_at IS NULL
                    AND EXISTS (SELECT 1 FROM nodes n WHERE n.id = s.owner AND n.dead = 0)
                )
            )"
        ))
        .await?;
    let mut unguarded: BTreeSet<(i64, Uuid)> = faulty.into_iter().collect();
    // What the agenda says of each: the owner of its row, or the moment at which the row is looked at.
    let mut agenda: HashMap<(i64, i64, Uuid), Guard> = HashMap::new();
    let rows: Vec<AgendaRow> = tx.all(sql!("SELECT tenant_id, id, owner, due_at, ids FROM agenda")).await?;
    for (tenant, id, owner, due_at, ids) in rows {
        agenda.extend(members(&ids)?.into_iter().map(|member| ((tenant, id, member), (owner, due_at))));
    }
    let unfinished: Vec<DueRow> = tx.all(sql!(concat!(select_due!(), " WHERE s.wait <> 0"))).await?;
    for row in unfinished {
        let guard = row.agenda.and_then(|id| agenda.get(&(row.tenant_id, id, row.id)));
        let comes = |(owner, due): &Guard| *owner == row.owner && due.is_some() == row.due_at.is_some() && *due <= row.due_at;
        if !guard.is_some_and(comes) {
            unguarded.insert((row.tenant_id, row.id));
        }
    }
    Ok(unguarded.len() as i64)
}
