//! The caller's request: content, options, attachments and routing.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use super::content::Content;
use crate::channel::{Channel, RequestedChannel};
use crate::{id::AttachmentId, limits, money::Micros, time::Timestamp};

/// A text in base64. Shared, so that a request can be cloned without its attachments.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(from = "String")]
pub struct Base64(Arc<String>);

impl From<String> for Base64 {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl Deref for Base64 {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// Source of an attachment's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentSource {
    /// Included in the request, as base64 (validated on entry).
    Base64(Base64),
    /// Fetched when the message is sent.
    Url(String),
    /// Stored by the provider of an inbound message, under this reference.
    Provider(String),
}

/// An attachment of an email.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    pub id: AttachmentId,
    pub filename: String,
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts.
    pub content_id: Option<String>,
    /// Decoded size in bytes; unknown until fetched.
    pub size: Option<u64>,
    pub source: AttachmentSource,
}

impl Attachment {
    /// Drops the bytes sent with the request; leaves an empty string.
    pub fn drop_content(&mut self) {
        if let AttachmentSource::Base64(content) = &mut self.source {
            *content = Base64::default();
        }
    }
}

/// The caller's request with defaults filled in. Immutable.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default, skip_serializing_if = "super::is_default")]
    pub requested_channel: RequestedChannel,
    /// Text, caption or spoken text.
    pub text: Option<String>,
    /// Extra content.
    pub content: Option<Box<Content>>,
    /// Email subject.
    pub subject: Option<String>,
    /// Email HTML.
    pub html_body: Option<String>,
    /// Reply-to address of an email.
    pub reply_to: Option<String>,
    /// The caller's own data, returned unchanged.
    pub metadata: Option<Map<String, Value>>,
    /// Whether a message that fails on WhatsApp goes by SMS instead.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub fallback_enabled: bool,
    /// Fall back if no receipt arrives within this many seconds.
    pub fallback_after_seconds: Option<u64>,
    /// Validity in seconds, if the caller set it.
    pub validity_seconds: Option<u64>,
    /// BCP 47 tag of the language to speak.
    pub voice_language: Option<String>,
    /// Email attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The template used, as of acceptance.
    pub template: Option<Box<crate::template::Used>>,
    /// When to send it.
    #[serde(default, with = "crate::time::millis::option")]
    pub scheduled_at: Option<Timestamp>,
    /// A keyed hash of the idempotency key, stored in its own column.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
    pub routing: Routing,
}

/// Marks the end of a truncated text.
const CUT: char = '…';

/// Returns what lists show of a text: its beginning, if it is very long.
pub fn beginning(text: &str) -> Cow<'_, str> {
    let end = text.floor_char_boundary(limits::SPOOLED_TEXT_SHOWN_BYTES);
    if end < text.len() { Cow::Owned(format!("{}{CUT}", &text[..end])) } else { Cow::Borrowed(text) }
}

impl Request {
    /// Returns a request with this text and nothing else.
    pub fn text(requested_channel: RequestedChannel, text: String) -> Self {
        Self {
            requested_channel,
            text: Some(text),
            content: None,
            subject: None,
            html_body: None,
            reply_to: None,
            metadata: None,
            fallback_enabled: true,
            fallback_after_seconds: None,
            validity_seconds: None,
            voice_language: None,
            attachments: Vec::new(),
            template: None,
            scheduled_at: None,
            idempotency_key: None,
            routing: Routing::default(),
        }
    }

    /// Drops HTML and attachment bytes, which lists do not show; leaves empty strings.
    pub fn drop_bulk(&mut self) {
        if let Some(html) = &mut self.html_body {
            *html = String::new();
        }
        self.attachments.iter_mut().for_each(Attachment::drop_content);
    }

    /// Returns how many bytes of the request an attempt must load from the spool; 0 if the row holds it all.
    pub fn spooled_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let content = |attachment: &Attachment| if let AttachmentSource::Base64(content) = &attachment.source { content.len() } else { 0 };
        let bytes = text(&self.text) + text(&self.html_body) + self.attachments.iter().map(content).sum::<usize>();
        if bytes > limits::SPOOL_THRESHOLD_BYTES { bytes } else { 0 }
    }

    /// Returns the decoded bytes of all attachments included in the request.
    pub fn attachment_bytes(&self) -> u64 {
        self.attachments.iter().filter_map(|attachment| attachment.size).sum()
    }

    /// Truncates a very long text to what lists show.
    pub fn truncate_text(&mut self) {
        if let Some(Cow::Owned(beginning)) = self.text.as_deref().map(beginning) {
            self.text = Some(beginning);
        }
    }

    /// Returns whether [`Self::drop_bulk`] removed HTML.
    pub fn lacks_html(&self) -> bool {
        self.html_body.as_ref().is_some_and(String::is_empty)
    }

    /// Returns whether [`Self::truncate_text`] may have truncated the text. A text of that length with the same ending counts as truncated.
    pub fn may_be_truncated(&self) -> bool {
        let most = limits::SPOOLED_TEXT_SHOWN_BYTES + CUT.len_utf8();
        self.text.as_ref().is_some_and(|text| (most - 3..=most).contains(&text.len()) && text.ends_with(CUT))
    }
}

fn yes() -> bool {
    true
}

/// Why a message took its route.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// The deciding rule.
    pub reason: String,
    /// Every channel considered, with the result.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<Considered>,
    /// Warnings about the recipient or the content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A channel considered during routing.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Considered {
    pub channel: Channel,
    pub usable: bool,
    /// Reason for the result.
    pub reason: String,
    /// Price on this channel; absent without a price.
    #[serde(default, with = "stored_price")]
    pub price: Option<Micros>,
    /// Estimated chance of delivery, in thousandths.
    pub chance: Option<u16>,
}

/// The stored form of a price, in micros.
mod stored_price {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::money::Micros;

    pub(super) fn serialize<S: Serializer>(price: &Option<Micros>, serializer: S) -> Result<S::Ok, S::Error> {
        price.map(|price| price.0).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Micros>, D::Error> {
        Ok(Option::<i64>::deserialize(deserializer)?.map(Micros))
    }
}
