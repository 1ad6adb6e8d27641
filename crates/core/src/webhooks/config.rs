//! Configures webhooks and their signing secrets.

use nuncio_domain::event::EventType;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Error, ErrorCode, FieldError, Permission, Redacted, Result, SenderId, TenantId, Timestamp, limits};
use nuncio_secrets::Row;
use nuncio_store::{Store, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use super::{Webhooks, new_secret, previous_secrets, update_log_reader};
use crate::base::{Caller, Change, Core, UseCase, parse_id, patch};

/// The webhook of an environment, for events without a sender.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PutWebhook {
    /// URL to post events to: public, with https.
    #[schema(min_length = 1, max_length = 2048, example = "https://example.com/hooks")]
    pub url: String,
    /// Event types: `template.status_changed`, `invitation.status_changed`, `contact.merged`, `contact.opted_out`, by default all of them, and
    /// `webhook.test`, which is always posted. Events of other types always belong to a sender.
    #[schema(min_items = 1)]
    pub events: Option<Vec<EventType>>,
    /// Whether events are posted. Default true.
    pub active: Option<bool>,
}

/// Reason of deliveries that are abandoned because their webhook was deleted or switched off.
pub const INACTIVE: &str = "the webhook was removed or switched off";
/// Reason of deliveries that are abandoned because their webhook no longer selects their type.
pub const NOT_SELECTED: &str = "the webhook no longer gets events of this type";

/// What happens to the previous secret.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize, ToSchema)]
pub enum ExpireOld {
    /// It is invalid at once.
    #[serde(rename = "now")]
    Now,
    /// It also signs for another 24 hours.
    #[default]
    #[serde(rename = "24h")]
    InADay,
}

/// A webhook.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Webhook)]
pub struct WebhookView {
    /// URL that events are posted to.
    pub url: String,
    /// Event types.
    pub events: Vec<EventType>,
    /// Whether events are posted.
    pub active: bool,
    /// Version of the signature scheme.
    #[schema(example = "v1")]
    pub signature_version: &'static str,
    /// The signing secret, only if it is new; it is not shown again.
    #[serde(serialize_with = "patch::shown_once")]
    #[schema(value_type = Option<String>, example = "<SIGNING_SECRET>")]
    pub secret: Option<Redacted<String>>,
    /// Start of the current run of failures.
    pub failing_since: Option<Timestamp>,
    /// Why it was disabled automatically.
    pub disabled_reason: Option<String>,
}

impl WebhookView {
    /// Makes the view of a webhook, with its secret if that is new.
    pub(crate) fn new(webhook: &Webhook, secret: Option<Redacted<String>>) -> Self {
        Self {
            url: webhook.url.clone(),
            events: webhook.events.clone(),
            active: webhook.active,
            signature_version: "v1",
            secret,
            failing_since: webhook.failing_since,
            disabled_reason: webhook.disabled_reason.clone(),
        }
    }
}

/// Changes of a webhook; absent fields stay, or get the default for a new one.
#[derive(Clone, Debug, Default)]
pub(crate) struct WebhookChange {
    pub(crate) url: Option<String>,
    pub(crate) events: Option<Vec<EventType>>,
    pub(crate) active: Option<bool>,
}

