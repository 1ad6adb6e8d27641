//! `POST /v1/templates/{id}/submit`, and polling of WhatsApp's decision.
//!
//! A template is stored as `pending` before the provider is called. Whatever happens then, it is due again later: it is submitted again if
//! the provider's id was not stored, and polled otherwise.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Adapter, TemplateApi};
use nuncio_domain::event::{EventType, ResourceKind};
use nuncio_domain::template::{Decision, Status, Template};
use nuncio_domain::{Channel, Error, ErrorCode, FieldError, Result, TemplateId, TenantId, Timestamp, id::Id as _, message::Failure};
use nuncio_store::{NewEvent, Occurrence, Store};
use serde_json::{Map, Value};

use super::{Templates, command::SubmitTemplate, view::TemplateView};
use crate::base::{Caller, Change, UseCase, named_sender, parse_id};

/// Delay before a submitted template is first polled, and interval after that.
const FIRST_LOOK: Duration = Duration::from_secs(60);
const NEXT_LOOK: Duration = Duration::from_secs(900);

/// How often a change is repeated after losing a race.
const TRIES: usize = 5;

impl Templates<'_> {
    /// Submits a template to the WhatsApp account of a sender.
    pub async fn submit(&self, caller: &Caller, id: &str, command: SubmitTemplate) -> Result<TemplateView> {
        caller.require(UseCase::SubmitTemplate)?;
        let id = parse_id(id, "template")?;
        let template = self.find(caller.tenant, id).await?;
        let config = self.current_config(caller.tenant).await?;
        let sender = named_sender(&config, "senderId", &command.sender_id)?;
        let connection = config.connection(sender.id, Channel::Whatsapp).ok_or_else(|| {
            let message = format!("sender {} ({}) has no WhatsApp account connected", sender.id, sender.name);
            Error::new(ErrorCode::SenderNotConfigured, message)
        })?;
        check_name(&template)?;
        let adapter = self.open_api(caller.tenant, connection.id).await?;
        let api = api(&adapter)?;
        let now = self.ids().clock.now();
        let pending = change(&*self.inner.store, caller.tenant, id, now, |template| {
            if !matches!(template.status, Status::Draft | Status::Rejected) {
                let message = format!("a template that is {} cannot be submitted", template.status);
                return Err(Error::wrong_state(message, template.status.as_str(), &["draft", "rejected"]));
            }
            template.status = Status::Pending;
            template.due_at = Some(now.plus(FIRST_LOOK));
            let content = &mut template.content;
            if content.revision > 1 && content.submitted_at.is_some() {
                content.submitted_as = Some(format!("{}_v{}", template.name, content.revision));
            }
            (content.sender, content.connection, content.business_account) =
                (Some(sender.id), Some(connection.id), connection.business_account());
            (content.provider_id, content.rejection_reason, content.submitted_at) = (None, None, Some(now));
            content.category = command.category.or(content.category);
            Ok(true)
        })
        .await?
        .ok_or_else(|| Error::internal("submitting a template changed nothing"))?;
        self.inner.dispatch.log_signals().changed(caller.tenant);
        if let Err(failure) = self.submit_to_provider(api, &pending).await? {
            tracing::warn!(template.id = %id, %failure, "failed to submit template; will retry");
        }
        Ok(TemplateView::from(&pending))
    }

    /// Processes a template that waits for the provider.
    pub async fn process_due(&self, template: &Template) -> Result<()> {
        let now = self.ids().clock.now();
        let again = change(&*self.inner.store, template.tenant, template.id, now, |fresh| {
            let ours = fresh.due_at == template.due_at;
            fresh.due_at = (fresh.status == Status::Pending).then(|| now.plus(NEXT_LOOK));
            Ok(ours)
        })
        .await?;
        // Unless another node was faster.
        let Some(again) = again.filter(|again| again.status == Status::Pending) else { return Ok(()) };
        let config = self.tenant_config(template.tenant).await?;
        let Some(connection) = again.content.connection.filter(|id| config.connections.iter().any(|c| c.id == *id)) else {
            let reason = "the WhatsApp account that it was submitted to was removed".to_owned();
            return Ok(self.decide(template.tenant, template.id, Some(again.version), &Decision::Rejected { reason }).await?);
        };
        let asked = match self.open_api(template.tenant, connection).await {
            Ok(adapter) if again.content.provider_id.is_some() => self.ask_about(api(&adapter)?, &again).await?,
            Ok(adapter) => self.submit_to_provider(api(&adapter)?, &again).await?,
            Err(error) => Err(error.to_string()),
        };
        if let Err(failure) = asked {
            tracing::warn!(template.id = %template.id, %failure, "failed to poll template status; will retry");
        }
        Ok(())
    }

    /// The outer error is ours, the inner one the provider's. A refusal is final for the template; anything else can be temporary.
    async fn submit_to_provider(&self, api: &dyn TemplateApi, template: &Template) -> Result<Result<(), String>> {
        let now = self.ids().clock.now();
        match api.submit(template).await {
            Ok(provider_id) => {
                change(&*self.inner.store, template.tenant, template.id, now, |template| {
                    template.content.provider_id = Some(provider_id.clone());
                    Ok(true)
                })
                .await?;
            }
            Err(failure) if is_final(&failure) => {
                let decision = Decision::Rejected { reason: failure.message };
                self.decide(template.tenant, template.id, Some(template.version), &decision).await?;
            }
            Err(failure) => return Ok(Err(failure.message)),
        }
        Ok(Ok(()))
    }

    async fn ask_about(&self, api: &dyn TemplateApi, template: &Template) -> Result<Result<(), String>> {
        match api.status(template).await {
            Ok(decision) => Ok(Ok(self.decide(template.tenant, template.id, Some(template.version), &decision).await?)),
            Err(failure) => Ok(Err(failure.message)),
        }
    }

    /// Opens the template API of a connection.
    async fn open_api(&self, tenant: TenantId, id: nuncio_domain::ConnectionId) -> Result<Arc<dyn Adapter>> {
        let config = self.tenant_config(tenant).await?;
        let connection = config.connections.iter().find(|c| c.id == id).ok_or_else(|| Error::not_found("connection"))?;
        let opened = self.inner.dispatch.open_adapter(tenant, connection);
        let adapter = opened.map_err(|why| Error::field("senderId", format!("has a WhatsApp account that cannot be used ({why})")))?;
        api(&adapter)?;
        Ok(adapter)
    }
}

