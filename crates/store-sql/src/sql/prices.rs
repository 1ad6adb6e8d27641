//! The price list.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::Cost;
use nuncio_domain::price::{Price, Unit};
use nuncio_domain::{Channel, Micros, ProjectId, Timestamp};
use nuncio_store::{PriceRepo, Result};
use uuid::Uuid;

use super::SqlTx;
use crate::row::corrupt;

#[async_trait]
impl PriceRepo for SqlTx {
    async fn list_prices(&mut self, project: Option<ProjectId>) -> Result<Vec<Price>> {
        let rows: Vec<(i16, String, i64, i16, i64, i64)> = self
            .all(sql!(
                r"
                SELECT channel, country, effective_from, unit, fee, provider
                FROM prices
                WHERE project_id = $1
                ORDER BY channel, country, effective_from",
                [scope(project)]
            ))
            .await?;
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
            self.run(sql!("DELETE FROM prices WHERE project_id = $1", [scope(project)])).await?;
        }
        for price in prices {
            self.run(sql!(
                r"
                    INSERT INTO prices (project_id, channel, country, effective_from, unit, fee, provider)
                    VALUES ($1, $2, $3, $4, $5, $6, $7)
                    ON CONFLICT (project_id, channel, country, effective_from) DO UPDATE SET
                        unit = excluded.unit,
                        fee = excluded.fee,
                        provider = excluded.provider",
                [
                    scope(project),
                    price.channel.number(),
                    &price.country,
                    price.effective_from.millis(),
                    price.unit.number(),
                    price.cost.fee.0,
                    price.cost.provider.0
                ]
            ))
            .await?;
        }
        self.write(sql!("UPDATE worlds SET epoch = epoch + 1")).await
    }
}

fn scope(project: Option<ProjectId>) -> Uuid {
    project.map_or(Uuid::nil(), |p| p.uuid())
}
