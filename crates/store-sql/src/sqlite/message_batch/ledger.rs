//! Balances and ledger rows.

use nuncio_domain::ledger::Balance;
use nuncio_domain::{Micros, TenantId};
use rusqlite::params;
use uuid::Uuid;

use super::Statements;
use crate::ledger_batch::{LedgerBatch, reserved_amount};
use crate::message_batch::AcceptOp;

const BALANCE: &str = "SELECT available, reserved, spent, limited FROM balances WHERE tenant_id = ?1";
const INSERT_TRANSFER: &str = r"
    INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id,
        recorded_at)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

const MOVE_BALANCE: &str = r"
    INSERT INTO balances (tenant_id, available, reserved, spent, limited)
    VALUES (?1, ?2, ?3, ?4, 0)
    ON CONFLICT (tenant_id) DO UPDATE SET
        available = available + excluded.available,
        reserved = reserved + excluded.reserved,
        spent = spent + excluded.spent";

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
