//! Which webhook hears of which event.

use nuncio_domain::config::World;
use nuncio_domain::event::EventType;
use nuncio_domain::{Redacted, SenderId, TenantId, Timestamp};
use nuncio_secrets::{Row, Sealer};
use nuncio_store::{Result, Tx};
use serde_json::{Map, Value};

use crate::webhooks::events::Event;

/// A webhook that is active, with its secrets opened.
#[derive(Clone, Debug)]
pub struct Target {
    /// The sender that it belongs to; the world when absent.
    pub sender: Option<SenderId>,
    /// Where to post to.
    pub url: String,
    /// Which events.
    pub events: Vec<EventType>,
    /// What signs now.
    pub secrets: Vec<Redacted<String>>,
    /// Since when nothing but failure was seen.
    pub failing_since: Option<Timestamp>,
    /// When it was set up.
    pub updated_at: Timestamp,
}

/// The active webhooks of a world.
#[derive(Clone, Debug)]
pub struct Targets {
    all: Vec<Target>,
    default_sender: Option<SenderId>,
}

impl Target {
    fn wants(&self, event_type: EventType) -> bool {
        event_type == EventType::WebhookTest || self.events.contains(&event_type)
    }
}

impl Targets {
    /// Reads them. A webhook whose secrets cannot be opened is left out, and said so in the log.
    pub async fn read(tx: &mut dyn Tx, sealer: &Sealer, world: &World, now: Timestamp) -> Result<Self> {
        let mut all = Vec::new();
        for webhook in tx.list_webhooks(world.tenant).await?.into_iter().filter(|w| w.active) {
            let secrets = match sealer.open(Row::Webhook(world.tenant, webhook.sender), webhook.sealed.expose()) {
                Ok(secrets) => signing(&secrets, webhook.previous_until.is_some_and(|until| until > now)),
                Err(error) => {
                    tracing::error!(%error, tenant = world.tenant.0, "the secrets of a webhook cannot be opened; it gets nothing");
                    continue;
                }
            };
            let (sender, url, events) = (webhook.sender, webhook.url, webhook.events);
            all.push(Target { sender, url, events, secrets, failing_since: webhook.failing_since, updated_at: webhook.updated_at });
        }
        Ok(Self { all, default_sender: world.default_sender().map(|s| s.id) })
    }

    /// The webhook that hears of `event`. What has no sender goes to the world's own, or else to the default sender's.
    pub fn of(&self, event: &Event) -> Option<&Target> {
        let target = match event.sender {
            Some(sender) => self.find(Some(sender)),
            None => self.find(None).or_else(|| self.find(Some(self.default_sender?))),
        };
        target.filter(|t| t.wants(event.event_type))
    }

    /// Whether any webhook hears of events of this type.
    pub fn want(&self, event_type: EventType) -> bool {
        self.all.iter().any(|target| target.wants(event_type))
    }

    /// The webhook of a sender, or of the world.
    pub fn find(&self, sender: Option<SenderId>) -> Option<&Target> {
        self.all.iter().find(|t| t.sender == sender)
    }
}

fn signing(secrets: &Map<String, Value>, previous_too: bool) -> Vec<Redacted<String>> {
    let names: &[&str] = if previous_too { &["current", "previous"] } else { &["current"] };
    names.iter().filter_map(|name| secrets.get(*name)?.as_str()).map(|s| Redacted::new(s.to_owned())).collect()
}

/// To be called in each transaction that changes webhooks: while one is active, the world's log is read.
pub async fn changed(tx: &mut dyn Tx, tenant: TenantId) -> Result<()> {
    if tx.list_webhooks(tenant).await?.iter().any(|w| w.active) {
        let end = tx.log_end(tenant).await?;
        return tx.open_log(tenant, end).await;
    }
    tx.close_log(tenant).await
}
