//! Defines broadcasts: one content for many recipients, reviewed before it is sent.
//!
//! [`apply`] is the whole state machine and has no side effects. The store writes its result only if the broadcast's version is still the
//! one it was computed from, so the later of two concurrent actions sees the earlier one's result.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::id::{BroadcastContactId, BroadcastId, MessageId, SenderId, TenantId};
use crate::message::{Content, Failure};
use crate::{AddressKind, Recipient, channel::Channel, money::Micros, time::Timestamp};

mod action;
mod counts;
mod quiet_hours;
mod review;
mod safety;
mod status;

pub use action::{BroadcastAction, Standing, apply};
pub use counts::Counts;
pub use quiet_hours::{QuietHours, RecipientQuietHours, TimeOfDay, WrittenQuietHours};
pub use review::{ReviewDecision, ReviewPolicy, ReviewResult, ReviewedTemplate};
pub use safety::{Canary, HaltBase, HaltOn};
pub use status::{BroadcastChannel, BroadcastType, ContactStatus, Halt, Status};

/// The part of a broadcast that no query filters by, stored as JSON.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Body {
    /// Display name.
    pub name: String,
    /// Text or caption.
    pub text: Option<String>,
    /// Extra content.
    pub content: Option<Box<Content>>,
    pub email_subject: Option<String>,
    /// Values of `{{variables}}` for recipients without their own, unless the broadcast uses a template.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub variables: std::collections::BTreeMap<String, String>,
    /// The caller's own data.
    pub metadata: Option<Map<String, Value>>,
    /// When to start sending.
    pub scheduled_at: Option<Timestamp>,
    /// When sending started.
    pub started_at: Option<Timestamp>,
    /// When it was resumed last, and how many recipients were through then.
    pub resumed: Option<(Timestamp, i64)>,
    /// When it became final.
    pub completed_at: Option<Timestamp>,
    /// Expected cost, in micro-dollars.
    pub estimated_cost: Option<i64>,
    /// Reserved for the whole broadcast and not released since, in micro-dollars. Includes what its messages took over.
    pub reserved: i64,
    /// Number of reviews so far.
    pub review_attempts: u32,
    /// Result of the newest review.
    pub review: Option<ReviewResult>,
    /// Decision of the human reviewer.
    pub decision: Option<ReviewDecision>,
    /// Fingerprint of the content as of the newest review.
    pub reviewed_content: Option<String>,
    /// The template as it is reviewed, from the request for a review on. It is sent even if the template changes later.
    pub reviewed_template: Option<Box<ReviewedTemplate>>,
    pub canary: Option<Canary>,
    /// When its first recipients were all enqueued, or failed. The wait of the canary begins then.
    pub canary_sent_at: Option<Timestamp>,
    /// When to pause automatically.
    pub halt_on: Option<HaltOn>,
    /// When to send no messages, in the recipients' local time.
    pub quiet_hours: Option<QuietHours>,
    /// Whether clicks on its links are counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub track_links: bool,
    /// Why it paused automatically, until it is resumed.
    pub halted: Option<String>,
    /// Outcomes at that time.
    pub halt_base: HaltBase,
    /// Found more than an hour late, and paused for a human decision.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub past_due: bool,
}

#[derive(Clone, PartialEq, Debug)]
pub struct Broadcast {
    pub tenant: TenantId,
    pub id: BroadcastId,
    pub status: Status,
    /// How it reaches its recipients.
    pub channel: BroadcastChannel,
    /// Content type.
    pub message_type: BroadcastType,
    pub sender: SenderId,
    /// Incremented by each change; the `sequence` of its events.
    pub version: i64,
    /// When a node must process it next.
    pub due_at: Option<Timestamp>,
    /// Whether there was money or storage for none of its recipients when it was last processed.
    pub starved: bool,
    /// Number of recipients.
    pub total: i64,
    /// HTML of emails; absent in lists, as it can be large.
    pub html: Option<String>,
    pub body: Body,
    /// When it last changed.
    pub updated_at: Timestamp,
    pub counts: Counts,
}

impl Broadcast {
    /// Returns the number of recipients without a message, or whose message waits for its first attempt.
    pub const fn pending(&self) -> i64 {
        if self.status.skips_pending() { 0 } else { self.waiting() + self.counts.queued }
    }

    /// Returns the number of recipients that get nothing.
    pub const fn skipped(&self) -> i64 {
        self.counts.skipped + if self.status.skips_pending() { self.waiting() + self.counts.queued } else { 0 }
    }

    /// Returns the number of recipients without a message.
    pub const fn waiting(&self) -> i64 {
        self.total - self.counts.handled()
    }

    /// Returns what is left of its reservation for recipients without a message.
    pub const fn unspent(&self) -> Micros {
        if self.body.reserved == 0 { Micros(0) } else { Micros(self.body.reserved - self.counts.prepaid) }
    }

    /// Returns the money currently reserved for it and its messages.
    pub const fn held_money(&self) -> Micros {
        Micros(self.unspent().0 + self.counts.held)
    }

    /// Returns the input of the state machine.
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
    pub id: BroadcastContactId,
    pub recipient: Recipient,
    pub status: ContactStatus,
    /// Values of template variables for this recipient.
    pub variables: Variables,
    pub message: Option<MessageId>,
    /// The channel the message takes or took.
    pub channel: Option<Channel>,
    pub failure: Option<Failure>,
    pub cost: Option<Micros>,
    /// When its outcome was last expected to change.
    pub processed_at: Option<Timestamp>,
}

impl BroadcastContact {
    /// Returns the public name of the recipient's kind.
    pub const fn kind(&self) -> &'static str {
        match self.recipient.kind {
            AddressKind::Phone => "phone",
            AddressKind::Email => "email",
            AddressKind::Telegram | AddressKind::Instagram => "chat_id",
        }
    }
}

/// Values of template variables.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TemplateValues))]
#[serde(rename_all = "camelCase", default)]
pub struct Variables {
    /// Body variables, by position or name.
    pub template_variables: Option<std::collections::BTreeMap<String, String>>,
    /// Button variables, by index.
    pub template_button_variables: Option<std::collections::BTreeMap<String, String>>,
    /// Header variables.
    pub template_header_variables: Option<std::collections::BTreeMap<String, String>>,
}

impl Variables {
    pub const fn is_empty(&self) -> bool {
        self.template_variables.is_none() && self.template_button_variables.is_none() && self.template_header_variables.is_none()
    }
}
