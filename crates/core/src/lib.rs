//! Use cases of the API, the dashboard and the command line.
//!
//! A [`Core`] holds the store with its caches, and dispatch. Each use case is a method on it, in the folder of its resource; callers only
//! parse and render.

pub mod audit;
mod base;
pub mod billing;
pub mod broadcasts;
pub mod contacts;
mod inbound;
pub mod invitations;
mod keys;
pub mod messages;
pub mod numbers;
pub mod projects;
pub mod review;
pub mod senders;
pub mod templates;
pub mod users;
pub mod webhooks;

pub use base::{
    Act, Caller, CodeRelay, Core, CoreDeps, Cursors, IdentifierHasher, Listed, ReadPermit, UseCase, is_changed_meanwhile, mail_tokens, rate,
};
pub use contacts::{suppressions, unsubscribe};
pub use inbound::{CallbackTarget, Called, PlayInbound, ProviderAnswer};
pub use keys::{CreateApiKey, KeyView, ListKeys, NewKey};
pub use nuncio_secrets::{Row, Sealer, SealerError};
pub use projects::introspect;
pub use senders::{EnterCode, InboundAddressView, PutConnection, SentCodeView};
pub use webhooks::events;