fn api(adapter: &Arc<dyn Adapter>) -> Result<&dyn TemplateApi> {
    adapter.templates().ok_or_else(|| Error::field("senderId", "has a WhatsApp account whose provider has no templates"))
}

/// Checks WhatsApp's rule for names.
fn check_name(template: &Template) -> Result<()> {
    if template.name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_') {
        return Ok(());
    }
    let message = format!("{:?} cannot be submitted; must be lower-case letters, digits and underscores", template.name);
    Err(Error::invalid(vec![FieldError::new("name", message)]))
}

/// Returns whether a retry is useless.
fn is_final(failure: &Failure) -> bool {
    use nuncio_domain::message::FailureCode as Code;
    matches!(failure.code, Code::ContentRejected | Code::ProviderRejected)
}

impl Templates<'_> {
    /// Stores the provider's decision, unless the template was deleted or withdrawn.
    pub(crate) async fn decided(&self, tenant: TenantId, id: TemplateId, decision: &Decision) -> nuncio_store::Result<()> {
        self.decide(tenant, id, None, decision).await
    }

    /// Like [`Self::decided`], unless the template was changed since the version that the provider was asked about: an answer can be so late
    /// that it is about an earlier text.
    async fn decide(&self, tenant: TenantId, id: TemplateId, asked: Option<i64>, decision: &Decision) -> nuncio_store::Result<()> {
        let (store, now) = (&*self.inner.store, self.ids().clock.now());
        for _ in 0..TRIES {
            let mut tx = store.begin().await?;
            let Some(before) = tx.find_template(tenant, id).await? else { return Ok(()) };
            let mut template = before.clone();
            let (status, reason) = match decision {
                Decision::Pending => return Ok(()),
                Decision::Approved => (Status::Approved, None),
                Decision::Rejected { reason } => (Status::Rejected, Some(reason.clone())),
            };
            if before.status == Status::Draft || before.status == status || asked.is_some_and(|asked| asked != before.version) {
                return Ok(());
            }
            (template.status, template.due_at, template.updated_at) = (status, None, now);
            template.content.rejection_reason = reason;
            if status == Status::Approved {
                template.content.approved = None;
            }
            template.version += 1;
            if tx.update_template(&template, before.version).await? {
                tx.insert_event(tenant, &event(&template, before.status), now).await?;
                return tx.commit().await;
            }
        }
        Err(nuncio_store::StoreError::Busy("the template keeps changing".to_owned()))
    }
}

/// Changes the newest state of a template, with its event. `edit` returns whether there is anything to store; if not, returns `None`.
pub(super) async fn change(
    store: &dyn Store,
    tenant: TenantId,
    id: TemplateId,
    now: Timestamp,
    edit: impl Fn(&mut Template) -> Result<bool> + Send + Sync,
) -> Result<Option<Template>> {
    for _ in 0..TRIES {
        let mut tx = store.begin().await?;
        let before = tx.find_template(tenant, id).await?.ok_or_else(|| Error::not_found("template"))?;
        let mut template = before.clone();
        if !edit(&mut template)? {
            return Ok(None);
        }
        template.version += 1;
        // A poll that only sets the time of the next one leaves the template as it was.
        if (template.status, &template.content) != (before.status, &before.content) {
            template.updated_at = now;
        }
        if !tx.update_template(&template, before.version).await? {
            continue;
        }
        if template.status != before.status {
            tx.insert_event(tenant, &event(&template, before.status), now).await?;
        }
        let verb = if template.content.revision == before.content.revision { "submit" } else { "update" };
        Change::new("template", verb, id).from(&TemplateView::from(&before)).to(&TemplateView::from(&template)).commit(tx, tenant).await?;
        return Ok(Some(template));
    }
    Err(Error::unavailable("the template keeps changing; try again"))
}

fn event(template: &Template, previous: Status) -> NewEvent {
    let view = serde_json::to_value(TemplateView::from(template)).unwrap_or_default();
    let data = Map::from_iter([("template".to_owned(), view), ("previousStatus".to_owned(), Value::from(previous.as_str()))]);
    NewEvent {
        kind: ResourceKind::Template,
        resource: template.id.uuid(),
        sequence: template.version,
        occurrences: vec![Occurrence { kind: EventType::TemplateStatusChanged, sender: template.content.sender, data }],
    }
}
