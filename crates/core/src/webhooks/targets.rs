//! Selects the webhook of each event, and signs it.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use nuncio_domain::{Entropy, EventId, Redacted, SenderId, TenantId, Timestamp, config::TenantConfig, event::EventType};
use nuncio_secrets::{Row, Sealer, mac};
use nuncio_store::{Result, Tx};
use serde::Deserialize as _;
use serde_json::{Map, Value};

use crate::webhooks::events::Event;

/// Prefix of signing secrets.
const PREFIX: &str = "whsec_";

/// The three headers of a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// `webhook-id`: the event's id, the same for each try.
    pub id: String,
    /// `webhook-timestamp`: time of the try in Unix seconds.
    pub timestamp: String,
    /// `webhook-signature`: one signature per secret, separated by spaces.
    pub signature: String,
}

/// An active webhook with decrypted secrets.
#[derive(Clone, Debug)]
pub struct Target {
    /// `None` for the environment's webhook.
    pub sender: Option<SenderId>,
    pub url: String,
    pub events: Vec<EventType>,
    /// Current signing secrets; empty if they cannot be decrypted, and then every post fails.
    pub secrets: Vec<Redacted<String>>,
    /// Start of the current run of failures.
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
    /// When it was set up.
    pub updated_at: Timestamp,
}

/// The active webhooks of an environment.
#[derive(Clone, Debug)]
pub struct Targets {
    all: Vec<Target>,
    /// The default sender, if the environment has no webhook of its own, active or not.
    stand_in: Option<SenderId>,
}

impl Target {
    /// Returns whether it gets events of this type.
    pub fn wants(&self, event_type: EventType) -> bool {
        event_type == EventType::WebhookTest || self.events.contains(&event_type)
    }
}

impl Targets {
    /// Loads them.
    pub async fn read(tx: &mut dyn Tx, sealer: &Sealer, config: &TenantConfig, now: Timestamp) -> Result<Self> {
        let mut all = Vec::new();
        let webhooks = tx.list_webhooks(config.tenant).await?;
        let has_own = webhooks.iter().any(|webhook| webhook.sender.is_none());
        for webhook in webhooks.into_iter().filter(|w| w.active) {
            let opened = sealer.open(Row::Webhook(config.tenant, webhook.sender), webhook.sealed.expose());
            let opened = opened.inspect_err(|error| tracing::error!(%error, tenant = config.tenant.0, "failed to decrypt webhook secrets"));
            let secrets = opened.map(|secrets| signing(&secrets, now)).unwrap_or_default();
            let (sender, url, events, failing_since) = (webhook.sender, webhook.url, webhook.events, webhook.failing_since);
            all.push(Target {
                sender,
                url,
                events,
                secrets,
                failing_since,
                created_at: webhook.created_at,
                updated_at: webhook.updated_at,
            });
        }
        let stand_in = config.default_sender().map(|sender| sender.id).filter(|_| !has_own);
        Ok(Self { all, stand_in })
    }

    /// Returns the webhook for `event`. Events without a sender go to the environment's webhook, or to the default sender's if there is
    /// none. One that is off gets nothing, and neither does another in its place.
    pub fn of(&self, event: &Event) -> Option<&Target> {
        let target = match event.view.sender_id {
            Some(sender) => self.find(Some(sender)),
            None => self.find(None).or_else(|| self.find(Some(self.stand_in?))),
        };
        target.filter(|t| t.wants(event.view.event_type))
    }

    /// Returns whether any webhook wants events of this type.
    pub fn want(&self, event_type: EventType) -> bool {
        self.all.iter().any(|target| target.wants(event_type))
    }

    /// Returns the webhook of a sender, or of the environment.
    pub fn find(&self, sender: Option<SenderId>) -> Option<&Target> {
        self.all.iter().find(|t| t.sender == sender)
    }
}

/// Returns the previous secrets of a webhook that still sign, newest first, each with its end.
pub(crate) fn previous_secrets(secrets: &Map<String, Value>, now: Timestamp) -> Vec<(String, Timestamp)> {
    let previous = secrets.get("previous").and_then(|previous| Vec::<(String, Timestamp)>::deserialize(previous).ok());
    previous.unwrap_or_default().into_iter().filter(|(_, until)| *until > now).collect()
}

fn signing(secrets: &Map<String, Value>, now: Timestamp) -> Vec<Redacted<String>> {
    let current = secrets.get("current").and_then(Value::as_str).map(str::to_owned);
    current.into_iter().chain(previous_secrets(secrets, now).into_iter().map(|(secret, _)| secret)).map(Redacted::new).collect()
}

/// Starts reading the environment's log if a webhook is active, otherwise stops. Must be called in each transaction that changes webhooks.
pub async fn update_log_reader(tx: &mut dyn Tx, tenant: TenantId, now: Timestamp) -> Result<()> {
    if tx.list_webhooks(tenant).await?.iter().any(|w| w.active) {
        let end = tx.log_end(tenant).await?;
        return tx.open_log(tenant, end, now).await;
    }
    tx.close_log(tenant).await
}

/// Generates a signing secret in its public form.
pub fn new_secret(entropy: &dyn Entropy) -> Redacted<String> {
    let mut key = [0; 32];
    entropy.fill(&mut key);
    Redacted::new(format!("{PREFIX}{}", STANDARD.encode(key)))
}

/// Signs a body with every valid secret, by the Standard Webhooks specification (standardwebhooks.com, version 1), so that ready-made
/// verifiers work.
pub fn sign(secrets: &[Redacted<String>], event: EventId, at: Timestamp, body: &[u8]) -> Signature {
    let (id, timestamp) = (event.to_string(), (at.millis() / 1_000).to_string());
    let signatures: Vec<String> = secrets.iter().map(|secret| one(secret.expose(), &id, &timestamp, body)).collect();
    Signature { id, timestamp, signature: signatures.join(" ") }
}

fn one(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = STANDARD.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).unwrap_or_default();
    format!("v1,{}", STANDARD.encode(mac(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body])))
}
