//! Senders: who messages come from, what carries them, and where their events go.

mod channel;
mod edit;
mod show;

pub(crate) use channel::{connect, connection};
pub(crate) use edit::{act, create, new};
pub(crate) use show::{list, show};
