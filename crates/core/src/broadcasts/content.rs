//! Content of a broadcast: as a message, and as what a review covers.

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, BroadcastType, ReviewedTemplate};
use nuncio_domain::{Error, ErrorCode, Result, TemplateId, template::Template};
use nuncio_store::Tx;

use crate::{base::idempotency, messages::SendMessage};

/// Returns a message of the broadcast, without a recipient.
pub(super) fn message(broadcast: &Broadcast) -> SendMessage {
    SendMessage {
        channel: Some(broadcast.channel.requested()),
        message_type: Some(broadcast.message_type.message_type()),
        text: broadcast.body.text.clone(),
        content: broadcast.body.content.clone(),
        ..SendMessage::to(String::new())
    }
}

/// Returns whether the content is a template.
pub(super) fn is_template(broadcast: &Broadcast) -> bool {
    broadcast.message_type == BroadcastType::Template
}

pub(super) fn template_deleted() -> Error {
    Error::new(ErrorCode::InvalidRequest, "the template of the broadcast was deleted; set content.templateId to another one")
}

pub(super) fn sender_deleted() -> Error {
    Error::new(ErrorCode::InvalidRequest, "the sender of the broadcast was deleted; create a broadcast with another senderId")
}

/// Returns the template that the broadcast names, as messages use it now; `None` if it was deleted.
pub(super) async fn template(tx: &mut dyn Tx, broadcast: &Broadcast) -> Result<Option<Template>> {
    let named = broadcast.body.content.as_deref().filter(|_| is_template(broadcast));
    let id: Option<TemplateId> = named.and_then(|content| content.template_id.as_deref()?.parse().ok());
    let Some(id) = id else { return Ok(None) };
    Ok(tx.find_template(broadcast.tenant, id).await?.map(Template::in_use))
}

/// Returns a hash of the content that a review covers, with this template.
pub(super) fn fingerprint(broadcast: &Broadcast, template: Option<&Template>) -> String {
    let body = &broadcast.body;
    let revision = template.map(|template| template.content.revision);
    let bytes = idempotency::fingerprint(&(&body.text, &body.content, &body.email_subject, &broadcast.html, &body.variables, revision));
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Keeps the template as it is when a review is requested or passed. Returns whether the review must be repeated, because the template
/// changed meanwhile: either content may be the one that was reviewed.
pub(super) fn keep_template(broadcast: &mut Broadcast, template: Option<Template>, action: BroadcastAction) -> Result<bool> {
    use BroadcastAction as Action;
    let covered = matches!(action, Action::Send | Action::RetryReview | Action::Escalate | Action::Pass { .. } | Action::Approve { .. });
    if !covered || !is_template(broadcast) {
        return Ok(false);
    }
    let revision = template.as_ref().map(|template| template.content.revision);
    let changed = broadcast.body.reviewed_template.as_ref().map(|kept| kept.content.revision) != revision;
    broadcast.body.reviewed_template = template.map(|Template { status, content, .. }| Box::new(ReviewedTemplate { status, content }));
    match action {
        Action::Pass { .. } => Ok(changed),
        Action::Approve { .. } if changed || revision.is_none() => {
            let what = if revision.is_none() { "was deleted" } else { "changed" };
            let advice = "refuse the broadcast, or ask its author for a new one";
            Err(Error::new(ErrorCode::Conflict, format!("the template {what} after the broadcast was escalated; {advice}")))
        }
        _ if revision.is_none() => Err(template_deleted()),
        _ => Ok(false),
    }
}

/// Returns the template with the content that was reviewed.
pub(super) fn reviewed(broadcast: &Broadcast, template: Template) -> Template {
    match broadcast.body.reviewed_template.as_deref() {
        // As long as the content is the same, WhatsApp's newest decision about it counts.
        Some(kept) if kept.content.revision != template.content.revision => {
            Template { status: kept.status, content: kept.content.clone(), ..template }
        }
        _ => template,
    }
}