impl Webhooks<'_> {
    /// Returns the active webhooks whose signing secret cannot be decrypted, by their senders.
    pub async fn without_secret(&self, tenant: TenantId) -> Result<Vec<Option<SenderId>>> {
        let webhooks = self.inner.store.read().await?.list_webhooks(tenant).await?;
        let broken = webhooks.into_iter().filter(|webhook| webhook.active && self.secrets(tenant, webhook).is_none());
        Ok(broken.map(|webhook| webhook.sender).collect())
    }

    /// `GET /v1/webhook`: returns the environment's webhook.
    pub async fn get(&self, caller: &Caller) -> Result<WebhookView> {
        caller.require(UseCase::GetWebhook)?;
        let found = self.inner.store.read().await?.find_webhook(caller.tenant, None).await?;
        found.map(|webhook| WebhookView::new(&webhook, None)).ok_or_else(|| Error::not_found("webhook"))
    }

    /// `PUT /v1/webhook`: sets the environment's webhook; returns whether it is new.
    pub async fn put(&self, caller: &Caller, put: PutWebhook) -> Result<(WebhookView, bool)> {
        caller.require(UseCase::PutWebhook)?;
        let mut errors = Vec::new();
        self.check_url("url", &put.url, &mut errors);
        check_events("events", put.events.as_deref(), &mut errors);
        check_without_sender("events", put.events.as_deref().unwrap_or_default(), &mut errors);
        Error::if_any(errors)?;
        let events = put.events.unwrap_or_else(|| Webhook::EVENTS_WITHOUT_SENDER.to_vec());
        let active = put.active.unwrap_or(true);
        let change = WebhookChange { url: Some(put.url), events: Some(events), active: Some(active) };
        if active {
            self.drop_old(caller.tenant, None).await?;
        }
        let mut tx = self.change_config(caller.tenant).await?;
        let before = tx.find_webhook(caller.tenant, None).await?;
        let is_new = before.is_none();
        let shown = before.as_ref().map(|webhook| WebhookView::new(webhook, None));
        let (webhook, secret) = self.changed(caller.tenant, None, before, change)?;
        tx.put_webhook(caller.tenant, &webhook).await?;
        let entry = Change::new("webhook", if is_new { "create" } else { "update" }, "webhook");
        entry.from(&shown).to(&WebhookView::new(&webhook, None)).record(&mut *tx, caller.tenant).await?;
        self.commit(caller.tenant, tx).await?;
        self.drop_unwanted(caller.tenant, &webhook).await?;
        Ok((WebhookView::new(&webhook, secret), is_new))
    }

    /// `DELETE /v1/webhook`.
    pub async fn delete(&self, caller: &Caller) -> Result<()> {
        caller.require(UseCase::DeleteWebhook)?;
        let mut tx = self.change_config(caller.tenant).await?;
        let gone = tx.find_webhook(caller.tenant, None).await?.ok_or_else(|| Error::not_found("webhook"))?;
        tx.delete_webhook(caller.tenant, None).await?;
        Change::new("webhook", "delete", "webhook").from(&WebhookView::new(&gone, None)).record(&mut *tx, caller.tenant).await?;
        self.commit(caller.tenant, tx).await?;
        Ok(drop_waiting(self.store(), caller.tenant, None, self.ids().clock.now()).await?)
    }

    /// `POST /v1/webhook/secret`: rotates the secret of the environment's webhook.
    pub async fn rotate_secret(&self, caller: &Caller, expire: ExpireOld) -> Result<Redacted<String>> {
        caller.require(UseCase::RotateWebhookSecret)?;
        self.rotate(caller.tenant, None, expire).await
    }

    /// `POST /v1/senders/{id}/webhook/secret`: rotates the secret of a sender's webhook.
    pub async fn rotate_sender_secret(&self, caller: &Caller, sender: &str, expire: ExpireOld) -> Result<Redacted<String>> {
        caller.require(Permission::SendersWrite)?;
        caller.require(UseCase::RotateSenderWebhookSecret)?;
        self.rotate(caller.tenant, Some(parse_id(sender, "sender")?), expire).await
    }

    /// Abandons what waits for a webhook that is about to become active, if none was: dropping it may have been interrupted.
    pub(crate) async fn drop_old(&self, tenant: TenantId, sender: Option<SenderId>) -> Result<()> {
        let before = self.inner.store.read().await?.find_webhook(tenant, sender).await?;
        if before.is_none_or(|webhook| !webhook.active) {
            drop_waiting(self.store(), tenant, sender, self.ids().clock.now()).await?;
        }
        Ok(())
    }

    /// Abandons what waits for a webhook that was changed and does not get it any more; what waited for that can go on.
    pub(crate) async fn drop_unwanted(&self, tenant: TenantId, webhook: &Webhook) -> Result<()> {
        let now = self.ids().clock.now();
        if !webhook.active {
            return Ok(drop_waiting(self.store(), tenant, webhook.sender, now).await?);
        }
        let kept = [webhook.events.as_slice(), &[EventType::WebhookTest]].concat();
        drop_others(self.store(), tenant, webhook.sender, (&kept, NOT_SELECTED), now).await?;
        self.inner.dispatch.log_signals().changed(tenant);
        Ok(())
    }

    /// Commits changes of an environment's webhooks.
    pub(crate) async fn commit(&self, tenant: TenantId, mut tx: Box<dyn Tx>) -> Result<()> {
        update_log_reader(&mut *tx, tenant, self.ids().clock.now()).await?;
        self.commit_change(tenant, tx).await?;
        self.inner.dispatch.log_signals().webhooks_changed();
        Ok(())
    }

    async fn rotate(&self, tenant: TenantId, sender: Option<SenderId>, expire: ExpireOld) -> Result<Redacted<String>> {
        let now = self.ids().clock.now();
        let mut tx = self.change_config(tenant).await?;
        if let Some(sender) = sender {
            tx.find_senders(tenant, &[sender]).await?.pop().ok_or_else(|| Error::not_found("sender"))?;
        }
        let none = || Error::new(ErrorCode::InvalidRequest, "there is no webhook; set its URL first");
        let mut webhook = tx.find_webhook(tenant, sender).await?.ok_or_else(none)?;
        let previous = if expire == ExpireOld::InADay { self.still_valid(tenant, &webhook, now) } else { Vec::new() };
        let secrets = Secrets { current: self.new_secret(), previous };
        webhook.sealed = secrets.seal(self, tenant, sender)?;
        webhook.updated_at = now;
        tx.put_webhook(tenant, &webhook).await?;
        let of = sender.map_or_else(|| "webhook".to_owned(), |sender| sender.to_string());
        let after = json!({"oldSecret": if expire == ExpireOld::Now { "expired" } else { "signs for 24 hours" }});
        Change::new("webhook", "rotate_secret", of).to(&after).record(&mut *tx, tenant).await?;
        self.commit(tenant, tx).await?;
        Ok(Redacted::new(secrets.current))
    }

    /// Returns `before` with the change applied, or a new webhook with its secret. The change is validated, and has a URL if `before` is
    /// `None`.
    pub(crate) fn changed(
        &self,
        tenant: TenantId,
        sender: Option<SenderId>,
        before: Option<Webhook>,
        change: WebhookChange,
    ) -> Result<(Webhook, Option<Redacted<String>>)> {
        let now = self.ids().clock.now();
        let (mut webhook, secret) = match before {
            Some(webhook) => (webhook, None),
            None => {
                let secrets = Secrets { current: self.new_secret(), previous: Vec::new() };
                (self.build(sender, secrets.seal(self, tenant, sender)?, now), Some(Redacted::new(secrets.current)))
            }
        };
        if let Some(url) = change.url.filter(|url| *url != webhook.url) {
            webhook.url = url;
            webhook.failing_since = None; // the failures were those of the previous URL
        }
        if let Some(events) = change.events {
            webhook.events = unique(events);
        }
        if let Some(active) = change.active {
            webhook.active = active;
        }
        if change.active == Some(true) {
            (webhook.failing_since, webhook.disabled_reason) = (None, None);
        }
        webhook.updated_at = now;
        Ok((webhook, secret))
    }

    fn build(&self, sender: Option<SenderId>, sealed: Redacted<Vec<u8>>, now: Timestamp) -> Webhook {
        Webhook {
            sender,
            url: String::new(),
            events: Webhook::DEFAULT_EVENTS.to_vec(),
            active: true,
            sealed,
            failing_since: None,
            disabled_reason: None,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the secrets that still sign after the current one is replaced. A receiver may have any of them.
    fn still_valid(&self, tenant: TenantId, webhook: &Webhook, now: Timestamp) -> Vec<(String, Timestamp)> {
        let secrets = self.secrets(tenant, webhook).unwrap_or_default();
        let current = secrets.get("current").and_then(Value::as_str).map(|secret| (secret.to_owned(), now.plus(limits::SECRET_OVERLAP)));
        current.into_iter().chain(previous_secrets(&secrets, now)).take(SECRETS).collect()
    }

    /// Decrypts the secrets of a webhook; `None` if that fails, which a rotation fixes.
    fn secrets(&self, tenant: TenantId, webhook: &Webhook) -> Option<Map<String, Value>> {
        let opened = self.inner.sealer.open(Row::Webhook(tenant, webhook.sender), webhook.sealed.expose());
        opened.inspect_err(|error| tracing::error!(%error, "failed to decrypt webhook secrets")).ok()
    }

    fn new_secret(&self) -> String {
        new_secret(&*self.ids().entropy).expose().clone()
    }
}

/// Abandons what has waited since `now` or longer for a webhook that was deleted or disabled, in small steps: a replacement must not get
/// old events.
pub async fn drop_waiting(store: &dyn Store, tenant: TenantId, sender: Option<SenderId>, now: Timestamp) -> nuncio_store::Result<()> {
    drop_others(store, tenant, sender, (&[], INACTIVE), now).await
}

/// Abandons what waits and is of none of the types `kept`.
async fn drop_others(
    store: &dyn Store,
    tenant: TenantId,
    sender: Option<SenderId>,
    (kept, reason): (&[EventType], &str),
    now: Timestamp,
) -> nuncio_store::Result<()> {
    const STEP: u32 = 1_000;
    loop {
        let mut tx = store.begin().await?;
        let dropped = tx.drop_deliveries(tenant, sender, kept, reason, now, STEP).await?;
        tx.commit().await?;
        if dropped < u64::from(STEP) {
            return Ok(());
        }
    }
}

/// Rejects an empty list of events, which would make the webhook useless.
pub(crate) fn check_events(path: &str, events: Option<&[EventType]>, errors: &mut Vec<FieldError>) {
    if events.is_some_and(<[_]>::is_empty) {
        errors.push(FieldError::new(path, "has 0 items; must have at least 1. To stop all posts, disable the webhook"));
    }
}

/// Rejects types whose events always belong to a sender: the environment's webhook never gets them.
fn check_without_sender(path: &str, events: &[EventType], errors: &mut Vec<FieldError>) {
    let possible = [Webhook::EVENTS_WITHOUT_SENDER, &[EventType::WebhookTest]].concat();
    for (index, event_type) in events.iter().enumerate().filter(|(_, event_type)| !possible.contains(event_type)) {
        let names = possible.iter().map(|event_type| event_type.as_str()).collect::<Vec<_>>().join(", ");
        let message = format!("is {event_type}, which belongs to a sender; set it in the sender's webhookEvents. Must be one of {names}");
        errors.push(FieldError::new(format!("{path}[{index}]"), message));
    }
}

fn unique(events: Vec<EventType>) -> Vec<EventType> {
    let mut kept: Vec<EventType> = Vec::with_capacity(events.len());
    for event in events {
        if !kept.contains(&event) {
            kept.push(event);
        }
    }
    kept
}

/// Most secrets that sign besides the current one.
const SECRETS: usize = 4;

/// The signing secrets of one webhook.
struct Secrets {
    current: String,
    /// Newest first, each with its end.
    previous: Vec<(String, Timestamp)>,
}

impl Secrets {
    fn seal(&self, core: &Core, tenant: TenantId, sender: Option<SenderId>) -> Result<Redacted<Vec<u8>>> {
        let mut map = Map::new();
        map.insert("current".to_owned(), self.current.as_str().into());
        if !self.previous.is_empty() {
            map.insert("previous".to_owned(), json!(self.previous));
        }
        let sealed = core.inner.sealer.seal(Row::Webhook(tenant, sender), &map, &*core.ids().entropy).map_err(Error::internal)?;
        Ok(Redacted::new(sealed))
    }
}
