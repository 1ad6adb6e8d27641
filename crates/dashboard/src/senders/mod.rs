//! Senders, with their connections and webhooks.

mod channel;
mod details;
mod edit;
mod profile;
mod show;

pub(crate) use channel::{connect, connection};
pub(crate) use edit::{act, create, new};
pub(crate) use profile::{change_profile, profile};
pub(crate) use show::{list, show};
