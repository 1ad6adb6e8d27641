//! Phone numbers.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::number::{Capabilities, InventoryNumber, NumberPricing, NumberStatus, PhoneNumber, Wanted};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Micros, PhoneNumberId, SenderId, TenantId, Timestamp};
use nuncio_store::{NumberRepo, ProjectRepo as _, Result};
use uuid::Uuid;

use super::SqlTx;
use super::query::{List, any_of, of_tenant};
use crate::row::{corrupt, from_row};

const TABLE: &str = "phone_numbers";

macro_rules! columns {
    () => {
        "phone_number, country, capabilities, monthly_price, upfront_cost, monthly_cost, is_free, id, status, \
         name, sender_id, renews_at, updated_at"
    };
}

from_row! {
    struct NumberRow {
        phone_number: String,
        country: String,
        capabilities: i16,
        monthly_price: i64,
        upfront_cost: i64,
        monthly_cost: i64,
        is_free: i16,
        id: Option<Uuid>,
        status: i16,
        name: Option<String>,
        sender_id: Option<Uuid>,
        renews_at: Option<i64>,
        updated_at: i64,
    }
}

impl NumberRow {
    fn pricing(&self) -> NumberPricing {
        NumberPricing {
            monthly_price: Micros(self.monthly_price),
            upfront_cost: Micros(self.upfront_cost),
            monthly_cost: Micros(self.monthly_cost),
            is_free: self.is_free != 0,
        }
    }

    fn inventory(self) -> (InventoryNumber, Option<PhoneNumberId>) {
        let pricing = self.pricing();
        let number = InventoryNumber {
            phone_number: self.phone_number,
            country: self.country,
            capabilities: Capabilities::from_bits(self.capabilities),
            pricing,
        };
        (number, self.id.map(PhoneNumberId::from_uuid))
    }

    fn held(self) -> Result<PhoneNumber> {
        let (Some(id), Some(renews_at)) = (self.id, self.renews_at) else {
            return Err(corrupt(TABLE, "a number that is held and is not"));
        };
        Ok(PhoneNumber {
            id: PhoneNumberId::from_uuid(id),
            capabilities: Capabilities::from_bits(self.capabilities),
            pricing: self.pricing(),
            status: NumberStatus::from_number(self.status).ok_or_else(|| corrupt(TABLE, format!("status {}", self.status)))?,
            sender: self.sender_id.map(SenderId::from_uuid),
            renews_at: Timestamp::from_millis(renews_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            phone_number: self.phone_number,
            name: self.name,
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
                tenant.0,
                &number.phone_number,
                &number.country,
                number.capabilities.bits(),
                number.pricing.monthly_price.0,
                number.pricing.upfront_cost.0,
                number.pricing.monthly_cost.0,
                i16::from(number.pricing.is_free),
                now.millis()
            ]
        ))
        .await
    }

    async fn find_inventory_number(
        &mut self,
        tenant: TenantId,
        phone_number: &str,
    ) -> Result<Option<(InventoryNumber, Option<PhoneNumberId>)>> {
        let row: Option<NumberRow> = self.optional(sql!(select!(" AND phone_number = $2"), [tenant.0, phone_number])).await?;
        Ok(row.map(NumberRow::inventory))
    }

    async fn list_inventory(&mut self, tenant: TenantId) -> Result<Vec<(InventoryNumber, Option<PhoneNumberId>)>> {
        let rows: Vec<NumberRow> = self.all(sql!(select!(" ORDER BY phone_number"), [tenant.0])).await?;
        Ok(rows.into_iter().map(NumberRow::inventory).collect())
    }

    async fn available_numbers(&mut self, tenant: TenantId, wanted: &Wanted, limit: u32) -> Result<Vec<InventoryNumber>> {
        // `contains` holds digits only, so that nothing in it means something to LIKE.
        let rows: Vec<NumberRow> = self
            .all(sql!(
                select!(
                    r"
                AND id IS NULL AND country = $2 AND phone_number LIKE $3 AND (capabilities & $4) = $4
                ORDER BY phone_number
                LIMIT $5"
                ),
                [tenant.0, &wanted.country, format!("%{}%", wanted.contains), wanted.capabilities.bits(), i64::from(limit)]
            ))
            .await?;
        Ok(rows.into_iter().map(|row| row.inventory().0).collect())
    }

