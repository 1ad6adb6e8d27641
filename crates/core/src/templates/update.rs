//! `PATCH /v1/templates/{id}`.

use nuncio_domain::template::{Content, Status, Template};
use nuncio_domain::{Error, Result};

use super::command::{CreateTemplate, UpdateTemplate};
use super::{Templates, check, manage, submit, view::TemplateView};
use crate::base::{Caller, UseCase, check_version, parse_id};

impl Templates<'_> {
    /// Changes the content of a template. An approved one becomes a draft; messages use the approved content until WhatsApp approves the
    /// new version.
    pub async fn update(&self, caller: &Caller, id: &str, command: UpdateTemplate) -> Result<TemplateView> {
        caller.require(UseCase::UpdateTemplate)?;
        let id = parse_id(id, "template")?;
        let now = self.ids().clock.now();
        let changed = submit::change(&*self.inner.store, caller.tenant, id, now, |template| edit(template, &command)).await?;
        match changed {
            Some(template) => Ok(TemplateView::from(&template)),
            None => Ok(TemplateView::from(&self.find(caller.tenant, id).await?)),
        }
    }
}

/// Applies the change; returns whether there was one.
fn edit(template: &mut Template, change: &UpdateTemplate) -> Result<bool> {
    if template.status == Status::Pending {
        let message = "WhatsApp is reviewing the template; change it when its status is no longer pending";
        return Err(Error::wrong_state(message, template.status.as_str(), &["draft", "rejected", "approved"]));
    }
    check_version(change.expected_version, template.content.revision, "template")?;
    let before = template.content.clone();
    let whole = change.applied(template);
    Error::if_any(check::check(&whole))?;
    let used = check::used(&whole);
    let kept = same(&before.variables, &used).then(|| before.variables.clone());
    let variables = whole.variables.clone().or(kept).unwrap_or(used);
    let new = known(&before, manage::said(CreateTemplate { variables: Some(variables), ..whole }));
    if new == before {
        return Ok(false);
    }
    let approved = if template.status == Status::Approved { Some(Box::new(before)) } else { before.approved };
    template.content = Content { revision: new.revision + 1, approved, provider_id: None, rejection_reason: None, ..new };
    template.status = Status::Draft;
    Ok(true)
}

/// Returns the new content with the history of its revisions and submissions.
fn known(before: &Content, now: Content) -> Content {
    let Content { revision, submitted_at, sender, connection, .. } = *before;
    Content {
        revision,
        submitted_at,
        sender,
        connection,
        approved: before.approved.clone(),
        business_account: before.business_account.clone(),
        submitted_as: before.submitted_as.clone(),
        provider_id: before.provider_id.clone(),
        rejection_reason: before.rejection_reason.clone(),
        ..now
    }
}

fn same(ours: &[String], theirs: &[String]) -> bool {
    ours.len() == theirs.len() && ours.iter().all(|name| theirs.contains(name))
}
