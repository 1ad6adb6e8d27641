//! Webhooks: who is told, how it is signed, and what became of it.

mod deliveries;
mod sign;
mod targets;

pub use deliveries::{DeliveryView, ListDeliveries, delivery_id};
pub use sign::{Signature, sign};
pub use targets::{Target, Targets, changed};
