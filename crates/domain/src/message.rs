//! Messages: what the client asked, and what became of it.

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
    /// The public status. The number is also the rank: facts only ever raise it (see [`crate::lifecycle`]).
    #[cfg_attr(feature = "openapi", schema(as = MessageStatus, description = "Where a message stands."))]
    Status {
        /// Waits for its time.
        Scheduled = 1 "scheduled",
        /// Accepted; waits for its turn.
        Queued = 2 "queued",
        /// An attempt was started.
        Sending = 3 "sending",
        /// A provider took it.
        Sent = 4 "sent",
        /// No route is left.
        Failed = 5 "failed",
        /// It arrived.
        Delivered = 6 "delivered",
        /// It was read.
        Read = 7 "read",
        /// Stopped before it was handed to a provider.
        Cancelled = 8 "cancelled",
        /// Came from outside.
        Received = 9 "received",
    }
}

named! {
    /// Which way a message goes.
    #[cfg_attr(feature = "openapi", schema(as = MessageDirection))]
    Direction {
        /// From us.
        Outbound = 1 "outbound",
        /// To us.
        Inbound = 2 "inbound",
    }
}

named! {
    /// What to do when nobody can tell whether an attempt went out.
    #[derive(Default)]
    OnUnknown {
        /// Try again; a possible duplicate is marked.
        #[default]
        Resend = 1 "resend",
        /// Wait for a person.
        Hold = 2 "hold",
        /// Give up.
        Fail = 3 "fail",
    }
}

named! {
    /// Why a message waits for a person.
    HeldReason {
        /// An attempt's outcome cannot be known.
        UnknownOutcome = 1 "unknown_outcome",
        /// Its schedule lies further in the past than is safe to send.
        PastDue = 2 "past_due",
        /// The database was found as it was more than an hour ago: a restored copy, perhaps, whose messages went out since.
        StaleDatabase = 3 "stale_database",
    }
}

named! {
    /// The closed list of reasons why a message failed.
    #[cfg_attr(feature = "openapi", schema(as = MessageErrorCode))]
    FailureCode {
        /// The recipient does not exist.
        InvalidRecipient = 1 "invalid_recipient",
        /// It could not be delivered.
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
        /// The provider slowed us down until the validity ended.
        RateLimited = 10 "rate_limited",
        /// The validity ended.
        Expired = 11 "expired",
        /// Nobody can tell whether it was sent.
        UnknownOutcome = 12 "unknown_outcome",
        /// It was cancelled.
        Cancelled = 13 "cancelled",
        /// A fault of nuncio's own.
        Internal = 14 "internal",
    }
}

named! {
    /// What became of one attempt.
    AttemptStatus {
        /// The provider is being called, or was when the process died.
        Started = 1 "started",
        /// The provider took it.
        Accepted = 2 "accepted",
        /// A receipt says that it arrived.
        Delivered = 3 "delivered",
        /// It did not work.
        Failed = 4 "failed",
        /// It may have gone out.
        Unknown = 5 "unknown",
    }
}

/// One call of a provider.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attempt {
    /// The channel that was used.
    #[serde(rename = "c")]
    pub channel: Channel,
    /// The connection that was used.
    #[serde(rename = "x")]
    pub connection: ConnectionId,
    /// The kind of provider, such as `smtp`.
    #[serde(rename = "k")]
    pub provider: String,
    /// What became of it.
    #[serde(rename = "s")]
    pub status: AttemptStatus,
    /// When it was durably started.
    #[serde(rename = "b", with = "crate::time::millis")]
    pub started_at: Timestamp,
    /// When its result was known.
    #[serde(rename = "e", with = "crate::time::millis::option", default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// The provider's id for it.
    #[serde(rename = "i", default, skip_serializing_if = "Option::is_none")]
    pub provider_message_id: Option<String>,
    /// In how many parts it was sent, when these are more than one and have receipts of their own.
    #[serde(rename = "n", default, skip_serializing_if = "is_default")]
    pub parts: u8,
    /// The parts that arrived, a bit each.
    #[serde(rename = "d", default, skip_serializing_if = "is_default")]
    pub arrived: u32,
    /// Why it failed.
    #[serde(rename = "f", default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Attempt {
    /// Notes that a part arrived, from 0, and answers whether all have by now. Parts go out in order: who has read one has those before it.
    pub(crate) fn has_arrived_with(&mut self, part: u8, read: bool) -> bool {
        if self.parts <= 1 {
            return true;
        }
        let this = 1_u32.checked_shl(part.into()).unwrap_or_default();
        self.arrived |= if read { this | this.wrapping_sub(1) } else { this };
        self.arrived.count_ones() >= self.parts.into()
    }
}

/// Why something failed.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Failure {
    /// Ours, from the closed list.
    #[serde(rename = "c")]
    pub code: FailureCode,
    /// The provider's own code.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub provider_code: Option<String>,
    /// A text for people.
    #[serde(rename = "m")]
    pub message: String,
}

impl Failure {
    /// A failure that no provider told us.
    pub fn own(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code, provider_code: None, message: message.into() }
    }
}

