//! Links of broadcasts that are counted.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::{BroadcastId, TenantId, Timestamp};
use nuncio_store::{BroadcastLink, BroadcastLinkRepo, LinkClicks, Result};
use uuid::Uuid;

use super::super::SqlTx;
use crate::SqlxResult as _;

#[async_trait]
impl BroadcastLinkRepo for SqlTx {
    async fn put_broadcast_links(&mut self, tenant: TenantId, id: BroadcastId, links: &[BroadcastLink]) -> Result<()> {
        for link in links {
            sqlx::query(
                r"
                    INSERT INTO broadcast_links (tenant_id, key, broadcast_id, url)
                    VALUES ($1, $2, $3, $4)
                    ON CONFLICT (tenant_id, key) DO NOTHING",
            )
            .bind(tenant.0)
            .bind(link.key)
            .bind(id.uuid())
            .bind(&link.url)
            .execute(self.conn())
            .await
            .or_end(self)?;
        }
        Ok(())
    }

    async fn find_broadcast_link(&mut self, tenant: TenantId, key: i64) -> Result<Option<(BroadcastId, String)>> {
        let row: Option<(Uuid, String)> = sqlx::query_as("SELECT broadcast_id, url FROM broadcast_links WHERE tenant_id = $1 AND key = $2")
            .bind(tenant.0)
            .bind(key)
            .fetch_optional(self.conn())
            .await
            .or_end(self)?;
        Ok(row.map(|(id, url)| (BroadcastId::from_uuid(id), url)))
    }

    async fn count_broadcast_click(&mut self, tenant: TenantId, id: BroadcastId, key: i64, recipient: i64, now: Timestamp) -> Result<()> {
        sqlx::query(
            r"
                INSERT INTO broadcast_clicks AS c (tenant_id, broadcast_id, key, recipient, clicks, first_at)
                VALUES ($1, $2, $3, $4, 1, $5)
                ON CONFLICT (tenant_id, broadcast_id, key, recipient) DO UPDATE SET clicks = c.clicks + 1",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .bind(key)
        .bind(recipient)
        .bind(now.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn broadcast_clicks(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Vec<LinkClicks>> {
        let rows: Vec<(String, i64, i64)> = sqlx::query_as(
            r"
                SELECT l.url, COUNT(c.recipient), CAST(COALESCE(SUM(c.clicks), 0) AS BIGINT) AS clicks
                FROM broadcast_links l
                LEFT JOIN broadcast_clicks c
                  ON c.tenant_id = l.tenant_id AND c.broadcast_id = l.broadcast_id AND c.key = l.key
                WHERE l.tenant_id = $1 AND l.broadcast_id = $2
                GROUP BY l.key, l.url
                ORDER BY clicks DESC, l.url",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        let clicks =
            |(url, recipients, clicks): (String, i64, i64)| LinkClicks { url, recipients: recipients as u64, clicks: clicks as u64 };
        Ok(rows.into_iter().map(clicks).collect())
    }
}
