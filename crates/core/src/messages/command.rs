//! The request to send a message.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use nuncio_domain::message::{Content, OnUnknown};
use nuncio_domain::{Base64, Channel, MessageType, RequestedChannel, Timestamp, address, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

/// A message to send.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendMessage {
    /// The recipient: an E.164 phone number, an email address, or a numeric chat id (channels telegram and instagram).
    #[schema(min_length = 1, max_length = 320, format = "recipient", example = "+34600111222")]
    pub to: String,
    /// How to reach the recipient. `auto`, the default, chooses by the sender's connections and the recipient.
    pub channel: Option<RequestedChannel>,
    /// Content type of the message.
    pub message_type: Option<MessageType>,
    /// Body of a text message, caption of a media message, or the text of a call.
    #[schema(max_length = 1048576)]
    pub text: Option<String>,
    /// Extra content of types other than `text`.
    pub content: Option<Box<Content>>,
    /// Email subject; required for email.
    #[schema(max_length = 998)]
    pub subject: Option<String>,
    /// HTML body of an email, in addition to the text.
    #[schema(max_length = 2097152)]
    pub html_body: Option<String>,
    /// Reply-to address of an email.
    pub reply_to: Option<String>,
    /// Sends at most one message per key. Same as the header `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 255)]
    pub idempotency_key: Option<String>,
    /// Your own data, returned unchanged: at most 50 keys, 16 KB, 5 levels.
    pub metadata: Option<Map<String, Value>>,
    /// Whether a message that fails on WhatsApp goes by SMS instead. Default true.
    pub fallback_enabled: Option<bool>,
    /// Fall back if no receipt arrives within this many seconds.
    #[schema(minimum = 5, maximum = 86_400)]
    pub fallback_after_seconds: Option<u64>,
    /// BCP 47 tag of the language to speak; by default that of the recipient's country.
    pub voice_language: Option<String>,
    /// Attachments of an email: at most 50, 40 MB in all.
    #[schema(max_items = 50)]
    pub attachments: Option<Vec<AttachmentIn>>,
    /// When to send, at most 30 days ahead. A time in the past sends at once.
    pub scheduled_at: Option<Timestamp>,
    /// Validity in seconds, from now or from `scheduledAt`; after it, the message fails with `expired`.
    #[schema(minimum = 30, maximum = 604_800)]
    pub validity_seconds: Option<u64>,
    /// What to do after an attempt with an unknown outcome. Default `resend`.
    pub on_unknown: Option<OnUnknown>,
}

impl SendMessage {
    /// Returns the time it is scheduled for, or `now`.
    pub(super) fn sends_at(&self, now: Timestamp) -> Timestamp {
        self.scheduled_at.map_or(now, |at| at.max(now))
    }

    /// Returns the request without its key and without explicit defaults: what an idempotency key is bound to.
    pub(crate) fn essence(&self, channel: Channel) -> Self {
        let mut all = Self { idempotency_key: None, ..self.clone() };
        if let Ok(to) = address::email(&all.to) {
            all.to = to;
            all.channel = all.channel.filter(|asked| *asked != RequestedChannel::Only(Channel::Email));
        }
        all.channel = all.channel.filter(|asked| *asked != RequestedChannel::default());
        all.metadata = all.metadata.filter(|metadata| !metadata.is_empty());
        all.message_type = all.message_type.filter(|asked| *asked != MessageType::default());
        all.fallback_enabled = all.fallback_enabled.filter(|enabled| !enabled);
        all.on_unknown = all.on_unknown.filter(|policy| *policy != OnUnknown::default());
        all.validity_seconds = all.validity_seconds.filter(|seconds| *seconds != validity(channel));
        all.attachments = all.attachments.filter(|attachments| !attachments.is_empty());
        for content in all.attachments.iter_mut().flatten().filter_map(|attachment| attachment.content.as_mut()) {
            // Hashed: content can have 56 MB, and the comparison serialises the whole request.
            *content = STANDARD.encode(Sha256::digest(content.as_bytes())).into();
        }
        all
    }

    /// Makes a text message on any channel that reaches the recipient.
    pub fn text(to: &str, text: String) -> Self {
        Self { text: Some(text), ..Self::to(to.to_owned()) }
    }

    /// Makes a message with only a recipient.
    pub(crate) fn to(to: String) -> Self {
        Self { to, ..Self::default() }
    }
}

/// Returns the default validity in seconds.
pub(crate) fn validity(channel: Channel) -> u64 {
    if channel == Channel::Email { limits::VALIDITY_DEFAULT_EMAIL } else { limits::VALIDITY_DEFAULT }
}

/// A file to attach to an email.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[schema(as = EmailAttachment)]
#[serde(deny_unknown_fields)]
pub struct AttachmentIn {
    /// File name.
    #[schema(min_length = 1, max_length = 255)]
    pub filename: String,
    /// The bytes, in base64. Exactly one of `content` and `path` is required.
    pub content: Option<Base64>,
    /// URL to fetch the bytes from when the message is sent. Exactly one of `content` and `path` is required.
    pub path: Option<String>,
    /// MIME type; by default from the file name.
    pub content_type: Option<String>,
    /// `Content-ID` that the HTML body uses to refer to an inline picture.
    pub content_id: Option<String>,
}
