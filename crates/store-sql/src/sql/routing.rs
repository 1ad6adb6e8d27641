//! What the choice of a channel rests on.

use async_trait::async_trait;
use nuncio_domain::{AddressKind, TenantId};
use nuncio_store::{ChannelMetrics, CountryMetrics, Result, RoutingRepo};

use sqlx::QueryBuilder;

use super::{Columns, Db, Record, SqlTx};

/// When a country has so many attempts, the old ones are halved: what was long ago says less and less.
const MEMORY: i64 = 10_000;

impl Record for CountryMetrics {
    const TABLE: &'static str = "country_metrics";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            channel: row.get("channel")?,
            country: row.get("country")?,
            successes: row.get("successes")?,
            failures: row.get("failures")?,
        })
    }
}

#[async_trait]
impl RoutingRepo for SqlTx {
    async fn recipient_metrics(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &[&str],
    ) -> Result<Vec<(String, ChannelMetrics)>> {
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT a.identifier, m.channel, m.successes, m.failures, m.delivery_ms, m.timed,
                    m.last_success_at, m.last_inbound_at
                FROM addresses a
                JOIN channel_metrics m ON m.tenant_id = a.tenant_id AND m.address_id = a.id
                WHERE a.tenant_id = ",
        );
        query.push_bind(tenant.0).push(" AND a.kind = ").push_bind(kind.number()).push(" AND a.identifier IN (");
        let mut list = query.separated(", ");
        for identifier in identifiers {
            list.push_bind((*identifier).to_owned());
        }
        query.push(") ORDER BY a.identifier, m.channel");
        let rows = self.rows(query.build()).await?;
        let columns = |row| Columns { row, table: "channel_metrics" };
        rows.iter().map(columns).map(|row| Ok((row.get("identifier")?, ChannelMetrics::read(&row)?))).collect()
    }

    async fn country_metrics(&mut self, tenant: TenantId) -> Result<Vec<CountryMetrics>> {
        self.all(sql!(
            r"
                SELECT channel, country, successes, failures
                FROM country_metrics
                WHERE tenant_id = $1
                ORDER BY channel, country",
            [tenant]
        ))
        .await
    }

    async fn add_country_metrics(&mut self, tenant: TenantId, delta: &CountryMetrics) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO country_metrics AS m (tenant_id, channel, country, successes, failures)
                VALUES ($1, $2, $3, $4, $5)
                ON CONFLICT (tenant_id, channel, country) DO UPDATE SET
                    successes = excluded.successes
                        + CASE WHEN m.successes + m.failures > $6 THEN m.successes / 2 ELSE m.successes END,
                    failures = excluded.failures
                        + CASE WHEN m.successes + m.failures > $6 THEN m.failures / 2 ELSE m.failures END",
            [tenant, delta.channel, &delta.country, delta.successes, delta.failures, MEMORY]
        ))
        .await
    }
}
