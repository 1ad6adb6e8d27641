//! What a world has set up: its project, senders and provider connections.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::Channel;
use crate::id::{ConnectionId, KeyId, ProjectId, SenderId, TeamId};
use crate::key::KeyHash;
use crate::money::Micros;
use crate::permission::Permissions;
use crate::redacted::Redacted;
use crate::tenant::{Environment, TenantId};
use crate::time::Timestamp;

/// A project, with the keys of its two worlds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Project {
    /// Its identifier.
    pub id: ProjectId,
    /// Its name.
    pub name: String,
    /// The team that owns it.
    pub team: TeamId,
    /// The team's name.
    pub team_name: String,
    /// The live world.
    pub live: TenantId,
    /// The test world.
    pub test: TenantId,
}

impl Project {
    /// The world of `environment`.
    pub const fn tenant(&self, environment: Environment) -> TenantId {
        match environment {
            Environment::Live => self.live,
            Environment::Test => self.test,
        }
    }
}

/// An API key as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// The world that it opens.
    pub tenant: TenantId,
    /// Its identifier.
    pub id: KeyId,
    /// The name that a person gave it.
    pub name: String,
    /// SHA-256 of the key.
    pub hash: KeyHash,
    /// What it may do.
    pub permissions: Permissions,
    /// When it was revoked; such a key is invalid for good.
    pub revoked_at: Option<Timestamp>,
}

/// A sender profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sender {
    /// Its identifier.
    pub id: SenderId,
    /// Its name.
    pub name: String,
    /// E.164, or `""` if it has none.
    pub phone_number: String,
    /// Whether messages without a sender are sent by it. One per world.
    pub is_default: bool,
    /// Whether email that comes in for it is taken.
    pub email_receiving_enabled: bool,
    /// The countries that it may send to (ISO 3166-1 alpha-2); empty for all.
    pub allowed_countries: Vec<String>,
    /// The most that it may spend in a day (UTC); no limit when absent.
    pub daily_spend_limit: Option<Micros>,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Sender {
    /// A sender with nothing but a name.
    pub fn new(id: SenderId, name: impl Into<String>, now: Timestamp) -> Self {
        Self {
            id,
            name: name.into(),
            phone_number: String::new(),
            is_default: false,
            email_receiving_enabled: false,
            allowed_countries: Vec::new(),
            daily_spend_limit: None,
            updated_at: now,
        }
    }
}

/// How fast a connection may be used: a bucket of `burst` messages that fills at a rate.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttle {
    /// Messages a second in the long run; may be less than one.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 10_000))]
    pub messages_per_second: f64,
    /// Messages at once, after a pause.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100_000))]
    pub burst: u32,
}

/// A provider account that carries one channel of a sender.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    /// Its identifier.
    pub id: ConnectionId,
    /// The sender that it belongs to.
    pub sender: SenderId,
    /// The channel that it carries. One connection per sender and channel.
    pub channel: Channel,
    /// The adapter that drives it, such as `smtp`.
    pub kind: String,
    /// Settings that may be shown.
    pub settings: Map<String, Value>,
    /// Settings that may not, encrypted as they lie in the database.
    pub sealed: Redacted<Vec<u8>>,
    /// Whether the operator set it up, at the command line. One that a caller of the API set up must not lead into the operator's own network.
    pub trusted: bool,
    /// How fast it may be used; as fast as its adapter can when absent.
    pub throttle: Option<Throttle>,
    /// When it last changed; an adapter that was opened before is reopened.
    pub updated_at: Timestamp,
}

/// Everything about one world that planning a message needs, as of one configuration epoch.
#[derive(Clone, PartialEq, Debug)]
pub struct World {
    /// The world.
    pub tenant: TenantId,
    /// Which of the project's two.
    pub environment: Environment,
    /// Grows with every change of what stands here; an accept planned with an older one is planned again.
    pub epoch: i64,
    /// The project.
    pub project: Project,
    /// All senders.
    pub senders: Vec<Sender>,
    /// All connections.
    pub connections: Vec<Arc<Connection>>,
}

impl World {
    /// The sender with this id.
    pub fn sender(&self, id: SenderId) -> Option<&Sender> {
        self.senders.iter().find(|s| s.id == id)
    }

    /// The sender of messages that name none.
    pub fn default_sender(&self) -> Option<&Sender> {
        self.senders.iter().find(|s| s.is_default)
    }

    /// The connection of a sender for a channel.
    pub fn connection(&self, sender: SenderId, channel: Channel) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|c| c.sender == sender && c.channel == channel)
    }
}
