//! Creates senders.

use nuncio_domain::config::Sender;
use nuncio_domain::id::Id as _;
use nuncio_domain::profile::{BusinessAccount, BusinessProfile, KeptAccount};
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Environment, Error, ErrorCode, Permission, Result, SenderId, TenantId, limits};
use nuncio_store::{Idempotency, IdempotentOperation};

use super::Senders;
use super::change::WebhookFate;
use super::command::{CreateSender, UpdateSender};
use super::view::SenderView;
use crate::base::{Caller, Change, UseCase, idempotency, rights};
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
        if !errors.is_empty() {
            return Err(Error::invalid(errors));
        }
        let connections = if environment == Environment::Test { self.simulated(tenant, sender.id)? } else { Vec::new() };
        let known = BusinessAccount { profile, ..BusinessAccount::default() };
        let account = self.first_account(tenant, &connections, known).await;
        let mut tx = self.change_config(tenant).await?;
        let guard = guarded.as_ref().map(|(_, guard)| guard);
        let repeat = idempotency::claim(&mut *tx, tenant, guard, sender.id.uuid(), now.plus(limits::IDEMPOTENCY_RETENTION)).await?;
        if let (Some(idempotency::Repeat { original, same_request }), Some((caller, _))) = (repeat, guarded) {
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
}
