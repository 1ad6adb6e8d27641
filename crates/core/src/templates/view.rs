//! Public representation of templates.

use nuncio_domain::template::{Button, Category, HeaderType, Status, Template};
use nuncio_domain::{SenderId, TemplateId, Timestamp, id::Id as _};
use serde::Serialize;
use utoipa::ToSchema;

/// A template.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Template)]
pub struct TemplateView {
    /// Its identifier.
    pub id: TemplateId,
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// Text for channels without a separate text.
    pub body: String,
    /// Text for SMS.
    pub sms_body: Option<String>,
    /// Text for Telegram.
    pub telegram_body: Option<String>,
    /// Text for Instagram.
    pub instagram_body: Option<String>,
    /// WhatsApp category.
    pub category: Category,
    /// Approval status at WhatsApp.
    pub status: Status,
    /// Version of the content shown here, from 1; incremented by each change.
    pub version: u32,
    /// The approved version, if any. Messages use it, even if a newer version is shown here.
    pub approved_version: Option<u32>,
    /// Why WhatsApp rejected it.
    pub rejection_reason: Option<String>,
    /// Header type.
    pub header_type: Option<HeaderType>,
    /// Text, or the URL of the media.
    pub header_content: Option<String>,
    /// Footer text.
    pub footer: Option<String>,
    /// Names of the variables.
    pub variables: Vec<String>,
    /// Buttons.
    pub buttons: Vec<Button>,
    /// The sender that it was submitted for.
    pub sender_id: Option<SenderId>,
    /// When it was last submitted.
    pub submitted_at: Option<Timestamp>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl From<&Template> for TemplateView {
    fn from(template: &Template) -> Self {
        let content = template.content.clone();
        Self {
            id: template.id,
            name: template.name.clone(),
            language: template.language.clone(),
            body: content.body,
            sms_body: content.sms_body,
            telegram_body: content.telegram_body,
            instagram_body: content.instagram_body,
            category: content.category.unwrap_or_default(),
            status: template.status,
            version: content.revision,
            approved_version: template.approved_revision(),
            rejection_reason: content.rejection_reason.filter(|_| template.status == Status::Rejected),
            header_type: content.header_type,
            header_content: content.header_content,
            footer: content.footer,
            variables: content.variables,
            buttons: content.buttons,
            sender_id: content.sender,
            submitted_at: content.submitted_at,
            created_at: template.id.created_at(),
            updated_at: template.updated_at,
        }
    }
}
