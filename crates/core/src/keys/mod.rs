//! API keys.

mod manage;

pub use manage::NewKey;

crate::base::use_cases! {
    /// API keys.
    keys => Keys
}
