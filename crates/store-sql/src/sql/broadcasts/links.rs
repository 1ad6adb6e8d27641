//! Links of broadcasts that are counted.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::{BroadcastId, TenantId, Timestamp};
use nuncio_store::{BroadcastClick, BroadcastLink, BroadcastLinkRepo, LinkClicks, Result};
use sqlx::QueryBuilder;

use super::super::{Db, SqlTx};

/// Links per statement.
const AT_ONCE: usize = 100;

#[async_trait]
impl BroadcastLinkRepo for SqlTx {
    async fn put_broadcast_links(&mut self, tenant: TenantId, id: BroadcastId, links: &[BroadcastLink]) -> Result<()> {
        for links in links.chunks(AT_ONCE) {
            let mut query = QueryBuilder::<Db>::new("INSERT INTO broadcast_links (tenant_id, key, broadcast_id, url) ");
            query.push_values(links, |mut row, link| {
                row.push_bind(tenant.0).push_bind(link.key).push_bind(id.uuid()).push_bind(link.url.clone());
            });
            query.push(" ON CONFLICT (tenant_id, key) DO NOTHING");
            self.run(query.build()).await?;
        }
        Ok(())
    }

    async fn find_broadcast_link(&mut self, tenant: TenantId, key: i64) -> Result<Option<(BroadcastId, String)>> {
        self.optional(sql!("SELECT broadcast_id, url FROM broadcast_links WHERE tenant_id = $1 AND key = $2", [tenant, key])).await
    }

    async fn count_broadcast_clicks(&mut self, click: BroadcastClick, clicks: u64, first_at: Timestamp) -> Result<()> {
        let BroadcastClick { tenant, broadcast, link, recipient } = click;
        self.write(sql!(
            r"
                INSERT INTO broadcast_clicks AS c (tenant_id, broadcast_id, key, recipient, clicks, first_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, broadcast_id, key, recipient) DO UPDATE SET clicks = c.clicks + excluded.clicks",
            [tenant, broadcast, link, recipient, clicks as i64, first_at]
        ))
        .await
    }

    async fn broadcast_clicks(&mut self, tenant: TenantId, id: BroadcastId) -> Result<Vec<LinkClicks>> {
        let rows = self
            .all(sql!(
                r"
                SELECT l.url, COUNT(c.recipient), CAST(COALESCE(SUM(c.clicks), 0) AS BIGINT) AS clicks
                FROM broadcast_links l
                LEFT JOIN broadcast_clicks c
                  ON c.tenant_id = l.tenant_id AND c.broadcast_id = l.broadcast_id AND c.key = l.key
                WHERE l.tenant_id = $1 AND l.broadcast_id = $2
                GROUP BY l.key, l.url
                ORDER BY clicks DESC, l.url",
                [tenant, id]
            ))
            .await?;
        Ok(rows.into_iter().map(|(url, recipients, clicks)| LinkClicks { url, recipients, clicks }).collect())
    }
}
