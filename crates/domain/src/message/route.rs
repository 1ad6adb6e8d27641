//! How a message reaches its recipient.

use serde::{Deserialize, Serialize};

use crate::channel::Channel;
use crate::id::ConnectionId;

/// A channel and the connection that carries it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Route {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// Kind of provider.
    #[serde(rename = "k")]
    pub provider: String,
}
