//! Broadcasts: one content for many recipients, reviewed before it goes out.
//!
//! [`apply`] is the whole state machine, without anything around it. The store writes what it says on condition that the
//! broadcast's version is the one it was asked about, so that of two operations at once one finds the other done.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::channel::{Channel, MessageType, RequestedChannel, named};
use crate::id::{BroadcastContactId, BroadcastId, MessageId, SenderId};
use crate::lifecycle::{Detail, State, Wait};
use crate::limits;
use crate::message::{Content, Failure, FailureCode, Status as MessageStatus};
use crate::money::Micros;
use crate::tenant::TenantId;
use crate::time::{self, Timestamp};
use crate::{AddressKind, Error, ErrorCode, FieldError, Recipient};

named! {
    /// Where a broadcast stands.
    #[cfg_attr(feature = "openapi", schema(as = BroadcastStatus, description = "Where a broadcast stands."))]
    Status {
        /// Being written.
        Draft = 1 "draft",
        /// Waits for the automated review.
        PendingReview = 2 "pending_review",
        /// Passed the review. Goes on at once to `scheduled` or `sending`.
        Approved = 3 "approved",
        /// Failed the review. Can be edited, escalated or cancelled.
        Rejected = 4 "rejected",
        /// Waits for a person of the operator.
        Escalated = 5 "escalated",
        /// Refused by a person. Final.
        RejectedFinal = 6 "rejected_final",
        /// Waits for its time.
        Scheduled = 7 "scheduled",
        /// Goes out.
        Sending = 8 "sending",
        /// Stopped until somebody resumes it.
        Paused = 9 "paused",
        /// Nothing is left to do. Final.
        Completed = 10 "completed",
        /// Stopped for good. Final.
        Cancelled = 11 "cancelled",
        /// No provider took any of it. Final.
        Failed = 12 "failed",
    }
}

impl Status {
    /// Whether nothing leads out of it.
    pub const fn is_final(self) -> bool {
        matches!(self, Self::RejectedFinal | Self::Completed | Self::Cancelled | Self::Failed)
    }

    /// Why no attempt of its messages may start, if none may.
    pub const fn halt(self) -> Option<Halt> {
        match self {
            Self::Paused => Some(Halt::Paused),
            Self::Cancelled => Some(Halt::Cancelled),
            _ => None,
        }
    }
}

named! {
    /// How the recipients of a broadcast are reached.
    #[cfg_attr(feature = "openapi", schema(as = BroadcastChannel, description = "One channel, or `smart` to choose for each recipient, as `auto` does for messages."))]
    BroadcastChannel {
        /// Chosen for each recipient.
        #[serde(alias = "auto")]
        Smart = 1 "smart",
        /// SMS with replies.
        Sms = 2 "sms",
        /// SMS without replies.
        SmsOneway = 3 "sms_oneway",
        /// WhatsApp.
        Whatsapp = 4 "whatsapp",
        /// Telegram.
        Telegram = 5 "telegram",
        /// Email.
        Email = 6 "email",
        /// Instagram.
        Instagram = 7 "instagram",
        /// A call.
        Voice = 8 "voice",
    }
}

impl BroadcastChannel {
    /// The channel that messages ask for.
    pub const fn requested(self) -> RequestedChannel {
        match self {
            Self::Smart => RequestedChannel::Auto,
            Self::Sms => RequestedChannel::Only(Channel::Sms),
            Self::SmsOneway => RequestedChannel::Only(Channel::SmsOneway),
            Self::Whatsapp => RequestedChannel::Only(Channel::Whatsapp),
            Self::Telegram => RequestedChannel::Only(Channel::Telegram),
            Self::Email => RequestedChannel::Only(Channel::Email),
            Self::Instagram => RequestedChannel::Only(Channel::Instagram),
            Self::Voice => RequestedChannel::Only(Channel::Voice),
        }
    }
}

named! {
    /// What kind of content a broadcast has.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", schema(as = BroadcastMessageType))]
    BroadcastType {
        /// Plain text.
        #[default]
        Text = 1 "text",
        /// A picture.
        Image = 2 "image",
        /// A video.
        Video = 3 "video",
        /// A sound.
        Audio = 4 "audio",
        /// A file.
        Document = 5 "document",
        /// A template with variables.
        Template = 6 "template",
    }
}

