//! Configuration of an environment: project, senders and provider connections.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::{Channel, named};
use crate::id::{ConnectionId, ProjectId, SenderId, TeamId, TenantId};
use crate::{colour::Colour, money::Micros, redacted::Redacted, time::Timestamp};

named! {
    /// The two environments of a project.
    Environment {
        /// Real messages, real costs.
        Live "live",
        /// Simulated sending; providers are never called.
        Test "test",
    }
}

impl Environment {
    /// Returns the other environment.
    pub const fn other(self) -> Self {
        match self {
            Self::Live => Self::Test,
            Self::Test => Self::Live,
        }
    }
}

/// A project with the tenants of its two environments.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Project {
    pub id: ProjectId,
    pub name: String,
    /// Colour of the pages of its invitations; `None` for the standard ones.
    pub colour: Option<Colour>,
    pub team: TeamId,
    pub team_name: String,
    pub live: TenantId,
    pub test: TenantId,
}

impl Project {
    pub const fn tenant(&self, environment: Environment) -> TenantId {
        match environment {
            Environment::Live => self.live,
            Environment::Test => self.test,
        }
    }
}

/// A sender profile.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sender {
    pub id: SenderId,
    pub name: String,
    /// E.164, or `""` if it has none.
    pub phone_number: String,
    /// Whether messages that name no sender use this one. One per environment.
    pub is_default: bool,
    /// Whether inbound email is accepted.
    pub email_receiving_enabled: bool,
    /// Countries it can send to (ISO 3166-1 alpha-2); empty means all.
    pub allowed_countries: Vec<String>,
    /// Spending limit per day (UTC); `None` means no limit.
    pub daily_spend_limit: Option<Micros>,
    pub updated_at: Timestamp,
}

impl Sender {
    /// Makes a sender with default settings.
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

/// Rate limit of a connection: a token bucket of `burst` messages.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Throttle {
    /// Sustained messages per second; can be below one.
    #[cfg_attr(feature = "openapi", schema(minimum = 0.001, maximum = 10_000))]
    pub messages_per_second: f64,
    /// Messages it can send at once after a pause.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 100_000))]
    pub burst: u32,
}

/// A provider account that carries one channel of a sender.
#[derive(Clone, PartialEq, Debug)]
pub struct Connection {
    pub id: ConnectionId,
    pub sender: SenderId,
    /// One connection per sender and channel.
    pub channel: Channel,
    /// The adapter that drives it, such as `smtp`.
    pub kind: String,
    /// Public settings.
    pub settings: Map<String, Value>,
    /// Secret settings, encrypted.
    pub sealed: Redacted<Vec<u8>>,
    /// Whether the operator set it up on the command line. A connection set up through the API must not reach the operator's own network.
    pub trusted: bool,
    /// Rate limit; `None` leaves the rate to the adapter.
    pub throttle: Option<Throttle>,
    /// When it last changed; an adapter that was opened before is reopened.
    pub updated_at: Timestamp,
}

impl Connection {
    /// Returns the id of its WhatsApp business account, if it is set: approvals of templates belong to it.
    pub fn business_account(&self) -> Option<String> {
        self.settings.get("waba_id").and_then(Value::as_str).map(str::to_owned)
    }
}

/// Everything about one environment that planning a message needs, as of one configuration epoch.
#[derive(Clone, PartialEq, Debug)]
pub struct TenantConfig {
    /// The environment.
    pub tenant: TenantId,
    /// Which of the project's two.
    pub environment: Environment,
    /// Incremented by each change of what stands here; an accept planned with an older one is planned again.
    pub epoch: i64,
    pub project: Project,
    /// All senders.
    pub senders: Vec<Sender>,
    /// All connections.
    pub connections: Vec<Arc<Connection>>,
}

impl TenantConfig {
    pub fn sender(&self, id: SenderId) -> Option<&Sender> {
        self.senders.iter().find(|s| s.id == id)
    }

    /// The sender of messages that name none.
    pub fn default_sender(&self) -> Option<&Sender> {
        self.senders.iter().find(|s| s.is_default)
    }

    pub fn connection(&self, sender: SenderId, channel: Channel) -> Option<&Arc<Connection>> {
        self.connections.iter().find(|c| c.sender == sender && c.channel == channel)
    }
}