    async fn acquire_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE phone_numbers
                SET id = $3, status = $4, name = $5, sender_id = $6, renews_at = $7, updated_at = $8
                WHERE tenant_id = $1 AND phone_number = $2 AND id IS NULL",
            [
                tenant.0,
                &number.phone_number,
                number.id.uuid(),
                number.status.number(),
                &number.name,
                number.sender.map(|s| s.uuid()),
                number.renews_at.millis(),
                number.updated_at.millis()
            ]
        ))
        .await
    }

    async fn find_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>> {
        let row: Option<NumberRow> = self.optional(sql!(select!(" AND id = $2"), [tenant.0, id.uuid()])).await?;
        row.map(NumberRow::held).transpose()
    }

    async fn lock_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>> {
        // An update that changes nothing locks the row on both databases. What is read after it is what the last holder of the lock wrote.
        self.run(sql!("UPDATE phone_numbers SET updated_at = updated_at WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await?;
        self.find_number(tenant, id).await
    }

    async fn list_numbers(&mut self, tenant: TenantId, statuses: &[NumberStatus], page: PageRequest) -> Result<Page<PhoneNumber>> {
        let held = of_tenant(tenant.0, |query| {
            query.push(" AND id IS NOT NULL");
        });
        let filter = any_of("status", statuses.iter().map(|s| s.number()));
        let list = List { joined: None, columns: columns!(), table: "phone_numbers", id: "id", streams: vec![held], filter };
        let page = self.page(list, page, |row: &NumberRow| row.id.unwrap_or_default()).await?;
        Ok(Page { items: page.items.into_iter().map(NumberRow::held).collect::<Result<_>>()?, next: page.next })
    }

    async fn update_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<()> {
        self.write(sql!(
            r"
                UPDATE phone_numbers
                SET status = $3, name = $4, sender_id = $5, renews_at = $6, updated_at = $7
                WHERE tenant_id = $1 AND id = $2",
            [
                tenant.0,
                number.id.uuid(),
                number.status.number(),
                &number.name,
                number.sender.map(|s| s.uuid()),
                number.renews_at.millis(),
                number.updated_at.millis()
            ]
        ))
        .await
    }

    async fn release_number(&mut self, tenant: TenantId, id: PhoneNumberId, now: Timestamp) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE phone_numbers
                SET id = NULL, status = 0, name = NULL, sender_id = NULL, renews_at = NULL, updated_at = $3
                WHERE tenant_id = $1 AND id = $2",
            [tenant.0, id.uuid(), now.millis()]
        ))
        .await
    }

    async fn unassign_numbers(&mut self, tenant: TenantId, sender: SenderId, now: Timestamp) -> Result<u64> {
        let changed = self
            .run(sql!(
                r"
                UPDATE phone_numbers
                SET sender_id = NULL, updated_at = $3
                WHERE tenant_id = $1 AND sender_id = $2",
                [tenant.0, sender.uuid(), now.millis()]
            ))
            .await?;
        Ok(changed)
    }

    async fn due_numbers(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, PhoneNumberId)>> {
        let rows: Vec<(i64, Uuid)> = self
            .all(sql!(
                r"
                SELECT tenant_id, id
                FROM phone_numbers
                WHERE renews_at IS NOT NULL AND id IS NOT NULL AND renews_at <= $1
                ORDER BY renews_at
                LIMIT $2",
                [now.millis(), i64::from(limit)]
            ))
            .await?;
        Ok(rows.into_iter().map(|(tenant, id)| (TenantId(tenant), PhoneNumberId::from_uuid(id))).collect())
    }

    async fn swap_sender_phone(&mut self, tenant: TenantId, sender: SenderId, from: &str, to: &str, now: Timestamp) -> Result<bool> {
        let changed = self
            .run(sql!(
                r"
                UPDATE senders
                SET phone_number = $4, updated_at = $5
                WHERE tenant_id = $1 AND id = $2 AND phone_number = $3",
                [tenant.0, sender.uuid(), from, to, now.millis()]
            ))
            .await?;
        if changed == 0 {
            return Ok(false);
        }
        self.raise_epoch(tenant).await?;
        Ok(true)
    }
}