impl BroadcastType {
    /// The type of its messages.
    pub const fn message_type(self) -> MessageType {
        match self {
            Self::Text => MessageType::Text,
            Self::Image => MessageType::Image,
            Self::Video => MessageType::Video,
            Self::Audio => MessageType::Audio,
            Self::Document => MessageType::Document,
            Self::Template => MessageType::Template,
        }
    }
}

named! {
    /// Where one recipient of a broadcast stands.
    #[cfg_attr(feature = "openapi", schema(as = BroadcastContactStatus))]
    ContactStatus {
        /// Not handed over yet.
        Pending = 1 "pending",
        /// Handed over; waits for its first attempt.
        Queued = 2 "queued",
        /// An attempt was started, or a provider took it and told nothing more.
        Sending = 3 "sending",
        /// It arrived.
        Delivered = 4 "delivered",
        /// It did not.
        Failed = 5 "failed",
        /// Nothing was sent: the recipient is suppressed, or the broadcast was cancelled.
        Skipped = 6 "skipped",
    }
}

/// Why no attempt of a broadcast's messages may start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Halt {
    /// Until it is resumed.
    Paused,
    /// For good.
    Cancelled,
}

/// What a message of a broadcast belongs to; part of the message's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Part {
    /// The broadcast.
    #[serde(rename = "i")]
    pub broadcast: BroadcastId,
    /// The recipient in it.
    #[serde(rename = "c")]
    pub contact: BroadcastContactId,
    /// Whether the provider never tells what became of a message that it took.
    #[serde(rename = "n", default, skip_serializing_if = "std::ops::Not::not")]
    pub no_receipts: bool,
    /// Whether the message was withdrawn when the broadcast was paused. Its recipient is pending again and gets another message, so that
    /// this one counts for nothing any more.
    #[serde(rename = "w", default, skip_serializing_if = "std::ops::Not::not")]
    pub withdrawn: bool,
}

impl Part {
    /// A message to this recipient of a broadcast.
    pub const fn new(broadcast: BroadcastId, contact: BroadcastContactId, no_receipts: bool) -> Self {
        Self { broadcast, contact, no_receipts, withdrawn: false }
    }
}

impl ContactStatus {
    /// What the state of its message says of a recipient.
    pub fn of(state: &State) -> Self {
        Self::of_message(state.status, &state.detail)
    }

    /// What status and detail of its message say of a recipient.
    pub fn of_message(status: MessageStatus, detail: &Detail) -> Self {
        if detail.broadcast.is_some_and(|part| part.withdrawn) {
            return Self::Pending;
        }
        let silent = detail.broadcast.is_some_and(|part| part.no_receipts);
        match status {
            MessageStatus::Scheduled | MessageStatus::Queued => Self::Queued,
            MessageStatus::Sent if silent => Self::Delivered,
            MessageStatus::Sending | MessageStatus::Sent => Self::Sending,
            MessageStatus::Delivered | MessageStatus::Read | MessageStatus::Received => Self::Delivered,
            MessageStatus::Failed if suppressed(detail) => Self::Skipped,
            MessageStatus::Failed => Self::Failed,
            MessageStatus::Cancelled => Self::Skipped,
        }
    }

    /// The status that the recipient's own row has to hold: it is listed by it, or retention may delete the message while it says
    /// something else than delivered. `None` while the message alone says it, so that most recipients are written once.
    pub fn stored(state: &State) -> Option<Self> {
        match Self::of(state) {
            status @ (Self::Failed | Self::Skipped) => Some(status),
            Self::Sending if matches!(state.wait, Wait::Nothing) => Some(Self::Sending),
            _ => None,
        }
    }
}

fn is_withdrawn(state: &State) -> bool {
    state.detail.broadcast.is_some_and(|part| part.withdrawn)
}

fn suppressed(detail: &Detail) -> bool {
    detail.failure.as_ref().is_some_and(|f| f.code == FailureCode::RecipientSuppressed)
}

