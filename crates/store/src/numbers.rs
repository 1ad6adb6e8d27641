//! Phone numbers: an environment's inventory, and the numbers it holds.

use async_trait::async_trait;
use nuncio_domain::number::{InventoryNumber, NumberStatus, PhoneNumber, Wanted};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{PhoneNumberId, SenderId, TenantId, Timestamp};

use crate::error::Result;

#[async_trait]
pub trait NumberRepo {
    /// Adds a number to an environment's inventory. An existing number gets the new capabilities and prices, and keeps its holder.
    async fn put_inventory_number(&mut self, tenant: TenantId, number: &InventoryNumber, now: Timestamp) -> Result<()>;

    /// Returns a number of the inventory, and its id if the environment holds it.
    async fn find_inventory_number(
        &mut self,
        tenant: TenantId,
        phone_number: &str,
    ) -> Result<Option<(InventoryNumber, Option<PhoneNumberId>)>>;

    /// Returns the whole inventory of an environment, sorted by number.
    async fn list_inventory(&mut self, tenant: TenantId) -> Result<Vec<(InventoryNumber, Option<PhoneNumberId>)>>;

    /// Returns up to `limit` numbers that can be acquired, sorted by number.
    async fn available_numbers(&mut self, tenant: TenantId, wanted: &Wanted, limit: u32) -> Result<Vec<InventoryNumber>>;

    /// Acquires a number of the inventory; `false` if it is already held or does not exist. Concurrent transactions for the same number
    /// wait for each other.
    async fn acquire_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<bool>;

    /// Returns a number that the environment holds.
    async fn find_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>>;

    /// Returns a held number, locked until the end of the transaction.
    async fn lock_number(&mut self, tenant: TenantId, id: PhoneNumberId) -> Result<Option<PhoneNumber>>;

    /// Returns held numbers in any of these statuses; empty means all.
    async fn list_numbers(&mut self, tenant: TenantId, statuses: &[NumberStatus], page: PageRequest) -> Result<Page<PhoneNumber>>;

    /// Updates name, sender, status and renewal of a held number.
    async fn update_number(&mut self, tenant: TenantId, number: &PhoneNumber) -> Result<()>;

    /// Returns a number to the inventory; `false` if it is not held.
    async fn release_number(&mut self, tenant: TenantId, id: PhoneNumberId, now: Timestamp) -> Result<bool>;

    /// Unassigns all numbers from a sender; returns how many.
    async fn unassign_numbers(&mut self, tenant: TenantId, sender: SenderId, now: Timestamp) -> Result<u64>;

    /// Returns numbers of all environments whose renewal is due, longest due first.
    async fn due_numbers(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, PhoneNumberId)>>;

    /// Replaces the phone number of a sender if it is still `from`, and increments the epoch; `false` otherwise.
    async fn swap_sender_phone(&mut self, tenant: TenantId, sender: SenderId, from: &str, to: &str, now: Timestamp) -> Result<bool>;
}
