//! Messages: the caller's request and the delivery state.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::channel::{Channel, MessageType, RequestedChannel, named};
use crate::id::{AddressId, AttachmentId, ConnectionId, MessageId, SenderId};
use crate::lifecycle::State;
use crate::limits;
use crate::money::Micros;
use crate::tenant::TenantId;
use crate::time::Timestamp;

named! {
    /// The public status. Its number is also its rank: facts only raise it (see [`crate::lifecycle`]).
    #[cfg_attr(feature = "openapi", schema(as = MessageStatus, description = "Status of a message."))]
    Status {
        /// Waits for its scheduled time.
        Scheduled = 1 "scheduled",
        /// Accepted; waits to be sent.
        Queued = 2 "queued",
        /// An attempt was started.
        Sending = 3 "sending",
        /// A provider accepted it.
        Sent = 4 "sent",
        /// Failed on every route.
        Failed = 5 "failed",
        /// Delivered.
        Delivered = 6 "delivered",
        Read = 7 "read",
        /// Stopped before it was sent to a provider.
        Cancelled = 8 "cancelled",
        /// Inbound message.
        Received = 9 "received",
    }
}

named! {
    /// Direction of a message.
    #[cfg_attr(feature = "openapi", schema(as = MessageDirection))]
    Direction {
        /// Sent by nuncio.
        Outbound = 1 "outbound",
        /// Received by nuncio.
        Inbound = 2 "inbound",
    }
}

named! {
    /// What to do after an attempt with an unknown outcome.
    #[derive(Default)]
    OnUnknown {
        /// Retry, and mark the message as a possible duplicate.
        #[default]
        Resend = 1 "resend",
        /// Wait for a human decision.
        Hold = 2 "hold",
        /// Give up.
        Fail = 3 "fail",
    }
}

named! {
    /// Why a message waits for a human decision.
    HeldReason {
        /// The outcome of an attempt is unknown.
        UnknownOutcome = 1 "unknown_outcome",
        /// Its scheduled time is too far in the past to send it safely.
        PastDue = 2 "past_due",
        /// The database was more than an hour old when the node started: it may be a restored copy whose messages were sent since.
        StaleDatabase = 3 "stale_database",
    }
}

named! {
    /// The closed list of failure reasons.
    #[cfg_attr(feature = "openapi", schema(as = MessageErrorCode))]
    FailureCode {
        /// The recipient does not exist.
        InvalidRecipient = 1 "invalid_recipient",
        /// Delivery failed.
        Undeliverable = 2 "undeliverable",
        /// The recipient opted out, bounced or complained.
        RecipientSuppressed = 3 "recipient_suppressed",
        /// The recipient blocked the sender.
        BlockedByRecipient = 4 "blocked_by_recipient",
        /// The conversation window is closed.
        WindowClosed = 5 "window_closed",
        /// The provider refused the content.
        ContentRejected = 6 "content_rejected",
        /// An attachment could not be fetched.
        AttachmentUnavailable = 7 "attachment_unavailable",
        /// The provider refused for another reason.
        ProviderRejected = 8 "provider_rejected",
        /// The provider refused our credentials.
        CredentialsInvalid = 9 "credentials_invalid",
        /// The provider throttled the connection until the validity ended.
        RateLimited = 10 "rate_limited",
        Expired = 11 "expired",
        /// It is unknown whether it was sent.
        UnknownOutcome = 12 "unknown_outcome",
        Cancelled = 13 "cancelled",
        /// An internal error.
        Internal = 14 "internal",
    }
}

named! {
    /// Status of an attempt.
    AttemptStatus {
        /// The provider call is in flight, or was when the process died.
        Started = 1 "started",
        /// The provider accepted it.
        Accepted = 2 "accepted",
        /// A receipt reports delivery.
        Delivered = 3 "delivered",
        Failed = 4 "failed",
        /// The message may have been sent.
        Unknown = 5 "unknown",
    }
}

/// One provider call for a message.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// Kind of provider, such as `smtp`.
    #[serde(rename = "k")]
    pub provider: String,
    #[serde(rename = "s")]
    pub status: AttemptStatus,
    /// When its start was stored.
    #[serde(rename = "b", with = "crate::time::millis")]
    pub started_at: Timestamp,
    #[serde(rename = "e", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// Number of parts, if there is more than one and each gets its own receipts.
    #[serde(rename = "n", default, skip_serializing_if = "is_default")]
    pub parts: u8,
    /// Delivered parts, one bit each.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub arrived: u32,
    /// Failure, if it failed.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Attempt {
    /// Records that a part (from 0) was delivered; returns whether all have been. Parts are sent in order: whoever has read one has
    /// received those before it.
    pub(crate) fn has_arrived_with(&mut self, part: u8, read: bool) -> bool {
        if self.parts <= 1 {
            return true;
        }
        let this = 1_u32.checked_shl(part.into()).unwrap_or_default();
        self.arrived |= if read { this | this.wrapping_sub(1) } else { this };
        self.arrived.count_ones() >= self.parts.into()
    }
}