/// One reply button.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ReplyButton))]
#[serde(deny_unknown_fields)]
pub struct Button {
    /// What comes back when it is pressed.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub id: String,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 20))]
    pub title: String,
}

/// One contact card.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ContactCard))]
#[serde(deny_unknown_fields)]
pub struct Card {
    /// Name shown.
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
    /// What can be chosen.
    #[cfg_attr(feature = "openapi", schema(min_items = 1, max_items = 10))]
    pub rows: Vec<Row>,
}

/// One row of a list.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = ListRow))]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// What comes back when it is chosen.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 256))]
    pub id: String,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 24))]
    pub title: String,
    /// A second line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 72))]
    pub description: Option<String>,
}

named! {
    /// What stands above a call to action.
    CtaHeaderType {
        /// Words.
        Text = 1 "text",
        /// A picture.
        Image = 2 "image",
        /// A video.
        Video = 3 "video",
        /// A file.
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
            /// The JSON names of the fields that are present.
            pub fn present(&self) -> Vec<&'static str> {
                let mut names = Vec::new();
                $(if self.$field.is_some() { names.push($json); })*
                names
            }

            /// Takes the named field out.
            pub fn clear(&mut self, name: &str) {
                match name { $($json => self.$field = None,)* _ => {} }
            }
        }
    };
}

content! {
    /// Where the media lies.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/a.png"))]
    media_url "mediaUrl": String,
    /// Media that the provider already has.
    media_id "mediaId": String,
    /// Type of the media.
    mime_type "mimeType": String,
    /// Name of the document.
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
    /// Where the link button leads.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/offer"))]
    cta_url "ctaUrl": String,
    /// What stands above the call to action.
    cta_header_type "ctaHeaderType": CtaHeaderType,
    /// Header text.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 60))]
    cta_header_text "ctaHeaderText": String,
    /// Header media.
    #[cfg_attr(feature = "openapi", schema(max_length = 2048, pattern = "^https?://", example = "https://example.com/a.png"))]
    cta_header_media_url "ctaHeaderMediaUrl": String,
    /// Small print below.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 60))]
    footer_text "footerText": String,
    /// The reaction.
    #[cfg_attr(feature = "openapi", schema(max_length = 16))]
    emoji "emoji": String,
    /// The message reacted to.
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

/// Where the bytes of an attachment come from.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AttachmentSource {
    /// Given with the request, as base64 (checked at the door).
    Base64(String),
    /// Fetched at dispatch.
    Url(String),
    /// Kept by the provider that an inbound message came from, under this reference.
    Provider(String),
}

/// An attachment of an email.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Attachment {
    /// Its identifier.
    pub id: AttachmentId,
    /// File name.
    pub filename: String,
    /// MIME type.
    pub content_type: String,
    /// `Content-ID` without angle brackets, for inline parts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_id: Option<String>,
    /// Decoded size in bytes; unknown for one that is yet to be fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Where the bytes are.
    pub source: AttachmentSource,
}

