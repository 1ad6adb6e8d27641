//! Messages: the list, one message with its life, and a new one.

pub(crate) mod list;
pub(crate) mod new;
pub(crate) mod show;
mod timeline;
