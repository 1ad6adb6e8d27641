//! API keys.

mod manage;

pub use manage::NewKey;