/// How many recipients stand where. Those who were never handed over are not counted: they are the total less all others.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Handed over, no attempt yet.
    pub queued: i64,
    /// Under way, [`Self::sent`] included.
    pub sending: i64,
    /// Of those, taken by a provider.
    pub sent: i64,
    /// Arrived.
    pub delivered: i64,
    /// Not arrived.
    pub failed: i64,
    /// Nothing was sent.
    pub skipped: i64,
    /// Messages of which something is still to come without a person's doing.
    pub awaited: i64,
    /// Messages that a provider took at some time.
    pub taken: i64,
    /// What they cost, in micro-dollars.
    pub cost: i64,
    /// What messages took over from the broadcast's reservation when they were accepted, in micro-dollars. Less again only when a pause
    /// withdraws them.
    pub prepaid: i64,
    /// What is set aside for messages at this moment, in micro-dollars.
    pub held: i64,
}

impl Counts {
    /// What one message of a broadcast counts as.
    pub fn of(state: &State) -> Self {
        if is_withdrawn(state) {
            return Self::default();
        }
        let mut counts = Self::of_status(ContactStatus::of(state));
        counts.sent = i64::from(counts.sending == 1 && state.status == MessageStatus::Sent);
        counts.awaited = i64::from(!matches!(state.wait, Wait::Nothing | Wait::Held { .. }));
        counts.taken = i64::from(state.detail.sent_at.is_some());
        counts.cost = state.detail.cost.map_or(0, |cost| cost.total().0);
        if let Some(money) = &state.detail.money {
            counts.prepaid = if money.prepaid { money.whole().0 } else { 0 };
            counts.held = money.open().0;
        }
        counts
    }

    /// What a recipient counts as.
    pub fn of_status(status: ContactStatus) -> Self {
        let mut counts = Self::default();
        match status {
            ContactStatus::Pending => {}
            ContactStatus::Queued => counts.queued = 1,
            ContactStatus::Sending => counts.sending = 1,
            ContactStatus::Delivered => counts.delivered = 1,
            ContactStatus::Failed => counts.failed = 1,
            ContactStatus::Skipped => counts.skipped = 1,
        }
        counts
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Self) {
        self.merge(other, i64::saturating_add);
    }

    /// What has to be added to `before` to get this.
    #[must_use]
    pub fn since(mut self, before: &Self) -> Self {
        self.merge(before, i64::saturating_sub);
        self
    }

    fn merge(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        let Self { queued, sending, sent, delivered, failed, skipped, awaited, taken, cost, prepaid, held } = other;
        self.queued = with(self.queued, *queued);
        self.sending = with(self.sending, *sending);
        self.sent = with(self.sent, *sent);
        self.delivered = with(self.delivered, *delivered);
        self.failed = with(self.failed, *failed);
        self.skipped = with(self.skipped, *skipped);
        self.awaited = with(self.awaited, *awaited);
        self.taken = with(self.taken, *taken);
        self.cost = with(self.cost, *cost);
        self.prepaid = with(self.prepaid, *prepaid);
        self.held = with(self.held, *held);
    }

    /// Recipients who were handed over, or of whom it is known that nothing will be.
    pub const fn handled(&self) -> i64 {
        self.queued + self.sending + self.delivered + self.failed + self.skipped
    }
}

/// What a review found.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReviewResult {
    /// 0 to 1; 1 is safe.
    pub score: f64,
    /// What it offends against.
    pub categories: Vec<String>,
    /// Why, in a sentence or two.
    pub reasoning: String,
    /// When.
    #[cfg_attr(feature = "openapi", schema(value_type = String, format = DateTime))]
    pub reviewed_at: Timestamp,
    /// The fragments that it is about, as they stand in the text.
    pub flagged_content: Vec<String>,
    /// Version of the rules and the model. The same version gives the same text the same result.
    #[serde(default)]
    pub version: u32,
}

/// What a person decided about an escalated broadcast.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewDecision {
    /// Whether it may go out.
    pub approved: bool,
    /// Why, as it is shown to the caller who made the broadcast.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When.
    pub decided_at: Timestamp,
}

/// What the operator asks of the content of a project's broadcasts, beside what every review looks for.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ReviewPolicy {
    /// The score from which on a broadcast passes, 0 to 1.
    pub threshold: f64,
    /// Words and phrases that no broadcast may contain, in any case and with or without accents.
    pub blocked_words: Vec<String>,
    /// Domains that are the project's own: links to them and below them are not judged.
    pub allowed_domains: Vec<String>,
}

impl Default for ReviewPolicy {
    fn default() -> Self {
        Self { threshold: 0.6, blocked_words: Vec::new(), allowed_domains: Vec::new() }
    }
}

