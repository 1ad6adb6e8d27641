//! `GET`, `POST` and `DELETE /v1/templates`.

use nuncio_domain::template::{Content, Status, Template};
use nuncio_domain::{Error, ErrorCode, Result, TemplateId, TenantId, id::Id as _};
use nuncio_store::{IdempotentOperation, Repeat};

use super::command::{CreateTemplate, ListTemplates};
use super::{Templates, check, view::TemplateView};
use crate::base::{Caller, Change, UseCase, idempotency, list, list::Listed, parse_id, rights};

impl Templates<'_> {
    /// Creates a template. Returns all errors at once.
    pub async fn create(&self, caller: &Caller, mut command: CreateTemplate, key: Option<String>) -> Result<TemplateView> {
        caller.require(UseCase::CreateTemplate)?;
        let key = idempotency::key(None, key.as_deref())?;
        Error::if_any(check::check(&command))?;
        command.whatsapp_category = Some(command.whatsapp_category.unwrap_or_default());
        command.variables = Some(command.variables.take().unwrap_or_else(|| check::used(&command)));
        command.buttons = Some(command.buttons.unwrap_or_default());
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateTemplate, key, &command);
        let now = self.ids().clock.now();
        let template = Template {
            tenant: caller.tenant,
            id: self.ids().at(now),
            status: Status::Draft,
            version: 0,
            due_at: None,
            updated_at: now,
            name: command.name.clone(),
            language: command.language.clone(),
            content: said(command),
        };
        let mut tx = self.inner.store.begin().await?;
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), template.id.uuid(), now).await?;
        if let Some(Repeat { original, same_request }) = repeat {
            drop(tx);
            let id = TemplateId::from_uuid(original);
            let original = self.inner.store.read().await?.find_template(caller.tenant, id).await?;
            return Err(idempotency::repeat(caller, rights::TEMPLATE, original.as_ref().map(TemplateView::from).as_ref(), same_request));
        }
        if !tx.insert_template(&template).await? {
            let message = format!("there is a template named {:?} in language {}; delete it first", template.name, template.language);
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let view = TemplateView::from(&template);
        Change::new("template", "create", template.id).to(&view).commit(tx, caller.tenant).await?;
        Ok(view)
    }

    pub async fn get(&self, caller: &Caller, id: &str) -> Result<TemplateView> {
        caller.require(UseCase::GetTemplate)?;
        Ok(TemplateView::from(&self.find(caller.tenant, parse_id(id, "template")?).await?))
    }

    /// Returns a page of templates.
    pub async fn list(&self, caller: &Caller, asked: &ListTemplates) -> Result<Listed<TemplateView>> {
        caller.require(UseCase::ListTemplates)?;
        let (range, errors) = list::asked!(asked);
        let listing = self.listing(caller.tenant, "templates", &range, errors)?;
        let page = self.inner.store.read().await?.list_templates(caller.tenant, listing.page).await?;
        Ok((page.items.iter().map(TemplateView::from).collect(), self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// Deletes a template. It stays at WhatsApp.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DeleteTemplate)?;
        let id = parse_id(id, "template")?;
        let mut tx = self.inner.store.begin().await?;
        let template = tx.find_template(caller.tenant, id).await?.ok_or_else(|| Error::not_found("template"))?;
        tx.delete_template(caller.tenant, id).await?;
        Ok(Change::new("template", "delete", id).from(&TemplateView::from(&template)).commit(tx, caller.tenant).await?)
    }

    pub(crate) async fn find(&self, tenant: TenantId, id: TemplateId) -> Result<Template> {
        let found = self.inner.store.read().await?.find_template(tenant, id).await?;
        found.ok_or_else(|| Error::not_found("template"))
    }
}

/// Returns the content of a complete request.
pub(super) fn said(command: CreateTemplate) -> Content {
    Content {
        variables: command.variables.unwrap_or_default(),
        body: command.body,
        sms_body: command.sms_body,
        telegram_body: command.telegram_body,
        instagram_body: command.instagram_body,
        category: command.whatsapp_category,
        header_type: command.header_type,
        header_content: command.header_content,
        footer: command.footer,
        buttons: command.buttons.unwrap_or_default(),
        ..Content::default()
    }
}
