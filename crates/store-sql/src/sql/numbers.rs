//! Phone numbers.

use async_trait::async_trait;
use nuncio_domain::number::{Capabilities, InventoryNumber, NumberPricing, NumberStatus, PhoneNumber, Wanted};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{PhoneNumberId, SenderId, TenantId, Timestamp};
use nuncio_store::{NumberRepo, ProjectRepo as _, Result};

use super::query::{List, any_of, of_tenant};
use super::{Columns, Record, SqlTx};

macro_rules! columns {
    () => {
        "phone_number, country, capabilities, monthly_price, upfront_cost, monthly_cost, is_free, id, status, \
         name, sender_id, renews_at, updated_at"
    };
}

fn pricing(row: &Columns<'_>) -> Result<NumberPricing> {
    Ok(NumberPricing {
        monthly_price: row.get("monthly_price")?,
        upfront_cost: row.get("upfront_cost")?,
        monthly_cost: row.get("monthly_cost")?,
        is_free: row.get("is_free")?,
    })
}

/// A number of the inventory, and as what it is held.
struct Inventory(InventoryNumber, Option<PhoneNumberId>);

impl Record for Inventory {
    const TABLE: &'static str = "phone_numbers";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let number = InventoryNumber {
            phone_number: row.get("phone_number")?,
            country: row.get("country")?,
            capabilities: Capabilities::from_bits(row.get("capabilities")?),
            pricing: pricing(row)?,
        };
        Ok(Self(number, row.get("id")?))
    }
}

impl Record for PhoneNumber {
    const TABLE: &'static str = "phone_numbers";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            capabilities: Capabilities::from_bits(row.get("capabilities")?),
            pricing: pricing(row)?,
            status: row.get("status")?,
            sender: row.get("sender_id")?,
            renews_at: row.get("renews_at")?,
            updated_at: row.get("updated_at")?,
            phone_number: row.get("phone_number")?,
            name: row.get("name")?,
        })
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM phone_numbers WHERE tenant_id = $1", $rest)
    };
}

#[async_trait]
impl NumberRepo for SqlTx {
    async fn put_inventory_number(&mut self, tenant: TenantId, number: &InventoryNumber, now: Timestamp) -> Result<()> {
        let (capabilities, pricing) = (number.capabilities.bits(), number.pricing);
        self.write(sql!(
            r"
                INSERT INTO phone_numbers (tenant_id, phone_number, country, capabilities, monthly_price,
                    upfront_cost, monthly_cost, is_free, status, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9)
                ON CONFLICT (tenant_id, phone_number) DO UPDATE SET
                    country = excluded.country,
                    capabilities = excluded.capabilities,
                    monthly_price = excluded.monthly_price,
                    upfront_cost = excluded.upfront_cost,
                    monthly_cost = excluded.monthly_cost,
                    is_free = excluded.is_free,
                    updated_at = excluded.updated_at",
            [
                tenant, &number.phone_number, &number.country, capabilities, pricing.monthly_price, pricing.upfront_cost,
                pricing.monthly_cost, pricing.is_free, now
            ]
        ))
        .await
    }

    async fn find_inventory_number(
        &mut self,
        tenant: TenantId,
        phone_number: &str,
    ) -> Result<Option<(InventoryNumber, Option<PhoneNumberId>)>> {
        let found = self.optional(sql!(select!(" AND phone_number = $2"), [tenant, phone_number])).await?;
        Ok(found.map(|Inventory(number, id)| (number, id)))
    }

    async fn list_inventory(&mut self, tenant: TenantId) -> Result<Vec<(InventoryNumber, Option<PhoneNumberId>)>> {
        let found = self.all(sql!(select!(" ORDER BY phone_number"), [tenant])).await?;
        Ok(found.into_iter().map(|Inventory(number, id)| (number, id)).collect())
    }

