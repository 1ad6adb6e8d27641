//! Requests about templates.

use nuncio_domain::template::{Button, Category, HeaderType, Template};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::base::list;
use crate::base::patch::{given, nullable};

/// A new template.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateTemplate {
    /// Its name. For WhatsApp, only lower-case letters, digits and underscores.
    #[schema(min_length = 1, max_length = 512, example = "order_shipped")]
    pub name: String,
    /// Its language. Name and language together are unique.
    #[schema(min_length = 2, max_length = 16, example = "en_US")]
    pub language: String,
    /// Text for channels without a separate text. Variables are `{{1}}`, `{{2}}` … or `{{name}}`.
    #[schema(min_length = 1, max_length = 1024, example = "Hello {{1}}, your order {{2}} is on its way.")]
    pub body: String,
    /// Text for SMS.
    #[schema(min_length = 1, max_length = 1600)]
    pub sms_body: Option<String>,
    /// Text for Telegram.
    #[schema(min_length = 1, max_length = 4096)]
    pub telegram_body: Option<String>,
    /// Text for Instagram; at most 1,000 bytes.
    #[schema(min_length = 1, max_length = 1000)]
    pub instagram_body: Option<String>,
    /// WhatsApp category. Default `UTILITY`.
    pub whatsapp_category: Option<Category>,
    /// Header type.
    pub header_type: Option<HeaderType>,
    /// Text of at most 60 characters with at most one variable, or the URL of the media.
    #[schema(min_length = 1, max_length = 2048)]
    pub header_content: Option<String>,
    /// Footer text.
    #[schema(min_length = 1, max_length = 60)]
    pub footer: Option<String>,
    /// Names of all variables of the bodies. Default: those in the texts.
    #[schema(max_items = 100, example = json!(["1", "2"]))]
    pub variables: Option<Vec<String>>,
    /// Buttons below the text.
    #[schema(max_items = 3)]
    pub buttons: Option<Vec<Button>>,
}

/// Changes of a template; absent fields stay unchanged. Name and language cannot be changed.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpdateTemplate {
    /// Text for channels without a separate text.
    #[serde(deserialize_with = "given")]
    #[schema(min_length = 1, max_length = 1024, nullable = false)]
    pub body: Option<String>,
    /// Text for SMS; null removes it.
    #[serde(deserialize_with = "nullable")]
    #[schema(min_length = 1, max_length = 1600)]
    pub sms_body: Option<Option<String>>,
    /// Text for Telegram; null removes it.
    #[serde(deserialize_with = "nullable")]
    #[schema(min_length = 1, max_length = 4096)]
    pub telegram_body: Option<Option<String>>,
    /// Text for Instagram, at most 1,000 bytes; null removes it.
    #[serde(deserialize_with = "nullable")]
    #[schema(min_length = 1, max_length = 1000)]
    pub instagram_body: Option<Option<String>>,
    /// WhatsApp category.
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub whatsapp_category: Option<Category>,
    /// Header type; null for no header.
    #[serde(deserialize_with = "nullable")]
    pub header_type: Option<Option<HeaderType>>,
    /// Text of at most 60 characters with at most one variable, or the URL of the media.
    #[serde(deserialize_with = "nullable")]
    #[schema(min_length = 1, max_length = 2048)]
    pub header_content: Option<Option<String>>,
    /// Footer text; null for none.
    #[serde(deserialize_with = "nullable")]
    #[schema(min_length = 1, max_length = 60)]
    pub footer: Option<Option<String>>,
    /// Names of all variables of the bodies; null takes them from the texts.
    #[serde(deserialize_with = "nullable")]
    #[schema(max_items = 100)]
    pub variables: Option<Option<Vec<String>>>,
    /// Buttons below the text; replaces all.
    #[serde(deserialize_with = "given")]
    #[schema(max_items = 3, nullable = false)]
    pub buttons: Option<Vec<Button>>,
    /// Fails with 409 if the content has another version now, for pages, which save all fields of a form.
    #[serde(skip)]
    pub expected_version: Option<u32>,
}

impl UpdateTemplate {
    /// Returns the changed template as a request to create it. Without `variables`, those of the texts.
    pub(super) fn applied(&self, template: &Template) -> CreateTemplate {
        let was = &template.content;
        let text = |new: &Option<Option<String>>, old: &Option<String>| new.clone().unwrap_or_else(|| old.clone());
        CreateTemplate {
            name: template.name.clone(),
            language: template.language.clone(),
            body: self.body.clone().unwrap_or_else(|| was.body.clone()),
            sms_body: text(&self.sms_body, &was.sms_body),
            telegram_body: text(&self.telegram_body, &was.telegram_body),
            instagram_body: text(&self.instagram_body, &was.instagram_body),
            whatsapp_category: self.whatsapp_category.or(was.category),
            header_type: self.header_type.unwrap_or(was.header_type),
            header_content: text(&self.header_content, &was.header_content),
            footer: text(&self.footer, &was.footer),
            variables: self.variables.clone().flatten(),
            buttons: Some(self.buttons.clone().unwrap_or_else(|| was.buttons.clone())),
        }
    }
}

/// How to submit a template.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitTemplate {
    /// The sender whose WhatsApp account it is submitted with.
    #[schema(min_length = 1, max_length = 64, example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk")]
    pub sender_id: String,
    /// Category to submit it with, replacing its own.
    pub category: Option<Category>,
}

list::list_query! {
    /// Query of `GET /v1/templates`.
    ListTemplates {}
}