/// How a broadcast begins: with some of its recipients, so that what is wrong with it shows early.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BroadcastCanary))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Canary {
    /// How many of its recipients are handed over first, in percent, rounded up.
    #[cfg_attr(feature = "openapi", schema(minimum = 1, maximum = 50))]
    pub percent: u8,
    /// How long the others wait, in seconds from the start.
    #[cfg_attr(feature = "openapi", schema(minimum = 60, maximum = 604_800))]
    pub wait_seconds: u32,
}

/// When a broadcast is paused by itself. Rates count from 50 recipients on of whom it is known what became of them.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = BroadcastHaltOn))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct HaltOn {
    /// More than so many percent failed.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure_percent: Option<f64>,
    /// More than so many percent of those who were reached opted out since it began.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_out_percent: Option<f64>,
    /// More than so many percent of those who were reached complained since it began.
    #[cfg_attr(feature = "openapi", schema(exclusive_minimum = 0, maximum = 100))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complaint_percent: Option<f64>,
}

/// What had become of recipients when a broadcast was halted; after a resume, rates count from there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct HaltBase {
    /// Not arrived.
    pub failed: i64,
    /// Arrived, or taken by a provider.
    pub reached: i64,
    /// Opted out since the start.
    pub opted_out: i64,
    /// Complained since the start.
    pub complained: i64,
}

/// A local time of day, to the minute, written `HH:MM`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// Reads `HH:MM`, `00:00` to `23:59`.
    pub fn parse(text: &str) -> Option<Self> {
        let [h1, h2, b':', m1, m2] = text.as_bytes() else { return None };
        let number = |tens: &u8, ones: &u8| {
            let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
            digits.then(|| u16::from(tens - b'0') * 10 + u16::from(ones - b'0'))
        };
        let (hour, minute) = (number(h1, h2)?, number(m1, m2)?);
        (hour < 24 && minute < 60).then_some(Self(hour * 60 + minute))
    }

    /// Since local midnight.
    pub const fn since_midnight(self) -> Duration {
        Duration::from_secs(self.0 as u64 * 60)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of each day in which no message of a broadcast is sent, in the recipient's local time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", try_from = "WrittenQuietHours")]
pub struct QuietHours {
    /// First minute of the quiet hours, `HH:MM`. May be later than `to`: the quiet hours then span midnight.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "21:00"))]
    from: TimeOfDay,
    /// First minute after the quiet hours, `HH:MM`. Must differ from `from`.
    #[cfg_attr(feature = "openapi", schema(value_type = String, pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "08:00"))]
    to: TimeOfDay,
    /// IANA time zone of recipients whose own is unknown, such as email addresses and chat ids. Default: `UTC`.
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Madrid"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
}

/// [`QuietHours`] before they are validated.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = NewQuietHours))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenQuietHours {
    /// First minute of the quiet hours, `HH:MM`. May be later than `to`: the quiet hours then span midnight.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "21:00"))]
    pub from: String,
    /// First minute after the quiet hours, `HH:MM`. Must differ from `from`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "08:00"))]
    pub to: String,
    /// IANA time zone of recipients whose own is unknown, such as email addresses and chat ids. Default: `UTC`.
    #[cfg_attr(feature = "openapi", schema(max_length = 64, example = "Europe/Madrid"))]
    #[serde(default)]
    pub time_zone: Option<String>,
}

impl TryFrom<WrittenQuietHours> for QuietHours {
    type Error = String;

    fn try_from(written: WrittenQuietHours) -> Result<Self, String> {
        Self::new(&written.from, &written.to, written.time_zone.as_deref()).map_err(|errors| {
            let lines: Vec<String> = errors.into_iter().map(|error| format!("{} {}", error.path, error.message)).collect();
            lines.join("; ")
        })
    }
}

