//! What core needs of dispatch.

use std::any::Any;
use std::fmt;
use std::time::Duration;

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::Adapter;
use nuncio_domain::config::Connection;
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::message::Message;
use nuncio_domain::{ConnectionId, MessageId, TenantId, Timestamp};
use serde::Serialize;
use utoipa::ToSchema;

/// The way to dispatch.
pub trait Outbound: fmt::Debug + Send + Sync {
    /// This node's incarnation, which owns the attempts that it starts.
    fn node(&self) -> NodeId;

    /// A permit for one attempt by `connection`, if one is free right now and nobody waits for it, with memory for `bytes` of a large
    /// request. Some permits are kept from what is `bulk`.
    fn reserve(&self, tenant: TenantId, connection: &Connection, bulk: bool, bytes: usize) -> Option<Permit>;

    /// How many more bulk messages may wait for `connection`: none while it rests.
    fn bulk_room(&self, tenant: TenantId, connection: &Connection) -> usize;

    /// Whether the provider behind `connection` tells what became of a message after it has taken it.
    fn has_receipts(&self, tenant: TenantId, connection: &Connection) -> bool;

    /// Hands over a message whose attempt is durably started.
    fn started(&self, permit: Permit, message: Box<Message>);

    /// Tells of a message that waits for its first attempt. May be forgotten: the scanner finds the message when it is due.
    fn waiting(&self, hint: Hint);

    /// Tells that a connection was removed: nothing more goes out by it.
    fn removed(&self, connection: ConnectionId);

    /// Tells that the event log of a world has grown, or that its deliveries changed. May be forgotten: the log is looked at anyway.
    fn told(&self, tenant: TenantId);

    /// Tells that webhooks were set up, changed or removed.
    fn webhooks_changed(&self);

    /// The adapter of a connection, the one that also sends; or what is wrong with its settings.
    fn adapter(&self, tenant: TenantId, connection: &Connection) -> Result<Arc<dyn Adapter>, String>;

    /// How a connection is doing, as far as this node has used it.
    fn health(&self, connection: &Connection) -> Health;

    /// Wall time by the database, or `None` while this node must not accept: its clock is off, or it could not show that it lives.
    fn accepting(&self) -> Option<Timestamp>;
}

/// How a connection is doing.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConnectionHealth)]
pub struct Health {
    /// Whether it works.
    pub state: HealthState,
    /// Since when it does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
    /// What is wrong, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Whether a connection works.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HealthState {
    /// It does, or was not used yet.
    #[default]
    Ok,
    /// It failed as a whole and is left alone for a while.
    Resting,
    /// It cannot be opened, or failed and is about to be tried again.
    Failing,
    /// The provider refuses the account. Messages wait, and the provider is asked now and then whether it takes the account by now.
    Stopped,
}

impl HealthState {
    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Resting => "resting",
            Self::Failing => "failing",
            Self::Stopped => "stopped",
        }
    }
}

/// The way to URLs that callers name. Nothing but public addresses can be reached, unless the operator allows more.
#[async_trait]
pub trait Web: fmt::Debug + Send + Sync {
    /// Fails for a URL that can never be reached, with what is wrong with it and which setting would allow it.
    fn check(&self, url: &str) -> Result<(), String>;

    /// Fetches at most `most` bytes within `patience`; the error is in words for the caller.
    async fn fetch(&self, url: &str, most: usize, patience: Duration) -> Result<Fetched, String>;
}

/// What stood behind a URL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// The body.
    pub bytes: Vec<u8>,
    /// `Content-Type` as the server said, if it did.
    pub content_type: Option<String>,
}

/// The right to have one attempt under way. Dropping it gives it back.
pub struct Permit(pub Box<dyn Any + Send>);

impl fmt::Debug for Permit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Permit")
    }
}

/// A message that waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The world.
    pub tenant: TenantId,
    /// The message.
    pub id: MessageId,
    /// Its fence.
    pub fence: i64,
    /// The connection of its next attempt.
    pub connection: ConnectionId,
    /// Whether others go first.
    pub bulk: bool,
    /// How many bytes its attempt has to load of a request that does not fit its row; 0 for one that fits.
    pub bytes: usize,
}
