//! What only test environments can do.

mod inbound;

pub use inbound::PlayInbound;
