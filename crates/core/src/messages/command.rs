//! What a caller sends.

use nuncio_domain::message::{Content, OnUnknown};
use nuncio_domain::{Channel, MessageType, RequestedChannel, Timestamp, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A message to send.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendMessage {
    /// The recipient: an E.164 phone number, an email address, or a numeric chat id (channels telegram and instagram).
    #[schema(min_length = 1, max_length = 320, example = "+34600111222")]
    pub to: String,
    /// How to reach the recipient. `auto`, the default, chooses from what the sender has connected and what the recipient is.
    #[serde(default)]
    pub channel: Option<RequestedChannel>,
    /// What kind of content the message has.
    #[serde(default)]
    pub message_type: Option<MessageType>,
    /// Body of a text message, caption of a media message, or the words of a call.
    #[serde(default)]
    #[schema(max_length = 1048576)]
    pub text: Option<String>,
    /// Extra content of types other than `text`.
    #[serde(default)]
    #[schema(value_type = Option<Content>)]
    pub content: Option<Box<Content>>,
    /// Email subject; required for email.
    #[serde(default)]
    #[schema(max_length = 998)]
    pub subject: Option<String>,
    /// HTML body of an email, sent beside the text.
    #[serde(default)]
    #[schema(max_length = 2097152)]
    pub html_body: Option<String>,
    /// Where replies to an email go.
    #[serde(default)]
    pub reply_to: Option<String>,
    /// Sends at most one message per key. Same as the header `Idempotency-Key`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 255)]
    pub idempotency_key: Option<String>,
    /// Your own data, returned unchanged: at most 50 keys, 16 KB, 5 levels.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// Whether a messaging-app channel that fails may be followed by SMS. Default true.
    #[serde(default)]
    pub fallback_enabled: Option<bool>,
    /// Fall back when no receipt came within this many seconds.
    #[serde(default)]
    #[schema(minimum = 5, maximum = 86_400)]
    pub fallback_after_seconds: Option<u64>,
    /// BCP 47 tag of the language to speak; by default that of the recipient's country.
    #[serde(default)]
    pub voice_language: Option<String>,
    /// Files of an email: at most 50, 40 MB in all.
    #[serde(default)]
    #[schema(max_items = 50)]
    pub attachments: Option<Vec<AttachmentIn>>,
    /// When to send, at most 30 days ahead. A moment that has passed sends at once.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub scheduled_at: Option<Timestamp>,
    /// How long the message may take, from now or from `scheduledAt`; then it fails with `expired`.
    #[serde(default)]
    #[schema(minimum = 30, maximum = 604_800)]
    pub validity_seconds: Option<u64>,
    /// What to do when nobody can tell whether an attempt went out. Default `resend`.
    #[serde(default)]
    pub on_unknown: Option<OnUnknown>,
}

impl SendMessage {
    /// The same request without its key, with what is so by default left out: what a key is bound to.
    pub(crate) fn essence(&self, channel: Channel) -> Self {
        let mut all = Self { idempotency_key: None, ..self.clone() };
        all.channel = all.channel.filter(|asked| *asked != RequestedChannel::default());
        all.message_type = all.message_type.filter(|asked| *asked != MessageType::default());
        all.fallback_enabled = all.fallback_enabled.filter(|enabled| !enabled);
        all.on_unknown = all.on_unknown.filter(|policy| *policy != OnUnknown::default());
        all.validity_seconds = all.validity_seconds.filter(|seconds| *seconds != validity(channel));
        all.attachments = all.attachments.filter(|attachments| !attachments.is_empty());
        all
    }

    /// A text, by whatever channel reaches the recipient.
    pub fn text(to: &str, text: String) -> Self {
        Self { text: Some(text), ..Self::to(to.to_owned()) }
    }

    /// A message to somebody, of which nothing else is said.
    pub(crate) const fn to(to: String) -> Self {
        Self {
            to,
            channel: None,
            message_type: None,
            text: None,
            content: None,
            subject: None,
            html_body: None,
            reply_to: None,
            idempotency_key: None,
            metadata: None,
            fallback_enabled: None,
            fallback_after_seconds: None,
            voice_language: None,
            attachments: None,
            scheduled_at: None,
            validity_seconds: None,
            on_unknown: None,
        }
    }
}

/// How long a message may take when nothing is said, in seconds.
pub(super) fn validity(channel: Channel) -> u64 {
    if channel == Channel::Email { limits::VALIDITY_DEFAULT_EMAIL } else { limits::VALIDITY_DEFAULT }
}

/// A file of an email.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = EmailAttachment)]
#[serde(deny_unknown_fields)]
pub struct AttachmentIn {
    /// File name.
    #[schema(min_length = 1, max_length = 255)]
    pub filename: String,
    /// The bytes, in base64. Either this or `path`.
    #[serde(default)]
    #[schema(max_length = 55924056)]
    pub content: Option<String>,
    /// Where to fetch the bytes when the message goes out. Either this or `content`.
    #[serde(default)]
    pub path: Option<String>,
    /// MIME type; by default from the file name.
    #[serde(default)]
    pub content_type: Option<String>,
    /// `Content-ID` by which the HTML body refers to an inline picture.
    #[serde(default)]
    pub content_id: Option<String>,
}
