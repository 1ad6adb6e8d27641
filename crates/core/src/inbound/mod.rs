//! Provider events: inbound messages, receipts, opt-outs, complaints.

mod callbacks;
mod keywords;
mod parts;
mod receipts;
mod receive;

pub use callbacks::{CallbackTarget, Called, ProviderAnswer};
pub(crate) use receive::Received;

crate::base::use_cases! {
    /// Applies provider events.
    inbound => ProviderEvents
}
