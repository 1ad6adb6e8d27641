//! Use cases only available in test environments.

mod inbound;

pub use inbound::PlayInbound;

crate::base::use_cases! {
    /// Simulates inbound events.
    sandbox => Sandbox
}
