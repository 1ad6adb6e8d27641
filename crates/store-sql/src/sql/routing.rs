//! What the choice of a channel rests on.

use async_trait::async_trait;
use nuncio_domain::{AddressKind, Channel, TenantId, Timestamp};
use nuncio_store::{ChannelMetrics, CountryMetrics, MetricDelta, Result, RoutingRepo};

use sqlx::QueryBuilder;

use super::{Db, SqlTx};
use crate::row::corrupt;

/// When a country has so many attempts, the old ones are halved: what was long ago says less and less.
const MEMORY: i64 = 10_000;

#[async_trait]
impl RoutingRepo for SqlTx {
    async fn recipient_metrics(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &[&str],
    ) -> Result<Vec<(String, ChannelMetrics)>> {
        type Row = (String, i16, i64, i64, i64, i64, Option<i64>, Option<i64>);
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
        let rows: Vec<Row> = self.all(query.build()).await?;
        rows.into_iter()
            .map(|(identifier, number, successes, failures, delivery_ms, timed, success, inbound)| {
                let metrics = ChannelMetrics {
                    channel: channel("channel_metrics", number)?,
                    sums: MetricDelta { successes, failures, delivery_ms, timed, last_success_at: success.map(Timestamp::from_millis) },
                    last_inbound_at: inbound.map(Timestamp::from_millis),
                };
                Ok((identifier, metrics))
            })
            .collect()
    }

    async fn country_metrics(&mut self, tenant: TenantId) -> Result<Vec<CountryMetrics>> {
        let rows: Vec<(i16, String, i64, i64)> = self
            .all(sql!(
                r"
                SELECT channel, country, successes, failures
                FROM country_metrics
                WHERE tenant_id = $1
                ORDER BY channel, country",
                [tenant.0]
            ))
            .await?;
        rows.into_iter()
            .map(|(number, country, successes, failures)| {
                Ok(CountryMetrics { channel: channel("country_metrics", number)?, country, successes, failures })
            })
            .collect()
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
            [tenant.0, delta.channel.number(), &delta.country, delta.successes, delta.failures, MEMORY]
        ))
        .await
    }
}

fn channel(table: &'static str, number: i16) -> Result<Channel> {
    Channel::from_number(number).ok_or_else(|| corrupt(table, format!("channel {number}")))
}
