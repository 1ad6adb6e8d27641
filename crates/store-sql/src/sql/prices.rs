//! The price list.

use async_trait::async_trait;
use nuncio_domain::ProjectId;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::Cost;
use nuncio_domain::price::Price;
use nuncio_store::{PriceRepo, Result};
use uuid::Uuid;

use super::{Columns, Record, SqlTx};

impl Record for Price {
    const TABLE: &'static str = "prices";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            channel: row.get("channel")?,
            country: row.get("country")?,
            effective_from: row.get("effective_from")?,
            unit: row.get("unit")?,
            cost: Cost { fee: row.get("fee")?, provider: row.get("provider")? },
        })
    }
}

#[async_trait]
impl PriceRepo for SqlTx {
    async fn list_prices(&mut self, project: Option<ProjectId>) -> Result<Vec<Price>> {
        self.all(sql!(
            r"
                SELECT channel, country, effective_from, unit, fee, provider
                FROM prices
                WHERE project_id = $1
                ORDER BY channel, country, effective_from",
            [scope(project)]
        ))
        .await
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
                [scope(project), price.channel, &price.country, price.effective_from, price.unit, price.cost.fee, price.cost.provider]
            ))
            .await?;
        }
        self.write(sql!("UPDATE worlds SET epoch = epoch + 1")).await
    }
}

fn scope(project: Option<ProjectId>) -> Uuid {
    project.map_or(Uuid::nil(), |p| p.uuid())
}