    async fn available_numbers(&mut self, tenant: TenantId, wanted: &Wanted, limit: u32) -> Result<Vec<InventoryNumber>> {
        // `contains` holds digits only, so that nothing in it means something to LIKE.
        let found = self
            .all(sql!(
                select!(
                    r"
                AND id IS NULL AND country = $2 AND phone_number LIKE $3 AND (capabilities & $4) = $4
                ORDER BY phone_number
                LIMIT $5"
                ),
                [tenant, &wanted.country, format!("%{}%", wanted.contains), wanted.capabilities.bits(), limit]
            ))
            .await?;
        Ok(found.into_iter().map(|Inventory(number, _)| number).collect())
    }

    async fn acquire_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE phone_numbers
                SET id = $3, status = $4, name = $5, sender_id = $6, renews_at = $7, updated_at = $8
                WHERE tenant_id = $1 AND phone_number = $2 AND id IS NULL",
            [tenant, &number.phone_number, number.id, number.status, &number.name, number.sender, number.renews_at, number.updated_at]
        ))
        .await
    }

    async fn find_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>> {
        self.optional(sql!(select!(" AND id = $2"), [tenant, id])).await
    }

    async fn lock_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>> {
        // An update that changes nothing locks the row on both databases. What is read after it is what the last holder of the lock wrote.
        self.run(sql!("UPDATE phone_numbers SET updated_at = updated_at WHERE tenant_id = $1 AND id = $2", [tenant, id])).await?;
        self.find_number(tenant, id).await
    }

    async fn list_numbers(&mut self, tenant: TenantId, statuses: &[NumberStatus], page: PageRequest) -> Result<Page<PhoneNumber>> {
        let held = of_tenant(tenant.0, |query| {
            query.push(" AND id IS NOT NULL");
        });
        let filter = any_of("status", statuses.iter().map(|s| s.number()));
        let list = List { joined: None, columns: columns!(), table: "phone_numbers", id: "id", streams: vec![held], filter };
        self.page(list, page).await
    }

    async fn update_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<()> {
        self.write(sql!(
            r"
                UPDATE phone_numbers
                SET status = $3, name = $4, sender_id = $5, renews_at = $6, updated_at = $7
                WHERE tenant_id = $1 AND id = $2",
            [tenant, number.id, number.status, &number.name, number.sender, number.renews_at, number.updated_at]
        ))
        .await
    }

    async fn release_number(&mut self, tenant: TenantId, id: PhoneNumberId, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE phone_numbers
                SET id = NULL, status = 0, name = NULL, sender_id = NULL, renews_at = NULL, updated_at = $3
                WHERE tenant_id = $1 AND id = $2",
            [tenant, id, now]
        ))
        .await
    }

    async fn unassign_numbers(&mut self, tenant: TenantId, sender: SenderId, now: Timestamp) -> Result<u64> {
        self.run(sql!(
            "UPDATE phone_numbers SET sender_id = NULL, updated_at = $3 WHERE tenant_id = $1 AND sender_id = $2",
            [tenant, sender, now]
        ))
        .await
    }

    async fn due_numbers(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, PhoneNumberId)>> {
        self.all(sql!(
            r"
                SELECT tenant_id, id
                FROM phone_numbers
                WHERE renews_at IS NOT NULL AND id IS NOT NULL AND renews_at <= $1
                ORDER BY renews_at
                LIMIT $2",
            [now, limit]
        ))
        .await
    }

    async fn swap_sender_phone(&mut self, tenant: TenantId, sender: SenderId, from: &str, to: &str, now: Timestamp) -> Result<bool> {
        let changed = self
            .changes(sql!(
                r"
                UPDATE senders
                SET phone_number = $4, updated_at = $5
                WHERE tenant_id = $1 AND id = $2 AND phone_number = $3",
                [tenant, sender, from, to, now]
            ))
            .await?;
        if changed {
            self.raise_epoch(tenant).await?;
        }
        Ok(changed)
    }
}