impl QuietHours {
    /// Validates all fields. The paths of the errors are `from`, `to` and `timeZone`.
    pub fn new(from: &str, to: &str, time_zone: Option<&str>) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut time = |path: &str, text: &str| {
            let time = TimeOfDay::parse(text);
            if time.is_none() {
                errors.push(FieldError::new(path, format!("is {text:?}; must be a local time as HH:MM, 00:00 to 23:59, such as 21:00")));
            }
            time
        };
        let (from, to) = (time("from", from), time("to", to));
        if let (Some(from), Some(to)) = (from, to)
            && from == to
        {
            errors
                .push(FieldError::new("to", format!("is \"{to}\", the same as from; must differ, since quiet hours cannot last all day")));
        }
        let zone = time_zone.map(|name| (name, time::zone(name)));
        if let Some((name, None)) = &zone {
            errors.push(FieldError::new("timeZone", format!("is {name:?}; must be an IANA time zone such as Europe/Madrid or UTC")));
        }
        match (from, to) {
            (Some(from), Some(to)) if errors.is_empty() => {
                let canonical = |zone: TimeZone| zone.iana_name().map(str::to_owned);
                Ok(Self { from, to, time_zone: zone.and_then(|(_, zone)| zone).and_then(canonical) })
            }
            _ => Err(errors),
        }
    }

    /// When they begin.
    pub const fn from(&self) -> TimeOfDay {
        self.from
    }

    /// When they end.
    pub const fn to(&self) -> TimeOfDay {
        self.to
    }

    /// The time zone of recipients whose own is unknown.
    pub fn default_zone(&self) -> TimeZone {
        self.time_zone.as_deref().and_then(time::zone).unwrap_or(TimeZone::UTC)
    }
}

/// Everything about a broadcast that no query looks at, stored as JSON.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Body {
    /// Name, for people.
    pub name: String,
    /// Text or caption.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Extra content.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Box<Content>>,
    /// Subject of emails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub email_subject: Option<String>,
    /// Values of `{{variables}}` for recipients who have none of their own, where it is not made from a template.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub variables: std::collections::BTreeMap<String, String>,
    /// The caller's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// When it shall go out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduled_at: Option<Timestamp>,
    /// When it began to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it became final.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// What it is expected to cost, in micro-dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_cost: Option<i64>,
    /// What was set aside for it as a whole and not released since, in micro-dollars. Its messages took their part out of it.
    pub reserved: i64,
    /// Reviews so far.
    pub review_attempts: u32,
    /// What the newest one found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub review: Option<ReviewResult>,
    /// What a person decided after it was escalated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<ReviewDecision>,
    /// Fingerprint of the content that the newest review saw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reviewed_content: Option<String>,
    /// How it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub canary: Option<Canary>,
    /// When it is paused by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halt_on: Option<HaltOn>,
    /// When none of its messages is sent, in the recipients' local time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quiet_hours: Option<QuietHours>,
    /// Whether its links are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub track_links: bool,
    /// Why it was paused by itself, until it is resumed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub halted: Option<String>,
    /// What had become of recipients then.
    pub halt_base: HaltBase,
    /// It was found more than an hour late, and paused for a person to decide.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub past_due: bool,
}

/// A broadcast.
#[derive(Clone, PartialEq, Debug)]
pub struct Broadcast {
    /// The world.
    pub tenant: TenantId,
    /// Its identifier.
    pub id: BroadcastId,
    /// Where it stands.
    pub status: Status,
    /// How its recipients are reached.
    pub channel: BroadcastChannel,
    /// What kind of content it has.
    pub message_type: BroadcastType,
    /// Who sends it.
    pub sender: SenderId,
    /// Grows with every change; the `sequence` of its events.
    pub version: i64,
    /// When a node must look at it.
    pub due_at: Option<Timestamp>,
    /// How many recipients it has.
    pub total: i64,
    /// HTML of emails; absent in lists, since it may be large.
    pub html: Option<String>,
    /// The rest.
    pub body: Body,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// Where its recipients stand.
    pub counts: Counts,
}

impl Broadcast {
    /// Recipients who were not handed over and will be, or were and wait for their first attempt.
    pub const fn pending(&self) -> i64 {
        if matches!(self.status, Status::Cancelled) { self.counts.queued } else { self.waiting() + self.counts.queued }
    }

    /// Recipients to whom nothing is sent. Once cancelled, whoever was not handed over will not be.
    pub const fn skipped(&self) -> i64 {
        if matches!(self.status, Status::Cancelled) { self.counts.skipped + self.waiting() } else { self.counts.skipped }
    }

    /// Recipients who were not handed over.
    pub const fn waiting(&self) -> i64 {
        self.total - self.counts.handled()
    }

    /// What is left of its reservation for recipients who were not handed over.
    pub const fn unspent(&self) -> Micros {
        if self.body.reserved == 0 { Micros(0) } else { Micros(self.body.reserved - self.counts.prepaid) }
    }

