//! The price list.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::Cost;
use nuncio_domain::price::{Price, Unit};
use nuncio_domain::{Channel, Micros, ProjectId, Timestamp};
use nuncio_store::{PriceRepo, Result};
use uuid::Uuid;

use super::SqlTx;
use crate::SqlxResult as _;
use crate::row::corrupt;

#[async_trait]
impl PriceRepo for SqlTx {
    async fn list_prices(&mut self, project: Option<ProjectId>) -> Result<Vec<Price>> {
        let rows: Vec<(i16, String, i64, i16, i64, i64)> = sqlx::query_as(
            r"
                SELECT channel, country, effective_from, unit, fee, provider
                FROM prices
                WHERE project_id = $1
                ORDER BY channel, country, effective_from",
        )
        .bind(scope(project))
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        rows.into_iter()
            .map(|(channel, country, effective_from, unit, fee, provider)| {
                Ok(Price {
                    channel: Channel::from_number(channel).ok_or_else(|| corrupt("prices", format!("channel {channel}")))?,
                    country,
                    effective_from: Timestamp::from_millis(effective_from),
                    unit: Unit::from_number(unit).ok_or_else(|| corrupt("prices", format!("unit {unit}")))?,
                    cost: Cost { fee: Micros(fee), provider: Micros(provider) },
                })
            })
            .collect()
    }

    async fn put_prices(&mut self, project: Option<ProjectId>, prices: &[Price], replace: bool) -> Result<()> {
        if replace {
            sqlx::query("DELETE FROM prices WHERE project_id = $1").bind(scope(project)).execute(self.conn()).await.or_end(self)?;
        }
        for price in prices {
            sqlx::query(
                r"
                    INSERT INTO prices (project_id, channel, country, effective_from, unit, fee, provider)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)
                    ON CONFLICT (project_id, channel, country, effective_from) DO UPDATE SET
                        unit = excluded.unit,
                        fee = excluded.fee,
                        provider = excluded.provider",
            )
            .bind(scope(project))
            .bind(price.channel.number())
            .bind(&price.country)
            .bind(price.effective_from.millis())
            .bind(price.unit.number())
            .bind(price.cost.fee.0)
            .bind(price.cost.provider.0)
            .execute(self.conn())
            .await
            .or_end(self)?;
        }
        sqlx::query("UPDATE worlds SET epoch = epoch + 1").execute(self.conn()).await.or_end(self)?;
        Ok(())
    }
}

fn scope(project: Option<ProjectId>) -> Uuid {
    project.map_or(Uuid::nil(), |p| p.uuid())
}