impl Attachment {
    /// Forgets the bytes that came with the request; an empty text remains of them.
    pub fn forget_content(&mut self) {
        if let AttachmentSource::Base64(content) = &mut self.source {
            *content = String::new();
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// What the client asked, with defaults filled in. Written once, never changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// The channel that was asked for.
    #[serde(default, skip_serializing_if = "is_default")]
    pub requested_channel: RequestedChannel,
    /// Text, caption or spoken words.
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
    /// Where replies to an email go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// The caller's own data, returned unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Whether a messaging-app channel that fails may be followed by SMS.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub fallback_enabled: bool,
    /// Fall back when no receipt came within this many seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_after_seconds: Option<u64>,
    /// How long the message may take, in seconds, if the caller said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity_seconds: Option<u64>,
    /// BCP 47 tag of the language to speak.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice_language: Option<String>,
    /// Email attachments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// The template that it was made from, as it was then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Box<crate::template::Used>>,
    /// When it shall go out.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "crate::time::millis::option")]
    pub scheduled_at: Option<Timestamp>,
    /// What stands for the idempotency key that it was sent with. Stored in a column of its own.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
    /// Why the channel was chosen.
    pub routing: Routing,
}

/// Stands at the end of a text that was cut.
const CUT: char = '…';

impl Request {
    /// Forgets the HTML and the bytes of attachments, which lists do not show. An empty text remains of each.
    pub fn forget_bulk(&mut self) {
        if let Some(html) = &mut self.html_body {
            *html = String::new();
        }
        self.attachments.iter_mut().for_each(Attachment::forget_content);
    }

    /// How many bytes an attempt has to load of a request that does not fit its row; 0 for one that fits.
    pub fn spooled_bytes(&self) -> usize {
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        let content = |attachment: &Attachment| if let AttachmentSource::Base64(content) = &attachment.source { content.len() } else { 0 };
        let bytes = text(&self.text) + text(&self.html_body) + self.attachments.iter().map(content).sum::<usize>();
        if bytes > limits::SPOOL_THRESHOLD_BYTES { bytes } else { 0 }
    }

    /// Decoded bytes of all attachments that were given with the request.
    pub fn attachment_bytes(&self) -> u64 {
        self.attachments.iter().filter_map(|attachment| attachment.size).sum()
    }

    /// Cuts the text to what lists show of a very long one.
    pub fn cut_text(&mut self) {
        if let Some(text) = self.text.as_mut().filter(|text| text.len() > limits::SPOOLED_TEXT_SHOWN_BYTES) {
            text.truncate(text.floor_char_boundary(limits::SPOOLED_TEXT_SHOWN_BYTES));
            text.push(CUT);
            text.shrink_to_fit();
        }
    }

    /// Whether there is HTML that [`Self::forget_bulk`] left out.
    pub fn lacks_html(&self) -> bool {
        self.html_body.as_ref().is_some_and(String::is_empty)
    }

    /// Whether the text may have been cut by [`Self::cut_text`]. One of just that length that ends alike is taken for one.
    pub fn may_be_cut(&self) -> bool {
        let most = limits::SPOOLED_TEXT_SHOWN_BYTES + CUT.len_utf8();
        self.text.as_ref().is_some_and(|text| (most - 3..=most).contains(&text.len()) && text.ends_with(CUT))
    }
}

fn yes() -> bool {
    true
}

/// Why a message went where it went.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Routing {
    /// The rule that decided.
    pub reason: String,
    /// Every channel that was looked at, with the verdict on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub considered: Vec<Considered>,
    /// What is worth knowing about the recipient or the content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// One channel that was looked at.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Considered {
    /// The channel.
    pub channel: Channel,
    /// Whether it could carry the message.
    pub usable: bool,
    /// Why, or why not.
    pub reason: String,
    /// What it would cost; absent without a price.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "stored_price")]
    pub price: Option<Micros>,
    /// How likely it is to bring the message, in thousandths.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chance: Option<u16>,
}

/// A message as it is stored: what never changes, and the [`State`] that does.
#[derive(Clone, PartialEq, Debug)]
pub struct Message {
    /// The world that it belongs to.
    pub tenant: TenantId,
    /// Its identifier; also tells when it was made.
    pub id: MessageId,
    /// Which way it goes.
    pub direction: Direction,
    /// What kind of content it has.
    pub message_type: MessageType,
    /// The recipient in canonical form.
    pub to: String,
    /// The sender's phone number or address, as it was when the message was accepted; `""` if none.
    pub from: String,
    /// The sender profile.
    pub sender: SenderId,
    /// The recipient's address row, through which the contact is found.
    pub address: AddressId,
    /// What the client asked. Shared, since it never changes and may be large.
    pub request: Arc<Request>,
    /// What became of it.
    pub state: State,
}

impl Message {
    /// The request, to change it. It is copied first if it is shared.
    pub fn request_mut(&mut self) -> &mut Request {
        Arc::make_mut(&mut self.request)
    }
}

/// Costs, absent until known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Platform fee.
    pub fee: Micros,
    /// Carrier's price.
    pub provider: Micros,
}

impl Cost {
    /// Fee and carrier's price together.
    pub const fn total(self) -> Micros {
        Micros(self.fee.0.saturating_add(self.provider.0))
    }
}

/// What a message may cost, by the price list of the moment of its acceptance. It will not cost more.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Money {
    /// One for each route that has a price.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
    /// Set aside already with what the message is part of: its own acceptance sets nothing aside.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub prepaid: bool,
    /// The sender, should its daily spending be limited.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub limited_sender: Option<SenderId>,
}

/// What one route costs, however often it is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quote {
    /// The channel of the route.
    #[serde(rename = "c")]
    pub channel: Channel,
    /// The price.
    #[serde(rename = "m", with = "stored_cost")]
    pub cost: Cost,
    /// What became of it.
    #[serde(rename = "s", default, skip_serializing_if = "is_default")]
    pub state: QuoteState,
}

/// What became of a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum QuoteState {
    /// It is set aside.
    #[default]
    #[serde(rename = "o")]
    Open,
    /// It was paid.
    #[serde(rename = "c")]
    Charged,
    /// It was not needed.
    #[serde(rename = "r")]
    Released,
    /// It was not needed, and is set aside for the message's broadcast again.
    #[serde(rename = "b")]
    Returned,
}

impl Money {
    /// What all routes together may cost: what was set aside at first.
    pub fn whole(&self) -> Micros {
        Micros(self.quotes.iter().map(|q| q.cost.total().0).sum())
    }

    /// What is set aside.
    pub fn open(&self) -> Micros {
        Micros(self.quotes.iter().filter(|q| q.state == QuoteState::Open).map(|q| q.cost.total().0).sum())
    }

    /// Whether anything may yet be paid or given back.
    pub fn is_open(&self) -> bool {
        self.quotes.iter().any(|q| q.state == QuoteState::Open)
    }
}

/// A price as it is stored, in micros.
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

/// Costs as they are stored: fee and carrier's price in micros. As JSON for callers they are decimals, which would not read back.
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
