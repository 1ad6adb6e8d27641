//! Webhooks: their events, signatures and deliveries.

mod config;
mod deliveries;
pub mod events;
mod resource_id;
mod targets;

pub use config::{ExpireOld, INACTIVE, NOT_SELECTED, PutWebhook, WebhookView, drop_waiting};
pub(crate) use config::{WebhookChange, check_events};
pub use deliveries::{DeliveryAttemptView, DeliveryView, ListDeliveries, new_delivery};
pub(crate) use targets::previous_secrets;
pub use targets::{Signature, Target, Targets, new_secret, sign, update_log_reader};

crate::base::use_cases! {
    /// Webhooks and their deliveries.
    webhooks => Webhooks
}

crate::base::use_cases! {
    /// The event log.
    events => Events
}
