//! Balances and ledger rows.

use std::collections::BTreeSet;

use nuncio_domain::ledger::Balance;
use nuncio_domain::{Micros, TenantId};
use nuncio_store::{Result, StoreError};

use super::super::batch_error::BatchError;
use super::super::session::{Params, failed};
use super::{Session, column};
use crate::ledger_batch::{LedgerBatch, reserved_amount};
use crate::message_batch::Prepared;

pub(super) const BALANCES: &str = r"
    SELECT b.tenant_id, b.available, b.reserved, b.spent, b.limited
    FROM unnest($1::bigint[]) AS u (tenant_id)
    JOIN balances b ON b.tenant_id = u.tenant_id";

pub(super) const INSERT: &str = r"
    INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id,
        recorded_at)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::smallint[],
        $7::bigint[], $8::uuid[], $9::bigint[])";

/// Skips a tenant whose balance has become too small meanwhile.
pub(super) const MOVE: &str = r"
    INSERT INTO balances AS b (tenant_id, available, reserved, spent, limited)
    SELECT u.tenant_id, u.available, u.reserved, u.spent, 0
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
      AS u (tenant_id, available, reserved, spent)
    ON CONFLICT (tenant_id) DO UPDATE SET
        available = b.available + excluded.available,
        reserved = b.reserved + excluded.reserved,
        spent = b.spent + excluded.spent
    WHERE b.limited = 0
      OR excluded.available >= 0
      OR b.available + excluded.available >= 0";

/// Reads the balances of the tenants whose new messages may cost something.
pub(super) async fn load(session: &Session, all: &[&Prepared], ledger: &mut LedgerBatch) -> Result<(), BatchError> {
    let tenants: BTreeSet<i64> = all.iter().filter(|p| reserved_amount(&p.item.message) > 0).map(|p| p.item.message.tenant.0).collect();
    if tenants.is_empty() {
        return Ok(());
    }
    let tenants: Vec<i64> = tenants.into_iter().collect();
    for row in session.query(&session.statements.balances, &[&tenants]).await.map_err(failed)? {
        let (available, reserved, spent) = (Micros(row.get(1)), Micros(row.get(2)), Micros(row.get(3)));
        ledger.know(TenantId(row.get(0)), Balance { available, reserved, spent, limited: row.get::<_, i16>(4) != 0 });
    }
    Ok(())
}

/// Inserts the ledger rows of a batch and updates the balances.
pub(super) async fn write(session: &Session, ledger: &LedgerBatch) -> Result<()> {
    if ledger.is_empty() {
        return Ok(());
    }
    let rows = &ledger.rows;
    let transfers: &Params<'_> = &[
        &column(rows, |r| r.tenant),
        &column(rows, |r| r.resource),
        &column(rows, |r| r.purpose.number()),
        &column(rows, |r| r.part),
        &column(rows, |r| r.purpose.accounts().0.number()),
        &column(rows, |r| r.purpose.accounts().1.number()),
        &column(rows, |r| r.amount),
        &column(rows, |r| r.sender),
        &column(rows, |r| r.at),
    ];
    let moves: Vec<_> = ledger.moves.iter().collect();
    let balances: &Params<'_> = &[
        &column(&moves, |(tenant, _)| **tenant),
        &column(&moves, |(_, m)| m.available),
        &column(&moves, |(_, m)| m.reserved),
        &column(&moves, |(_, m)| m.spent),
    ];
    let s = &session.statements;
    let (transferred, moved) =
        tokio::join!(session.execute(true, &s.insert_transfers, transfers), session.execute(true, &s.move_balances, balances));
    transferred.map_err(failed)?;
    if moved.map_err(failed)? < moves.len() as u64 {
        return Err(StoreError::Busy("another node spent what this batch counted on".to_owned()));
    }
    Ok(())
}
