//! Version 1: a file per resource; a folder if it has many operations. A handler's name is the operation's id.

mod audit;
mod balance;
mod broadcasts;
mod contacts;
pub(crate) mod events;
mod introspect;
mod invitations;
mod keys;
mod me;
pub(crate) mod messages;
mod numbers;
mod sandbox;
mod senders;
mod suppressions;
mod templates;
mod webhook;
mod webhooks;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .merge(messages::routes())
        .merge(contacts::routes())
        .merge(suppressions::routes())
        .merge(introspect::routes())
        .merge(keys::routes())
        .merge(senders::routes())
        .merge(events::routes())
        .merge(webhook::routes())
        .merge(webhooks::routes())
        .merge(numbers::routes())
        .merge(invitations::routes())
        .merge(templates::routes())
        .merge(broadcasts::routes())
        .merge(sandbox::routes())
        .merge(audit::routes())
        .routes(routes!(me::get_me))
        .routes(routes!(balance::get_balance))
}