    /// What is set aside for it at this moment, messages that were handed over included.
    pub const fn set_aside(&self) -> Micros {
        Micros(self.unspent().0 + self.counts.held)
    }

    /// What the state machine looks at.
    pub fn standing(&self, fingerprint: &str) -> Standing {
        Standing {
            status: self.status,
            contacts: self.total,
            reviews: self.body.review_attempts,
            edited: self.body.reviewed_content.as_deref() != Some(fingerprint),
        }
    }
}

/// One recipient of a broadcast.
#[derive(Clone, PartialEq, Debug)]
pub struct BroadcastContact {
    /// Its identifier.
    pub id: BroadcastContactId,
    /// The recipient.
    pub recipient: Recipient,
    /// Where they stand.
    pub status: ContactStatus,
    /// Values of template variables for them.
    pub variables: Variables,
    /// The message to them.
    pub message: Option<MessageId>,
    /// The channel that the message takes now, or took.
    pub channel: Option<Channel>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// What it cost.
    pub cost: Option<Micros>,
    /// Since when nothing is expected to change any more.
    pub processed_at: Option<Timestamp>,
}

impl BroadcastContact {
    /// The name of the recipient's kind.
    pub const fn kind(&self) -> &'static str {
        match self.recipient.kind {
            AddressKind::Phone => "phone",
            AddressKind::Email => "email",
            AddressKind::Telegram | AddressKind::Instagram => "chat_id",
        }
    }
}

/// Values of template variables.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TemplateValues))]
#[serde(rename_all = "camelCase", default)]
pub struct Variables {
    /// Of the body, by position or name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_variables: Option<std::collections::BTreeMap<String, String>>,
    /// Of the buttons, by index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_button_variables: Option<std::collections::BTreeMap<String, String>>,
    /// Of the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template_header_variables: Option<std::collections::BTreeMap<String, String>>,
}

impl Variables {
    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.template_variables.is_none() && self.template_button_variables.is_none() && self.template_header_variables.is_none()
    }
}

/// What the state machine looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The status.
    pub status: Status,
    /// How many recipients there are.
    pub contacts: i64,
    /// How often it was reviewed.
    pub reviews: u32,
    /// Whether the content is another than the one that was reviewed last.
    pub edited: bool,
}

/// What can be done with a broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Change its content.
    Edit,
    /// Add or remove recipients, or delete it.
    Prepare,
    /// Send it, once reviewed.
    Send,
    /// The review found nothing. `ahead`: its time is still to come.
    Pass {
        /// Whether the schedule lies in the future.
        ahead: bool,
    },
    /// The review found something.
    Reject,
    /// Have the edited content reviewed.
    RetryReview,
    /// Have a person look at it.
    Escalate,
    /// The person lets it through.
    Approve {
        /// Whether the schedule lies in the future.
        ahead: bool,
    },
    /// The person does not.
    Refuse,
    /// Send it at another time.
    Schedule,
    /// Its time has come.
    Begin,
    /// It was found long after its time.
    Hold,
    /// Stop handing over.
    Pause,
    /// Go on.
    Resume,
    /// Nothing is left to do.
    Complete,
    /// Nothing could be sent.
    Fail,
    /// Stop for good.
    Cancel,
}