/// A failure reason.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Reason from the closed list.
    #[serde(rename = "c")]
    pub code: FailureCode,
    /// The provider's own code.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// Explanation for people.
    #[serde(rename = "m")]
    pub message: String,
}

impl Failure {
    /// Makes a failure that nuncio itself detected.
    pub fn own(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, provider_code: None, message: message.into() }
    }
}

/// One reply button.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReplyButton))]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// Returned when the recipient presses the button.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub id: String,
    /// Label.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    pub title: String,
}

/// One contact card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ContactCard))]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name to show.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 200))]
    pub name: String,
    /// Phone numbers.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 20))]
    pub phones: Vec<String>,
}

/// One section of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ListSection))]
#[serde(deny_unknown_fields)]
pub struct Section {
    /// Heading.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_length = 24))]
    pub title: String,
    /// Options.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10))]
    pub rows: Vec<Row>,
}

/// One row of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ListRow))]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Returned when the recipient chooses the row.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub id: String,
    /// Label.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 24))]
    pub title: String,
    /// Second line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 72))]
    pub description: Option<String>,
}

named! {
    /// Header of a call to action.
    CtaHeaderType {
        /// Text.
        Text = 1 "text",
        /// An image.
        Image = 2 "image",
        /// A video.
        Video = 3 "video",
        /// A document.
        Document = 4 "document",
    }
}

macro_rules! content {
    ($($(#[$meta:meta])* $field:ident $json:literal : $type:ty,)*) => {
        /// Extra content of messages that are more than text. Which fields a message type uses is in `nuncio-core`.
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
        #[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = MessageContent, description = "Extra content of messages that are more than text. Each message type uses its own fields and refuses the others."))]
        #[serde(deny_unknown_fields, rename_all = "camelCase")]
        pub struct Content {
            $($(#[$meta])* #[serde(default, skip_serializing_if = "Option::is_none")] pub $field: Option<$type>,)*
        }

        impl Content {
            /// Returns the JSON names of the fields present.
            pub fn present(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push($json); })*
                names
            }

            /// Removes a field by name.
            pub fn clear(&mut self, name: &str) {
                match name { $($json => self.$field = None,)* _ => {} }
            }
        }
    };
}

content! {
    /// URL of the media.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/a.png"))]
    media_url "mediaUrl": String,
    /// Id of media already stored by the provider.
    media_id "mediaId": String,
    /// MIME type of the media.
    mime_type "mimeType": String,
    /// File name of the document.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 255))]
    filename "filename": String,
    /// Degrees north, -90 to 90.
    #[cfg_attr(feature = "openapi", schema(minimum = -90, maximum = 90))]
    latitude "latitude": f64,
    /// Degrees east, -180 to 180.
    #[cfg_attr(feature = "openapi", schema(minimum = -180, maximum = 180))]
    longitude "longitude": f64,
    /// Name of the place.
    location_name "locationName": String,
    /// Address of the place.
    location_address "locationAddress": String,
    /// Contact cards.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 20))]
    contacts "contacts": Vec<Card>,
    /// Reply buttons.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 3))]
    buttons "buttons": Vec<Button>,
    /// The button that opens the list.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    list_button "listButton": String,
    /// Sections of the list.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10))]
    sections "sections": Vec<Section>,
    /// Label of the link button.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    cta_display_text "ctaDisplayText": String,
    /// URL of the link button.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/offer"))]
    cta_url "ctaUrl": String,
    /// Header type of the call to action.
    cta_header_type "ctaHeaderType": CtaHeaderType,
    /// Header text.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 60))]
    cta_header_text "ctaHeaderText": String,
    /// Header media.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/a.png"))]
    cta_header_media_url "ctaHeaderMediaUrl": String,
    /// Footer text.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 60))]
    footer_text "footerText": String,
    /// The reaction.
    #[cfg_attr(feature = "openapi", schema(max_length = 16))]
    emoji "emoji": String,
    /// The message to react to.
    react_to_message_id "reactToMessageId": String,
    /// The template.
    template_id "templateId": String,
    /// Body variables by position or name.
    template_variables "templateVariables": std::collections::BTreeMap<String, String>,
    /// Button variables by button index.
    template_button_variables "templateButtonVariables": std::collections::BTreeMap<String, String>,
    /// Header variables.
    template_header_variables "templateHeaderVariables": std::collections::BTreeMap<String, String>,
}

/// Source of an attachment's bytes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentSource {
    /// Included in the request, as base64 (validated on entry).
    Base64(String),
    /// Fetched when the message is sent.
    Url(String),
    /// Stored by the provider of an inbound message, under this reference.
    Provider(String),
}

/// An attachment of an email.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    pub id: AttachmentId,
    pub filename: String,
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
    /// Decoded size in bytes; unknown until fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    pub source: AttachmentSource,
}

