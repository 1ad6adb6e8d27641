//! References of providers, and receipts as they came.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, ReceiptId, TenantId, Timestamp};
use nuncio_store::{RawReceipt, ReceiptRecord, ReceiptRepo, Result, StrayReceipt};

use super::{Columns, Record, SqlTx};
use crate::row::json;

/// Most receipts shown at once.
const SHOWN: i64 = 100;

impl Record for RawReceipt {
    const TABLE: &'static str = "receipts";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self { id: row.get("id")?, connection: row.get("connection_id")?, reference: row.get("reference")?, raw: row.get("raw")? })
    }
}

impl Record for StrayReceipt {
    const TABLE: &'static str = "stray_receipts";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            tenant: row.get("tenant_id")?,
            receipt: RawReceipt::read(row)?,
            kind: row.json("kind")?,
            at: row.get("happened_at")?,
            tries: row.get::<i16>("tries")?.unsigned_abs(),
        })
    }
}

#[async_trait]
impl ReceiptRepo for SqlTx {
    async fn insert_stray(&mut self, stray: &StrayReceipt, due: Timestamp) -> Result<()> {
        let kind = json(&stray.kind)?;
        self.write(sql!(
            r"
                INSERT INTO stray_receipts (tenant_id, id, connection_id, reference, kind, happened_at,
                    tries, due_at, raw)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [
                stray.tenant, stray.receipt.id, stray.receipt.connection, &stray.receipt.reference, kind, stray.at, stray.tries as i16,
                due, &stray.receipt.raw
            ]
        ))
        .await
    }

    async fn due_strays(&mut self, now: Timestamp, limit: u32) -> Result<Vec<StrayReceipt>> {
        self.readable(sql!(
            r"
                SELECT tenant_id, id, connection_id, reference, kind, happened_at, tries, raw
                FROM stray_receipts
                WHERE due_at IS NOT NULL AND due_at <= $1
                ORDER BY due_at
                LIMIT $2",
            [now, limit]
        ))
        .await
    }

    async fn reschedule_stray(&mut self, stray: &StrayReceipt, due: Option<Timestamp>) -> Result<()> {
        self.write(sql!(
            r"
                UPDATE stray_receipts
                SET due_at = $3, tries = tries + 1
                WHERE tenant_id = $1 AND id = $2 AND tries = $4",
            [stray.tenant, stray.receipt.id, due, stray.tries as i16]
        ))
        .await
    }

    async fn delete_stray(&mut self, tenant: TenantId, id: ReceiptId) -> Result<()> {
        self.write(sql!("DELETE FROM stray_receipts WHERE tenant_id = $1 AND id = $2", [tenant, id])).await
    }

    async fn list_receipts(&mut self, tenant: TenantId, message: MessageId) -> Result<Vec<ReceiptRecord>> {
        let receipts: Vec<RawReceipt> = self
            .all(sql!(
                r"
                SELECT id, connection_id, reference, raw
                FROM receipts
                WHERE tenant_id = $1 AND message_id = $2
                ORDER BY id
                LIMIT $3",
                [tenant, message, SHOWN]
            ))
            .await?;
        Ok(receipts.into_iter().map(|receipt| ReceiptRecord { received_at: receipt.id.created_at(), receipt }).collect())
    }

    async fn list_strays(&mut self, tenant: TenantId) -> Result<Vec<StrayReceipt>> {
        self.all(sql!(
            r"
                SELECT tenant_id, id, connection_id, reference, kind, happened_at, tries, raw
                FROM stray_receipts
                WHERE tenant_id = $1
                ORDER BY id DESC
                LIMIT $2",
            [tenant, SHOWN]
        ))
        .await
    }
}
