//! Storage quotas: how many bytes of messages a tenant stores, if limited.

use async_trait::async_trait;
use nuncio_domain::TenantId;
use nuncio_store::{QuotaRepo, Result, Storage};

use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};

/// Chunks that no message points to are purged without being counted.
const COUNT: &str = r"
    SELECT CAST(
        COALESCE((SELECT SUM(OCTET_LENGTH(request)) FROM messages WHERE tenant_id = $1), 0)
        + COALESCE((
            SELECT SUM(OCTET_LENGTH(s.data))
            FROM spool_chunks s
            JOIN messages m ON m.tenant_id = s.tenant_id AND m.id = s.message_id
            WHERE s.tenant_id = $1
        ), 0)
        AS BIGINT
    )";

#[async_trait]
impl QuotaRepo for SqlTx {
    async fn limit_storage(&mut self, tenant: TenantId, max_bytes: Option<i64>) -> Result<()> {
        let Some(max_bytes) = max_bytes else {
            return self.write(sql!("DELETE FROM storage_quotas WHERE tenant_id = $1", [tenant])).await;
        };
        if self.changes(sql!("UPDATE storage_quotas SET max_bytes = $2 WHERE tenant_id = $1", [tenant, max_bytes])).await? {
            return Ok(());
        }
        self.limit_time(false).await?;
        let stored: Result<(i64,)> = self.one(sql!(COUNT, [tenant])).await;
        self.limit_time(true).await?;
        let (stored,) = stored?;
        self.write(sql!("INSERT INTO storage_quotas (tenant_id, max_bytes, stored_bytes) VALUES ($1, $2, $3)", [tenant, max_bytes, stored]))
            .await
    }

    async fn find_storage(&mut self, tenant: TenantId) -> Result<Option<Storage>> {
        let row = self.optional(sql!("SELECT max_bytes, stored_bytes FROM storage_quotas WHERE tenant_id = $1", [tenant])).await?;
        Ok(row.map(|(max_bytes, stored_bytes)| Storage { max_bytes, stored_bytes }))
    }
}

/// Storage used by messages: rows and chunks.
const STORED: [(&str, &str); 2] = [
    ("SELECT CAST(COALESCE(SUM(OCTET_LENGTH(request)), 0) AS BIGINT) FROM messages WHERE tenant_id = ", "id"),
    ("SELECT CAST(COALESCE(SUM(OCTET_LENGTH(data)), 0) AS BIGINT) FROM spool_chunks WHERE tenant_id = ", "message_id"),
];

impl SqlTx {
    /// What these messages keep.
    pub(super) async fn stored_bytes(&mut self, tenant: TenantId, messages: &[Uuid]) -> Result<i64> {
        let mut stored = 0;
        for (sum, column) in STORED {
            let mut query = QueryBuilder::<Db>::new(sum);
            query.push_bind(tenant.0);
            dialect::push_in(&mut query, column, messages.iter().copied());
            let (bytes,): (i64,) = self.one(query.build()).await?;
            stored += bytes;
        }
        Ok(stored)
    }

    /// Adds bytes written or erased outside message batches.
    pub(super) async fn count_stored(&mut self, tenant: i64, bytes: i64) -> Result<()> {
        self.write(sql!("UPDATE storage_quotas SET stored_bytes = stored_bytes + $2 WHERE tenant_id = $1", [tenant, bytes])).await
    }
}
