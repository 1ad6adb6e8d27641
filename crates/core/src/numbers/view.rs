//! Public representation of phone numbers.

use nuncio_domain::number::{Capability, InventoryNumber, NumberPricing, NumberStatus, PhoneNumber};
use nuncio_domain::{Micros, PhoneNumberId, SenderId, Timestamp, id::Id as _};
use serde::Serialize;
use utoipa::ToSchema;

/// Price of a number, in US dollars.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PhoneNumberPricing)]
pub struct PricingView {
    /// Monthly price for the holder.
    pub monthly_price: Micros,
    /// One-time price for the holder, charged with the first month.
    pub upfront_cost: Micros,
    /// The operator's monthly cost at the carrier.
    pub monthly_cost: Micros,
    /// Whether the holder pays nothing.
    pub is_free_number: bool,
}

impl From<NumberPricing> for PricingView {
    fn from(pricing: NumberPricing) -> Self {
        let NumberPricing { monthly_price, upfront_cost, monthly_cost, is_free } = pricing;
        Self { monthly_price, upfront_cost, monthly_cost, is_free_number: is_free }
    }
}

/// A phone number.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PhoneNumber)]
pub struct PhoneNumberView {
    /// Its identifier.
    pub id: PhoneNumberId,
    /// E.164.
    pub phone_number: String,
    /// Capabilities.
    pub capabilities: Vec<Capability>,
    /// Price.
    pub pricing: PricingView,
    /// Its status.
    pub status: NumberStatus,
    /// Your name for it.
    pub name: Option<String>,
    /// The sender that it is assigned to.
    pub sender_id: Option<SenderId>,
    /// When the next month is due; for a suspended number, when payment is retried.
    pub next_renewal_date: Option<Timestamp>,
    /// When it was acquired.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A number that can be acquired.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AvailablePhoneNumber)]
pub struct AvailableNumberView {
    /// E.164.
    pub phone_number: String,
    /// Capabilities.
    pub capabilities: Vec<Capability>,
    /// Price.
    pub pricing: PricingView,
}

impl From<PhoneNumber> for PhoneNumberView {
    fn from(number: PhoneNumber) -> Self {
        Self {
            id: number.id,
            phone_number: number.phone_number,
            capabilities: number.capabilities.iter().collect(),
            pricing: number.pricing.into(),
            status: number.status,
            name: number.name,
            sender_id: number.sender,
            next_renewal_date: Some(number.renews_at),
            created_at: number.id.created_at(),
            updated_at: number.updated_at,
        }
    }
}

impl From<InventoryNumber> for AvailableNumberView {
    fn from(number: InventoryNumber) -> Self {
        Self { phone_number: number.phone_number, capabilities: number.capabilities.iter().collect(), pricing: number.pricing.into() }
    }
}