impl Operation {
    /// Where it leads from where; `None` for one that changes no status.
    const fn row(self) -> (&'static [Status], Option<Status>) {
        use Status as S;
        match self {
            Self::Edit => (&[S::Draft, S::Rejected], None),
            Self::Prepare => (&[S::Draft], None),
            Self::Send => (&[S::Draft], Some(S::PendingReview)),
            Self::Pass { ahead: true } => (&[S::PendingReview], Some(S::Scheduled)),
            Self::Pass { ahead: false } => (&[S::PendingReview], Some(S::Sending)),
            Self::Reject => (&[S::PendingReview], Some(S::Rejected)),
            Self::RetryReview => (&[S::Rejected], Some(S::PendingReview)),
            Self::Escalate => (&[S::Rejected], Some(S::Escalated)),
            Self::Approve { ahead: true } => (&[S::Escalated], Some(S::Scheduled)),
            Self::Approve { ahead: false } => (&[S::Escalated], Some(S::Sending)),
            Self::Refuse => (&[S::Escalated], Some(S::RejectedFinal)),
            Self::Schedule => (&[S::Scheduled], Some(S::Scheduled)),
            Self::Begin => (&[S::Scheduled], Some(S::Sending)),
            Self::Hold => (&[S::Scheduled, S::Sending], Some(S::Paused)),
            Self::Pause => (&[S::Sending], Some(S::Paused)),
            Self::Resume => (&[S::Paused], Some(S::Sending)),
            Self::Complete => (&[S::Sending], Some(S::Completed)),
            Self::Fail => (&[S::Sending], Some(S::Failed)),
            Self::Cancel => (
                &[S::Draft, S::PendingReview, S::Approved, S::Rejected, S::Escalated, S::Scheduled, S::Sending, S::Paused],
                Some(S::Cancelled),
            ),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Edit => "edited",
            Self::Prepare => "deleted or given other contacts",
            Self::Send => "sent",
            Self::Pass { .. } | Self::Reject => "reviewed",
            Self::RetryReview => "reviewed again",
            Self::Escalate => "escalated",
            Self::Approve { .. } => "approved",
            Self::Refuse => "refused",
            Self::Schedule => "scheduled",
            Self::Begin | Self::Hold => "begun",
            Self::Pause => "paused",
            Self::Resume => "resumed",
            Self::Complete | Self::Fail => "completed",
            Self::Cancel => "cancelled",
        }
    }
}

/// The statuses that an operation leads through, in order; none for one that changes no status. The error is the caller's.
pub fn apply(standing: Standing, operation: Operation) -> Result<Vec<Status>, Error> {
    let (from, to) = operation.row();
    if !from.contains(&standing.status) {
        return Err(refused(standing.status, operation, from));
    }
    match operation {
        Operation::Send if standing.contacts == 0 => {
            return Err(Error::new(ErrorCode::NoContacts, "the broadcast has no contacts; add some first"));
        }
        Operation::RetryReview if standing.reviews >= limits::REVIEW_ATTEMPTS => {
            let message = format!("the broadcast was reviewed {} times already; escalate it to have a person look at it", standing.reviews);
            return Err(Error::new(ErrorCode::ReviewAttemptsExhausted, message));
        }
        Operation::RetryReview if !standing.edited => {
            let message = "the content is the one that was rejected; edit it first, or escalate it to have a person look at it";
            return Err(Error::wrong_state(message, standing.status.as_str(), &[]));
        }
        _ => {}
    }
    let passed = matches!(operation, Operation::Pass { .. } | Operation::Approve { .. });
    Ok(passed.then_some(Status::Approved).into_iter().chain(to).collect())
}

