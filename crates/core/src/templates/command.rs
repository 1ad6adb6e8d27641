//! What a caller asks of templates.

use nuncio_domain::template::{Button, Category, HeaderType};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// A template to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateTemplate {
    /// Its name. To be sent by WhatsApp it must consist of lower-case letters, digits and underscores.
    #[schema(min_length = 1, max_length = 512, example = "order_shipped")]
    pub name: String,
    /// Its language. Name and language together are unique.
    #[schema(min_length = 2, max_length = 16, example = "en_US")]
    pub language: String,
    /// The text, for every channel without one of its own. Variables are `{{1}}`, `{{2}}` … or `{{name}}`.
    #[schema(min_length = 1, max_length = 1024, example = "Hello {{1}}, your order {{2}} is on its way.")]
    pub body: String,
    /// The text for SMS.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1600)]
    pub sms_body: Option<String>,
    /// The text for Telegram.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 4096)]
    pub telegram_body: Option<String>,
    /// The text for Instagram; at most 1,000 bytes.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 1000)]
    pub instagram_body: Option<String>,
    /// What it is for, in WhatsApp's terms. Default `UTILITY`.
    #[serde(default)]
    pub whatsapp_category: Option<Category>,
    /// What stands above the body.
    #[serde(default)]
    pub header_type: Option<HeaderType>,
    /// Words of at most 60 characters with at most one variable, or the URL of the media.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2048)]
    pub header_content: Option<String>,
    /// Small print below.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 60)]
    pub footer: Option<String>,
    /// Names of all variables of the bodies. They are found in the texts when this is left out.
    #[serde(default)]
    #[schema(max_items = 100, example = json!(["1", "2"]))]
    pub variables: Option<Vec<String>>,
    /// Buttons below.
    #[serde(default)]
    #[schema(max_items = 3)]
    pub buttons: Option<Vec<Button>>,
}

/// How to submit a template.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SubmitTemplate {
    /// The sender whose WhatsApp account it is for.
    #[schema(min_length = 1, max_length = 64, example = "snd_01hgw2bbg0e9tatjpp9vyrkcyk")]
    pub sender_id: String,
    /// What it is for, in place of what it says so far.
    #[serde(default)]
    pub category: Option<Category>,
}

/// Which templates are asked for: the query of `GET /v1/templates`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListTemplates {
    /// Created at or after this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    pub since: Option<String>,
    /// Created before this moment.
    #[param(value_type = Option<String>, format = DateTime)]
    pub until: Option<String>,
    /// Page size; 50 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
    /// Where to continue: the `nextCursor` of the page before.
    pub cursor: Option<String>,
}
