//! API keys.

mod api;
mod manage;
mod uses;

pub use api::{CreateApiKey, KeyView, ListKeys};
pub use manage::NewKey;

crate::base::use_cases! {
    /// API keys.
    keys => Keys
}
