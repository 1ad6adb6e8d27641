//! References of providers, and receipts as they came.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::{ConnectionId, MessageId, ReceiptId, TenantId, Timestamp};
use nuncio_store::{RawReceipt, ReceiptRecord, ReceiptRepo, Result, StrayReceipt};
use uuid::Uuid;

use super::SqlTx;
use crate::row::{corrupt, from_row, json};

/// Most receipts shown at once.
const SHOWN: i64 = 100;

from_row! {
    struct StrayRow {
        tenant_id: i64,
        id: Uuid,
        connection_id: Uuid,
        reference: String,
        kind: String,
        happened_at: i64,
        tries: i16,
        raw: String,
    }
}

impl StrayRow {
    fn decode(self) -> Result<StrayReceipt> {
        Ok(StrayReceipt {
            tenant: TenantId(self.tenant_id),
            receipt: raw(self.id, self.connection_id, self.reference, self.raw),
            kind: serde_json::from_str(&self.kind).map_err(|e| corrupt("stray_receipts", e))?,
            at: Timestamp::from_millis(self.happened_at),
            tries: self.tries.unsigned_abs(),
        })
    }
}

fn raw(id: Uuid, connection: Uuid, reference: String, raw: String) -> RawReceipt {
    RawReceipt { id: ReceiptId::from_uuid(id), connection: ConnectionId::from_uuid(connection), reference, raw }
}

#[async_trait]
impl ReceiptRepo for SqlTx {
    async fn insert_stray(&mut self, stray: &StrayReceipt, due: Timestamp) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO stray_receipts (tenant_id, id, connection_id, reference, kind, happened_at,
                    tries, due_at, raw)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
            [
                stray.tenant.0,
                stray.receipt.id.uuid(),
                stray.receipt.connection.uuid(),
                &stray.receipt.reference,
                json(&stray.kind)?,
                stray.at.millis(),
                stray.tries as i16,
                due.millis(),
                &stray.receipt.raw
            ]
        ))
        .await
    }

    async fn due_strays(&mut self, now: Timestamp, limit: u32) -> Result<Vec<StrayReceipt>> {
        let rows: Vec<StrayRow> = self
            .all(sql!(
                r"
                SELECT tenant_id, id, connection_id, reference, kind, happened_at, tries, raw
                FROM stray_receipts
                WHERE due_at IS NOT NULL AND due_at <= $1
                ORDER BY due_at
                LIMIT $2",
                [now.millis(), i64::from(limit)]
            ))
            .await?;
        Ok(super::query::readable(rows.into_iter().map(StrayRow::decode)))
    }

    async fn reschedule_stray(&mut self, stray: &StrayReceipt, due: Option<Timestamp>) -> Result<()> {
        self.write(sql!(
            r"
                UPDATE stray_receipts
                SET due_at = $3, tries = tries + 1
                WHERE tenant_id = $1 AND id = $2 AND tries = $4",
            [stray.tenant.0, stray.receipt.id.uuid(), due.map(Timestamp::millis), stray.tries as i16]
        ))
        .await
    }

    async fn delete_stray(&mut self, tenant: TenantId, id: ReceiptId) -> Result<()> {
        self.run(sql!("DELETE FROM stray_receipts WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await.map(drop)
    }

    async fn list_receipts(&mut self, tenant: TenantId, message: MessageId) -> Result<Vec<ReceiptRecord>> {
        let rows: Vec<(Uuid, Uuid, String, String)> = self
            .all(sql!(
                r"
                SELECT id, connection_id, reference, raw
                FROM receipts
                WHERE tenant_id = $1 AND message_id = $2
                ORDER BY id
                LIMIT $3",
                [tenant.0, message.uuid(), SHOWN]
            ))
            .await?;
        let record = |(id, connection, reference, text)| {
            let receipt = raw(id, connection, reference, text);
            ReceiptRecord { received_at: receipt.id.created_at(), receipt }
        };
        Ok(rows.into_iter().map(record).collect())
    }

    async fn list_strays(&mut self, tenant: TenantId) -> Result<Vec<StrayReceipt>> {
        let rows: Vec<StrayRow> = self
            .all(sql!(
                r"
                SELECT tenant_id, id, connection_id, reference, kind, happened_at, tries, raw
                FROM stray_receipts
                WHERE tenant_id = $1
                ORDER BY id DESC
                LIMIT $2",
                [tenant.0, SHOWN]
            ))
            .await?;
        rows.into_iter().map(StrayRow::decode).collect()
    }
}