fn refused(status: Status, operation: Operation, from: &[Status]) -> Error {
    let names: Vec<&str> = from.iter().map(|s| s.as_str()).collect();
    let message = format!("a broadcast that is {status} cannot be {}", operation.name());
    if operation == Operation::Edit {
        return Error::new(ErrorCode::BroadcastNotEditable, message).at_state(status.as_str(), &names);
    }
    Error::wrong_state(message, status.as_str(), &names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPERATIONS: &[(Operation, &str)] = &[
        (Operation::Edit, "draft rejected"),
        (Operation::Prepare, "draft"),
        (Operation::Send, "draft"),
        (Operation::Pass { ahead: false }, "pending_review"),
        (Operation::Pass { ahead: true }, "pending_review"),
        (Operation::Reject, "pending_review"),
        (Operation::RetryReview, "rejected"),
        (Operation::Escalate, "rejected"),
        (Operation::Approve { ahead: false }, "escalated"),
        (Operation::Approve { ahead: true }, "escalated"),
        (Operation::Refuse, "escalated"),
        (Operation::Schedule, "scheduled"),
        (Operation::Begin, "scheduled"),
        (Operation::Hold, "scheduled sending"),
        (Operation::Pause, "sending"),
        (Operation::Resume, "paused"),
        (Operation::Complete, "sending"),
        (Operation::Fail, "sending"),
        (Operation::Cancel, "draft pending_review approved rejected escalated scheduled sending paused"),
    ];

    fn standing(status: Status) -> Standing {
        Standing { status, contacts: 1, reviews: 1, edited: true }
    }

    fn path(status: Status, operation: Operation) -> Option<Vec<&'static str>> {
        apply(standing(status), operation).ok().map(|path| path.into_iter().map(Status::as_str).collect())
    }

    #[test]
    fn every_operation_from_every_status() {
        for (operation, from) in OPERATIONS {
            for status in Status::ALL.iter().copied() {
                let allowed = from.split(' ').any(|name| name == status.as_str());
                assert_eq!(path(status, *operation).is_some(), allowed, "{operation:?} from {status}");
            }
        }
    }

    #[test]
    fn what_passes_the_review_goes_on_at_once() {
        assert_eq!(path(Status::PendingReview, Operation::Pass { ahead: false }), Some(vec!["approved", "sending"]));
        assert_eq!(path(Status::PendingReview, Operation::Pass { ahead: true }), Some(vec!["approved", "scheduled"]));
        assert_eq!(path(Status::Escalated, Operation::Approve { ahead: false }), Some(vec!["approved", "sending"]));
        assert_eq!(path(Status::Draft, Operation::Edit), Some(vec![]));
    }

    #[test]
    fn nothing_leads_out_of_a_final_status() {
        for status in Status::ALL.iter().copied().filter(|s| s.is_final()) {
            for (operation, _) in OPERATIONS {
                assert_eq!(path(status, *operation), None, "{operation:?} from {status}");
            }
        }
    }

    #[test]
    fn reviews_are_counted_and_need_an_edit() {
        let code = |standing| apply(standing, Operation::RetryReview).map_err(|e| e.code()).err();
        let rejected = standing(Status::Rejected);
        assert_eq!(code(Standing { reviews: 2, ..rejected }), None);
        assert_eq!(code(Standing { reviews: 3, ..rejected }), Some(ErrorCode::ReviewAttemptsExhausted));
        assert_eq!(code(Standing { edited: false, ..rejected }), Some(ErrorCode::InvalidRequest));
        let empty = Standing { contacts: 0, ..standing(Status::Draft) };
        assert_eq!(apply(empty, Operation::Send).map_err(|e| e.code()).err(), Some(ErrorCode::NoContacts));
    }

    #[test]
    fn quiet_hours_are_read_and_written() {
        let json = r#"{"from":"21:00","to":"08:00","timeZone":"Europe/Madrid"}"#;
        let hours: QuietHours = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&hours).unwrap(), json);
        assert_eq!(hours.from().since_midnight(), Duration::from_secs(21 * 3_600));
        assert_eq!(hours.default_zone().iana_name(), Some("Europe/Madrid"));

        let without = QuietHours::new("00:00", "23:59", None).unwrap();
        assert_eq!(serde_json::to_string(&without).unwrap(), r#"{"from":"00:00","to":"23:59"}"#);
        assert_eq!(without.default_zone(), TimeZone::UTC);
        let other_case = QuietHours::new("21:00", "08:00", Some("europe/madrid"));
        assert_eq!(other_case, Ok(hours), "names of zones are stored as IANA writes them");
    }

    #[test]
    fn invalid_quiet_hours_name_the_field_and_the_value() {
        let faults = |from, to, zone| -> Vec<(String, String)> {
            QuietHours::new(from, to, zone).unwrap_err().into_iter().map(|e| (e.path, e.message)).collect()
        };
        for text in ["", "8:00", "24:00", "08:60", "08:00:00", "08.00", "+8:00", "0８:0"] {
            let found = faults(text, "08:00", None);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].0, "from");
            assert!(found[0].1.contains(&format!("{text:?}")) && found[0].1.contains("HH:MM"), "{found:?}");
        }
        let all: Vec<String> = faults("9", "x", Some("Mars/Olympus")).into_iter().map(|(path, _)| path).collect();
        assert_eq!(all, ["from", "to", "timeZone"]);
        assert_eq!(faults("08:00", "08:00", None)[0].0, "to");
        for zone in ["", "Madrid", "+02:00", "CET-1CEST", "Etc/Unknown", "../etc/passwd"] {
            assert_eq!(faults("21:00", "08:00", Some(zone))[0].0, "timeZone", "{zone}");
        }
        let error = serde_json::from_str::<QuietHours>(r#"{"from":"21:00","to":"25:00"}"#).unwrap_err().to_string();
        assert!(error.starts_with(r#"to is "25:00"; must be"#), "{error}");
        assert!(serde_json::from_str::<QuietHours>(r#"{"from":"21:00","to":"08:00","timezone":"UTC"}"#).is_err(), "unknown field");
    }
}
