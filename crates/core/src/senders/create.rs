//! Creates senders, also as copies.

use nuncio_domain::config::{Connection, Project, Sender};
use nuncio_domain::id::Id as _;
use nuncio_domain::profile::{BusinessAccount, BusinessProfile, KeptAccount};
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Channel, Environment, Error, ErrorCode, Permission, Redacted, Result, SenderId, TenantId};
use nuncio_secrets::Row;
use nuncio_store::{Idempotency, IdempotentOperation, Repeat, Tx};
use serde_json::Map;

use super::command::{CreateSender, UpdateSender};
use super::{Senders, change::WebhookFate, view::SenderView};
use crate::base::{Caller, Change, SIM, UseCase, idempotency, rights};
use crate::numbers::refuse_other_holder;

impl Senders<'_> {
    /// `POST /v1/senders`.
    pub async fn create(&self, caller: &Caller, command: CreateSender, idempotency_key: Option<&str>) -> Result<SenderView> {
        caller.require(UseCase::CreateSender)?;
        if command.webhook_url.is_some() || command.webhook_events.is_some() {
            caller.require(Permission::WebhooksWrite)?;
        }
        let key = idempotency::key(None, idempotency_key)?;
        let full = CreateSender {
            phone_number: command.phone_number.clone().filter(|number| !number.is_empty()),
            set_as_default: Some(command.set_as_default.unwrap_or_default()),
            email_receiving_enabled: Some(command.email_receiving_enabled.unwrap_or_default()),
            webhook_events: command
                .webhook_events
                .clone()
                .or_else(|| command.webhook_url.as_ref().map(|_| Webhook::DEFAULT_EVENTS.to_vec())),
            ..command.clone()
        };
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateSender, key, &full).map(|guard| (caller, guard));
        self.prepare(caller.tenant, caller.environment, command.into(), BusinessProfile::default(), guard).await
    }

    /// Creates a sender; in the test environment, all its channels are simulated.
    pub async fn make(&self, tenant: TenantId, environment: Environment, command: CreateSender) -> Result<SenderView> {
        self.prepare(tenant, environment, command.into(), BusinessProfile::default(), None).await
    }

    /// Builds a sender from `change` with the profile `profile`.
    pub(super) async fn prepare(
        &self,
        tenant: TenantId,
        environment: Environment,
        change: UpdateSender,
        profile: BusinessProfile,
        guarded: Option<(&Caller, Idempotency)>,
    ) -> Result<SenderView> {
        let now = self.ids().clock.now();
        let mut sender = Sender::new(self.ids().at(now), String::new(), now);
        let mut errors = Vec::new();
        change.apply(&mut sender, &mut errors);
        let fate = change.webhook(self, None, &mut errors);
        Error::if_any(errors)?;
        let connections = if environment == Environment::Test { self.simulated(tenant, sender.id)? } else { Vec::new() };
        let known = BusinessAccount { profile, ..BusinessAccount::default() };
        let account = self.first_account(tenant, &connections, known).await;
        let mut tx = self.change_config(tenant).await?;
        let guard = guarded.as_ref().map(|(_, guard)| guard);
        let repeat = idempotency::claim(&mut *tx, tenant, guard, sender.id.uuid(), now).await?;
        if let (Some(Repeat { original, same_request }), Some((caller, _))) = (repeat, guarded) {
            drop(tx);
            return Err(self.conflict(caller, SenderId::from_uuid(original), same_request).await);
        }
        refuse_other_holder(&mut *tx, tenant, Some(sender.id), &sender.phone_number, now).await?;
        tx.insert_sender(tenant, &sender, now).await?;
        for connection in &connections {
            tx.put_connection(tenant, connection).await?;
        }
        if let Some((account, unsent)) = account {
            let kept = KeptAccount { sender: sender.id, version: 1, account, unsent, updated_at: now };
            tx.put_account(tenant, &kept).await?;
        }
        let mut secret = None;
        if let WebhookFate::Changes(change) = fate {
            let (webhook, new) = self.webhooks().changed(tenant, Some(sender.id), None, change)?;
            tx.put_webhook(tenant, &webhook).await?;
            secret = new;
        }
        let told = secret.is_some();
        let view = self.one_view(&mut *tx, tenant, sender, secret).await?;
        Change::new("sender", "create", view.id).to(&view).record(&mut *tx, tenant).await?;
        if told {
            self.webhooks().commit(tenant, tx).await?;
        } else {
            self.commit_change(tenant, tx).await?;
        }
        Ok(view)
    }

    /// Returns the 409 of a used key. A sender that was deleted since cannot be shown.
    async fn conflict(&self, caller: &Caller, original: SenderId, same_request: bool) -> Error {
        match self.view(caller.tenant, original).await {
            Ok(view) => idempotency::conflict(caller, rights::SENDER, &view, same_request),
            Err(error) if error.code() == ErrorCode::NotFound => {
                idempotency::repeat(caller, rights::SENDER, None::<&SenderView>, same_request)
            }
            Err(error) => error,
        }
    }

    /// Creates a sender in the environment `to` like one of the project's other environment: name, number, limits, profile, and webhook
    /// with a new secret. Provider accounts are not copied: those of the test environment are simulated, and those of the live environment
    /// belong there.
    pub async fn copy(&self, project: &Project, id: SenderId, to: Environment) -> Result<SenderView> {
        let from = project.tenant(to.other());
        let mut tx = self.inner.store.read().await?;
        let found = tx.find_senders(from, &[id]).await?.pop();
        let sender = found.ok_or_else(|| Error::not_found("sender to copy from the other environment"))?;
        let webhook = tx.find_webhook(from, Some(id)).await?;
        let kept = tx.accounts_of_senders(from, &[id]).await?.pop();
        drop(tx);
        let profile = kept.map(|kept| BusinessProfile { profile_picture_url: String::new(), ..kept.account.profile }).unwrap_or_default();
        let change = UpdateSender {
            name: Some(sender.name),
            phone_number: Some(Some(sender.phone_number)),
            set_as_default: None,
            webhook_url: webhook.as_ref().map(|w| Some(w.url.clone())),
            webhook_events: webhook.as_ref().map(|w| Some(w.events.clone())),
            webhook_active: webhook.as_ref().map(|w| w.active),
            email_receiving_enabled: Some(sender.email_receiving_enabled),
            allowed_countries: Some(Some(sender.allowed_countries).filter(|countries| !countries.is_empty())),
            daily_spend_limit: Some(sender.daily_spend_limit.and_then(|limit| limit.to_string().parse().ok())),
            expected_version: None,
            unreadable: Vec::new(),
        };
        self.prepare(project.tenant(to), to, change, profile, None).await
    }

    /// Stores a new sender; in the test environment, all its channels are simulated.
    pub(crate) async fn write(&self, tx: &mut dyn Tx, tenant: TenantId, environment: Environment, sender: &Sender) -> Result<()> {
        tx.insert_sender(tenant, sender, sender.updated_at).await?;
        if environment == Environment::Test {
            for connection in self.simulated(tenant, sender.id)? {
                tx.put_connection(tenant, &connection).await?;
            }
        }
        Ok(())
    }

    /// Makes a simulated connection for every channel.
    pub(crate) fn simulated(&self, tenant: TenantId, sender: SenderId) -> Result<Vec<Connection>> {
        let connection = |channel: &Channel| {
            let id = self.ids().next();
            let sealed = self.inner.sealer.seal(Row::Connection(tenant, id), &Map::new(), &*self.ids().entropy);
            Ok(Connection {
                id,
                sender,
                channel: *channel,
                kind: SIM.to_owned(),
                settings: Map::new(),
                sealed: Redacted::new(sealed.map_err(Error::internal)?),
                trusted: true,
                throttle: None,
                updated_at: self.ids().clock.now(),
            })
        };
        Channel::ALL.iter().map(connection).collect()
    }
}