impl Attachment {
    /// Drops the bytes sent with the request; leaves an empty string.
    pub fn drop_content(&mut self) {
        if let AttachmentSource::Base64(content) = &mut self.source {
            *content = String::new();
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The caller's request with defaults filled in. Immutable.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    #[serde(default, skip_serializing_if = "is_default")]
    pub requested_channel: RequestedChannel,
    /// Text, caption or spoken text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Extra content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<Content>>,
    /// Email subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Email HTML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub html_body: Option<String>,
    /// Reply-to address of an email.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The caller's own data, returned unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Whether a failed messaging app falls back to SMS.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub fallback_enabled: bool,
    /// Fall back if no receipt arrives within this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_after_seconds: Option<u64>,
    /// Validity in seconds, if the caller set it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity_seconds: Option<u64>,
    /// BCP 47 tag of the language to speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_language: Option<String>,
    /// Email attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The template used, as of acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Box<crate::template::Used>>,
    /// When to send it.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::time::millis::option")]
    pub scheduled_at: Option<Timestamp>,
    /// A keyed hash of the idempotency key, stored in its own column.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
    pub routing: Routing,
}

/// Marks the end of a truncated text.
const CUT: char = '…';

impl Request {
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
        if let Some(text) = self.text.as_mut().filter(|text| text.len() > limits::SPOOLED_TEXT_SHOWN_BYTES) {
            text.truncate(text.floor_char_boundary(limits::SPOOLED_TEXT_SHOWN_BYTES));
            text.push(CUT);
            text.shrink_to_fit();
        }
    }

    /// Returns whether [`Self::forget_bulk`] removed HTML.
    pub fn lacks_html(&self) -> bool {
        self.html_body.as_ref().is_some_and(String::is_empty)
    }

    /// Returns whether [`Self::cut_text`] may have truncated the text. A text of that length with the same ending counts as truncated.
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
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Considered {
    pub channel: Channel,
    pub usable: bool,
    /// Reason for the result.
    pub reason: String,
    /// Price on this channel; absent without a price.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored_price")]
    pub price: Option<Micros>,
    /// Estimated chance of delivery, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<u16>,
}

/// A stored message: the immutable request and the mutable [`State`].
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    pub tenant: TenantId,
    /// Also holds the creation time.
    pub id: MessageId,
    pub direction: Direction,
    pub message_type: MessageType,
    /// The recipient in canonical form.
    pub to: String,
    /// The sender's phone number or address at the time of acceptance; `""` if none.
    pub from: String,
    pub sender: SenderId,
    /// The recipient's address row; links to the contact.
    pub address: AddressId,
    /// Shared, as it never changes and can be large.
    pub request: Arc<Request>,
    pub state: State,
}

impl Message {
    /// Returns the request for modification; copies it first if it is shared.
    pub fn request_mut(&mut self) -> &mut Request {
        Arc::make_mut(&mut self.request)
    }
}

/// Costs, absent until known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Platform fee.
    pub fee: Micros,
    /// The carrier's price.
    pub provider: Micros,
}

impl Cost {
    /// Returns fee plus carrier's price.
    pub const fn total(self) -> Micros {
        Micros(self.fee.0.saturating_add(self.provider.0))
    }
}

/// Agreed prices of a message, as of its acceptance. An upper bound of its cost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Money {
    /// One for each route with a price.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
    /// Whether its broadcast has already reserved the money, so that acceptance reserves nothing.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub prepaid: bool,
    /// The sender, if its daily spending is limited.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub limited_sender: Option<SenderId>,
}

/// Price of one route, independent of the number of attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quote {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "m", with = "stored_cost")]
    pub cost: Cost,
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    pub state: QuoteState,
}

/// State of a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum QuoteState {
    /// Reserved.
    #[default]
    #[serde(rename = "o")]
    Open,
    /// Charged.
    #[serde(rename = "c")]
    Charged,
    /// Released.
    #[serde(rename = "r")]
    Released,
    /// Returned to the reservation of the message's broadcast.
    #[serde(rename = "b")]
    Returned,
}

impl Money {
    /// Returns the price of all routes: the amount originally reserved.
    pub fn whole(&self) -> Micros {
        Micros(self.quotes.iter().map(|q| q.cost.total().0).sum())
    }

    /// Returns the amount still reserved.
    pub fn open(&self) -> Micros {
        Micros(self.quotes.iter().filter(|q| q.state == QuoteState::Open).map(|q| q.cost.total().0).sum())
    }

    /// Returns whether anything is still reserved.
    pub fn is_open(&self) -> bool {
        self.quotes.iter().any(|q| q.state == QuoteState::Open)
    }
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

/// The stored form of costs: fee and carrier's price in micros. The public JSON has decimals, which would not read back.
mod stored_cost {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Cost;
    use crate::money::Micros;

    pub(super) fn serialize<S: Serializer>(cost: &Cost, serializer: S) -> Result<S::Ok, S::Error> {
        (cost.fee.0, cost.provider.0).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cost, D::Error> {
        let (fee, provider) = Deserialize::deserialize(deserializer)?;
        Ok(Cost { fee: Micros(fee), provider: Micros(provider) })
    }
}
