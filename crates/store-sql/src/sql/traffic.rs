//! Figures by hour and by day.

use async_trait::async_trait;
use nuncio_domain::{Channel, TenantId, Timestamp};
use nuncio_store::{DAY, HOUR, Result, Traffic, TrafficRepo, TrafficRow};

use super::{Columns, Record, SqlTx};

/// What was sent on a channel to a country.
struct CountryRow(Channel, String, Traffic);

impl Record for CountryRow {
    const TABLE: &'static str = "traffic";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let mut sums = [0; 13];
        for (n, sum) in sums.iter_mut().enumerate() {
            *sum = row.get(2 + n)?;
        }
        let [sent, unconfirmed, delivered, failed, spent, delays @ ..] = sums;
        Ok(Self(row.get("channel")?, row.get("country")?, Traffic { sent, unconfirmed, delivered, failed, spent, delays }))
    }
}

#[async_trait]
impl TrafficRepo for SqlTx {
    async fn add_traffic(&mut self, tenant: TenantId, row: &TrafficRow) -> Result<()> {
        let figures = &row.figures;
        let mut query = sqlx::query(
            r"
                INSERT INTO traffic AS t (
                    tenant_id, span, began, channel, country, sent, unconfirmed, delivered, failed, spent,
                    within_1s, within_2s, within_5s, within_15s, within_1m, within_5m, within_30m, later
                )
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)
                ON CONFLICT (tenant_id, span, began, channel, country) DO UPDATE SET
                    sent = t.sent + excluded.sent,
                    unconfirmed = t.unconfirmed + excluded.unconfirmed,
                    delivered = t.delivered + excluded.delivered,
                    failed = t.failed + excluded.failed,
                    spent = t.spent + excluded.spent,
                    within_1s = t.within_1s + excluded.within_1s,
                    within_2s = t.within_2s + excluded.within_2s,
                    within_5s = t.within_5s + excluded.within_5s,
                    within_15s = t.within_15s + excluded.within_15s,
                    within_1m = t.within_1m + excluded.within_1m,
                    within_5m = t.within_5m + excluded.within_5m,
                    within_30m = t.within_30m + excluded.within_30m,
                    later = t.later + excluded.later",
        )
        .bind(tenant.0)
        .bind(row.span)
        .bind(row.began.millis())
        .bind(row.channel.number())
        .bind(&row.country);
        for sum in [figures.sent, figures.unconfirmed, figures.delivered, figures.failed, figures.spent].into_iter().chain(figures.delays) {
            query = query.bind(sum);
        }
        self.write(query).await
    }

    async fn traffic_by_time(&mut self, tenant: TenantId, since: Timestamp, hours: i64) -> Result<Vec<(Timestamp, Channel, Traffic)>> {
        let step = hours * HOUR;
        let rows: Vec<(Timestamp, i16, i64, i64, i64, i64, i64)> = self
            .all(sql!(
                r"
                SELECT (began - $2) / $3 * $3 + $2, channel,
                    CAST(SUM(sent) AS BIGINT), CAST(SUM(unconfirmed) AS BIGINT), CAST(SUM(delivered) AS BIGINT),
                    CAST(SUM(failed) AS BIGINT), CAST(SUM(spent) AS BIGINT)
                FROM traffic
                WHERE tenant_id = $1 AND began >= $2 AND span = $4
                GROUP BY 1, 2
                ORDER BY 1, 2",
                [tenant, since, step, longest_span(since, step)]
            ))
            .await?;
        rows.into_iter()
            .map(|(at, number, sent, unconfirmed, delivered, failed, spent)| {
                let figures = Traffic { sent, unconfirmed, delivered, failed, spent, ..Traffic::default() };
                Ok((at, channel(number)?, figures))
            })
            .collect()
    }

    async fn traffic_by_country(&mut self, tenant: TenantId, since: Timestamp) -> Result<Vec<(Channel, String, Traffic)>> {
        let rows: Vec<CountryRow> = self
            .all(sql!(
                r"
                SELECT channel, country,
                    CAST(SUM(sent) AS BIGINT), CAST(SUM(unconfirmed) AS BIGINT), CAST(SUM(delivered) AS BIGINT),
                    CAST(SUM(failed) AS BIGINT), CAST(SUM(spent) AS BIGINT),
                    CAST(SUM(within_1s) AS BIGINT), CAST(SUM(within_2s) AS BIGINT), CAST(SUM(within_5s) AS BIGINT),
                    CAST(SUM(within_15s) AS BIGINT), CAST(SUM(within_1m) AS BIGINT), CAST(SUM(within_5m) AS BIGINT),
                    CAST(SUM(within_30m) AS BIGINT), CAST(SUM(later) AS BIGINT)
                FROM traffic
                WHERE tenant_id = $1 AND began >= $2 AND span = $3
                GROUP BY channel, country
                ORDER BY channel, country",
                [tenant, since, longest_span(since, DAY)]
            ))
            .await?;
        Ok(rows.into_iter().map(|CountryRow(channel, country, figures)| (channel, country, figures)).collect())
    }

    async fn forget_traffic(&mut self, tenant: TenantId, before: Timestamp, limit: u32) -> Result<u64> {
        let rows: Vec<(i64, i64, i16, String)> = self
            .all(sql!(
                r"
                SELECT span, began, channel, country
                FROM traffic
                WHERE tenant_id = $1 AND span IN ($2, $3) AND began < $4
                ORDER BY span, began, channel, country
                LIMIT $5",
                [tenant, HOUR, DAY, before, limit]
            ))
            .await?;
        for (span, began, number, country) in &rows {
            self.run(sql!(
                "DELETE FROM traffic WHERE tenant_id = $1 AND span = $2 AND began = $3 AND channel = $4 AND country = $5",
                [tenant, span, began, number, country]
            ))
            .await?;
        }
        Ok(rows.len() as u64)
    }
}

/// The span of the fewest rows that add up to steps of `step` milliseconds from `since` on.
const fn longest_span(since: Timestamp, step: i64) -> i64 {
    if since.millis() % DAY == 0 && step % DAY == 0 { DAY } else { HOUR }
}

fn channel(number: i16) -> Result<Channel> {
    crate::row::number(Channel::from_number, "traffic", "channel", number)
}
