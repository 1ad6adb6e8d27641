//! What only test environments can do.

mod inbound;

pub use inbound::PlayInbound;

crate::base::use_cases! {
    /// What a test plays from outside.
    sandbox => Sandbox
}
