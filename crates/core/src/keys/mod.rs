//! API keys.

mod api;
mod manage;

pub use api::{CreateApiKey, KeyView, ListKeys};
pub use manage::NewKey;

crate::base::use_cases! {
    /// API keys.
    keys => Keys
}
