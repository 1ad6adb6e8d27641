//! Senders, with their connections and webhooks.

mod channel;
mod edit;
mod show;

pub(crate) use channel::{connect, connection};
pub(crate) use edit::{act, create, new};
pub(crate) use show::{list, show};
