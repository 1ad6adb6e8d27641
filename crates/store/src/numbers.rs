//! Phone numbers: the inventory of a world, and what the world holds of it.

use async_trait::async_trait;
use nuncio_domain::number::{InventoryNumber, NumberStatus, PhoneNumber, Wanted};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{PhoneNumberId, SenderId, TenantId, Timestamp};

use crate::error::Result;

/// Phone numbers.
#[async_trait]
pub trait NumberRepo {
    /// Enters a number into the inventory of a world. One that is there gets these capabilities and prices, and keeps its holder.
    async fn put_inventory_number(&mut self, tenant: TenantId, number: &InventoryNumber, now: Timestamp) -> Result<()>;

    /// A number of the inventory, and under which identifier the world holds it.
    async fn find_inventory_number(
        &mut self,
        tenant: TenantId,
        phone_number: &str,
    ) -> Result<Option<(InventoryNumber, Option<PhoneNumberId>)>>;

    /// The whole inventory of a world, by number.
    async fn list_inventory(&mut self, tenant: TenantId) -> Result<Vec<(InventoryNumber, Option<PhoneNumberId>)>>;

    /// Numbers that can be acquired, by number, at most `limit`.
    async fn available_numbers(&mut self, tenant: TenantId, wanted: &Wanted, limit: u32) -> Result<Vec<InventoryNumber>>;

    /// Gives a number of the inventory to its world; `false` when it is held already, or is not there. Of two transactions that want
    /// the same number the second waits for the first.
    async fn acquire_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<bool>;

    /// A number that the world holds.
    async fn find_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>>;

    /// The same, and nobody else changes or locks it before the transaction ends.
    async fn lock_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>>;

    /// Numbers that the world holds, in any of these statuses; empty for all.
    async fn list_numbers(&mut self, tenant: TenantId, statuses: &[NumberStatus], page: PageRequest) -> Result<Page<PhoneNumber>>;

    /// Writes name, sender, status and renewal of a number that is held.
    async fn update_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<()>;

    /// Gives a number back to the inventory; `false` when it is not held.
    async fn release_number(&mut self, tenant: TenantId, id: PhoneNumberId, now: Timestamp) -> Result<bool>;

    /// Takes all numbers from a sender; how many those were.
    async fn unassign_numbers(&mut self, tenant: TenantId, sender: SenderId, now: Timestamp) -> Result<u64>;

    /// Numbers of all worlds whose renewal is due, the longest due first.
    async fn due_numbers(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, PhoneNumberId)>>;

    /// Replaces the phone number of a sender, if it still is `from`; `false` when it is not, or there is no such sender. Raises the
    /// epoch.
    async fn swap_sender_phone(&mut self, tenant: TenantId, sender: SenderId, from: &str, to: &str, now: Timestamp) -> Result<bool>;
}
