//! Provider events: inbound messages, receipts, opt-outs, complaints, and the same as the sandbox plays them.

mod callbacks;
mod keywords;
mod parts;
mod play;
mod receipts;
mod receive;

pub use callbacks::{CallbackTarget, Called, ProviderAnswer};
pub use play::PlayInbound;
use receive::Received;

crate::base::use_cases! {
    /// Applies provider events.
    inbound => ProviderEvents
}
