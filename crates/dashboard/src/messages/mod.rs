//! Messages: list, details and sending.

pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod show;
mod timeline;
