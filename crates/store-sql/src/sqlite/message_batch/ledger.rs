//! Balances and ledger rows.

use nuncio_domain::ledger::Balance;
use nuncio_domain::{Micros, TenantId};
use rusqlite::params;
use uuid::Uuid;

use super::statements::{BALANCE, INSERT_TRANSFER, MOVE_BALANCE, Statements};
use crate::ledger_batch::{LedgerBatch, reserved_amount};
use crate::message_batch::AcceptOp;

/// Reads the balances of the tenants whose new messages may cost something.
pub(super) fn load(sql: &mut Statements<'_>, ops: &[AcceptOp]) -> rusqlite::Result<LedgerBatch> {
    let mut ledger = LedgerBatch::default();
    let messages = ops.iter().map(|op| &op.item.item.message);
    let mut tenants: Vec<i64> = messages.filter(|message| reserved_amount(message) > 0).map(|message| message.tenant.0).collect();
    tenants.sort_unstable();
    tenants.dedup();
    for tenant in tenants {
        let balance = sql.find(BALANCE, [tenant], |row| {
            let (available, reserved, spent) = (Micros(row.get(0)?), Micros(row.get(1)?), Micros(row.get(2)?));
            Ok(Balance { available, reserved, spent, limited: row.get::<_, i16>(3)? != 0 })
        })?;
        ledger.know(TenantId(tenant), balance.unwrap_or_default());
    }
    Ok(ledger)
}

/// Inserts the ledger rows of a batch and updates the balances.
pub(super) fn write(sql: &mut Statements<'_>, ledger: &LedgerBatch) -> rusqlite::Result<()> {
    for row in &ledger.rows {
        let (debit, credit) = row.purpose.accounts();
        sql.get(INSERT_TRANSFER)?.execute(params![
            row.tenant,
            row.resource.as_bytes(),
            row.purpose.number(),
            row.part,
            debit.number(),
            credit.number(),
            row.amount,
            row.sender.map(Uuid::into_bytes),
            row.at
        ])?;
    }
    for (tenant, moves) in &ledger.moves {
        sql.execute(MOVE_BALANCE, params![tenant, moves.available, moves.reserved, moves.spent])?;
    }
    Ok(())
}
