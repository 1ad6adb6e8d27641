//! Public views of broadcasts.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_domain::broadcast::{
    Broadcast, BroadcastChannel, BroadcastContact, BroadcastType, Canary, ContactStatus, HaltOn, QuietHours, ReviewResult, Status,
    Variables,
};
use nuncio_domain::message::{Content, FailureCode, HeldReason, beginning};
use nuncio_domain::{BroadcastContactId, BroadcastId, Channel, MessageId, Micros, SenderId, Timestamp, id::Id as _};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::base::identifier_hasher;

/// A broadcast.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Broadcast)]
pub struct BroadcastView {
    /// Its identifier.
    pub id: BroadcastId,
    /// Display name.
    pub name: String,
    /// Its status.
    pub status: Status,
    /// Channel to the recipients.
    pub channel: BroadcastChannel,
    /// Content type.
    pub message_type: BroadcastType,
    /// Number of recipients: the sum of `pendingCount`, `sendingCount`, `deliveredCount`, `failedCount` and `skippedCount`.
    pub total_contacts: i64,
    /// Text, caption, or spoken text of a call. Lists and events show the first 32 KB.
    pub text: Option<String>,
    /// Extra content.
    pub content: Option<Box<Content>>,
    /// The sender.
    pub sender_id: SenderId,
    /// Subject of emails.
    pub email_subject: Option<String>,
    /// HTML body of emails; absent in lists and events.
    pub email_html_body: Option<String>,
    /// Recipients without a queued message, or waiting for the first attempt.
    pub pending_count: i64,
    /// Recipients whose message is in flight, including `sentCount`.
    pub sending_count: i64,
    /// Of those, recipients whose message a provider accepted, without a later report.
    pub sent_count: i64,
    /// Recipients whose message was delivered.
    pub delivered_count: i64,
    /// Recipients whose message failed.
    pub failed_count: i64,
    /// Recipients that were skipped.
    pub skipped_count: i64,
    /// Expected cost in US dollars, on the first channel of each message; absent before it is sent, and without prices.
    pub estimated_cost: Option<Micros>,
    /// Amount reserved for it and its messages, including fallbacks, in US dollars.
    pub reserved_amount: Micros,
    /// Cost so far, in US dollars.
    pub actual_cost: Micros,
    /// Sends to some recipients first.
    pub canary: Option<Canary>,
    /// When the first recipients of the canary all had a message or had failed: the others follow `waitSeconds` later.
    pub canary_sent_at: Option<Timestamp>,
    /// When it pauses automatically.
    pub halt_on: Option<HaltOn>,
    /// When none of its messages are sent, in each recipient's local time.
    pub quiet_hours: Option<QuietHours>,
    /// Whether clicks on links are counted.
    pub track_links: bool,
    /// Why it was paused automatically, until it is resumed.
    pub halted_reason: Option<String>,
    /// When it should be sent.
    pub scheduled_at: Option<Timestamp>,
    /// When sending started.
    pub started_at: Option<Timestamp>,
    /// When it was completed, failed or was cancelled.
    pub completed_at: Option<Timestamp>,
    /// Values of `{{variables}}` for recipients without their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    pub variables: BTreeMap<String, String>,
    /// Your own data.
    pub metadata: Option<Map<String, Value>>,
    /// Result of the newest review.
    pub review_result: Option<ReviewResult>,
    /// Number of automated reviews so far.
    pub review_attempts: u32,
    /// Why it was paused, if not by a caller.
    pub held_reason: Option<HeldReason>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed, not counting changes of its messages.
    pub updated_at: Timestamp,
    /// Incremented by each change, for pages.
    #[serde(skip)]
    pub version: i64,
    /// Whether its content changed since the newest review, for pages; false if it was not read for one.
    #[serde(skip)]
    pub edited_since_review: bool,
}

impl From<&Broadcast> for BroadcastView {
    fn from(broadcast: &Broadcast) -> Self {
        let (body, counts) = (&broadcast.body, &broadcast.counts);
        Self {
            id: broadcast.id,
            name: body.name.clone(),
            status: broadcast.status,
            channel: broadcast.channel,
            message_type: broadcast.message_type,
            total_contacts: broadcast.total,
            text: body.text.as_deref().map(|text| beginning(text).into_owned()),
            content: body.content.clone(),
            sender_id: broadcast.sender,
            email_subject: body.email_subject.clone(),
            email_html_body: None,
            pending_count: broadcast.pending(),
            sending_count: counts.sending,
            sent_count: counts.sent,
            delivered_count: counts.delivered,
            failed_count: counts.failed,
            skipped_count: broadcast.skipped(),
            estimated_cost: body.estimated_cost.map(Micros),
            reserved_amount: broadcast.held_money(),
            actual_cost: Micros(counts.cost),
            canary: body.canary,
            canary_sent_at: body.canary_sent_at,
            halt_on: body.halt_on,
            quiet_hours: body.quiet_hours.clone(),
            track_links: body.track_links,
            halted_reason: body.halted.clone(),
            scheduled_at: body.scheduled_at,
            started_at: body.started_at,
            completed_at: body.completed_at,
            variables: body.variables.clone(),
            metadata: body.metadata.clone(),
            review_result: body.review.clone(),
            review_attempts: body.review_attempts,
            held_reason: (broadcast.status == Status::Paused && body.past_due).then_some(HeldReason::PastDue),
            created_at: broadcast.id.created_at(),
            updated_at: broadcast.updated_at,
            version: broadcast.version,
            edited_since_review: false,
        }
    }
}

impl BroadcastView {
    /// Returns the view with HTML and the whole text, for a single broadcast.
    pub(super) fn whole(broadcast: &Broadcast) -> Self {
        Self { text: broadcast.body.text.clone(), email_html_body: broadcast.html.clone(), ..Self::from(broadcast) }
    }
}

/// Progress of a broadcast.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastProgress {
    /// The broadcast.
    pub broadcast_id: BroadcastId,
    /// Its status.
    pub status: Status,
    /// All recipients.
    pub total: i64,
    /// Without a queued message, or waiting for the first attempt.
    pub pending: i64,
    /// In flight.
    pub sending: i64,
    /// Delivered.
    pub delivered: i64,
    /// Failed.
    pub failed: i64,
    /// Nothing was sent.
    pub skipped: i64,
    /// Percentage of recipients that need no more work.
    #[schema(minimum = 0, maximum = 100)]
    pub percent_complete: i64,
    /// Expected cost in US dollars; absent before it is sent, and without prices.
    pub estimated_cost: Option<Micros>,
    /// Amount reserved for it and its messages, including fallbacks, in US dollars.
    pub reserved_amount: Micros,
    /// Cost so far, in US dollars.
    pub actual_cost: Micros,
    /// Average number of recipients completed per second since the start; only during sending.
    pub recipients_per_second: Option<f64>,
    /// When sending started.
    pub started_at: Option<Timestamp>,
    /// Expected time of completion at the rate so far; only during sending, once a recipient is completed. Absent if quiet hours or missing
    /// money delay it, and once no recipient waits for its message.
    pub estimated_completion_at: Option<Timestamp>,
}

impl BroadcastProgress {
    pub(super) fn new(broadcast: &Broadcast, now: Timestamp) -> Self {
        let counts = &broadcast.counts;
        let through = through(broadcast);
        let percent = match broadcast.status {
            status if status.is_final() => 100,
            _ if broadcast.total == 0 => 0,
            _ => through * 100 / broadcast.total,
        };
        Self {
            broadcast_id: broadcast.id,
            status: broadcast.status,
            total: broadcast.total,
            pending: broadcast.pending(),
            sending: counts.sending,
            delivered: counts.delivered,
            failed: counts.failed,
            skipped: broadcast.skipped(),
            percent_complete: percent,
            estimated_cost: broadcast.body.estimated_cost.map(Micros),
            reserved_amount: broadcast.held_money(),
            actual_cost: Micros(counts.cost),
            recipients_per_second: rate(broadcast, through, now),
            started_at: broadcast.body.started_at,
            estimated_completion_at: estimate(broadcast, through, now),
        }
    }
}

/// Returns how many recipients are through.
pub(super) fn through(broadcast: &Broadcast) -> i64 {
    broadcast.counts.sent + broadcast.counts.delivered + broadcast.counts.failed + broadcast.skipped()
}

/// Returns since when it sends without a pause, and how many recipients were through then. `None` while it does not, or its canary holds
/// the others back.
pub(super) fn sending_since(broadcast: &Broadcast, now: Timestamp) -> Option<(Timestamp, i64)> {
    let body = &broadcast.body;
    let started = body.started_at.filter(|_| broadcast.status == Status::Sending)?;
    let tested = match body.canary {
        Some(canary) => Some((canary.end(body.canary_sent_at?), canary.first_of(broadcast.total))),
        None => None,
    };
    if tested.is_some_and(|(end, _)| end > now) {
        return None;
    }
    [Some((started, 0)), tested, body.resumed].into_iter().flatten().max_by_key(|(at, _)| *at)
}

/// Rounded to one decimal.
fn rate(broadcast: &Broadcast, through: i64, now: Timestamp) -> Option<f64> {
    let (since, before) = sending_since(broadcast, now)?;
    let seconds = now.since(since).as_secs_f64();
    (seconds > 0.0).then(|| ((through - before).max(0) as f64 / seconds * 10.0).round() / 10.0)
}

/// Assumes that the remaining recipients, and those whose receipt is awaited, take as long on average as those before. Returns `None` once
/// only receipts or decisions are missing, which can take any time.
fn estimate(broadcast: &Broadcast, through: i64, now: Timestamp) -> Option<Timestamp> {
    if broadcast.starved || broadcast.pending() == 0 {
        return None;
    }
    let (since, before) = sending_since(broadcast, now).filter(|(_, before)| through > *before)?;
    let left = (broadcast.waiting() + broadcast.counts.awaited).max(0) as u128;
    let millis = now.since(since).as_millis() * left / (through - before) as u128;
    Some(now.plus(Duration::from_millis(u64::try_from(millis).unwrap_or(u64::MAX))))
}

/// One recipient of a broadcast.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = BroadcastContact)]
pub struct BroadcastContactView {
    /// Its identifier.
    pub id: BroadcastContactId,
    /// The recipient in canonical form; empty when the contact was erased.
    pub recipient: String,
    /// `phone`, `email` or `chat_id`.
    pub recipient_type: &'static str,
    /// Its status.
    pub status: ContactStatus,
    /// Values of template variables for this recipient.
    pub variables: Option<Variables>,
    /// Current or last channel of the message.
    pub channel: Option<Channel>,
    /// The message.
    pub message_id: Option<MessageId>,
    /// Why it failed or was skipped, from a closed list.
    pub error_code: Option<FailureCode>,
    /// Why it failed or was skipped, as text.
    pub error_message: Option<String>,
    /// Cost in US dollars; absent until known.
    pub cost: Option<Micros>,
    /// When its status became final.
    pub processed_at: Option<Timestamp>,
    /// When it was added.
    pub created_at: Timestamp,
}

impl BroadcastContactView {
    pub(super) fn new(contact: BroadcastContact, broadcast: &Broadcast) -> Self {
        let kind = contact.kind();
        let status = contact.status.within(broadcast.status);
        let dropped = status != contact.status;
        Self {
            id: contact.id,
            recipient: if identifier_hasher::is_mark(&contact.recipient) { String::new() } else { contact.recipient.identifier },
            recipient_type: kind,
            status,
            variables: Some(contact.variables).filter(|v| !v.is_empty()),
            channel: contact.channel,
            message_id: contact.message,
            error_code: contact.failure.as_ref().map(|f| f.code),
            error_message: contact.failure.map(|f| f.message),
            cost: contact.cost,
            processed_at: contact.processed_at.or(broadcast.body.completed_at.filter(|_| dropped)),
            created_at: contact.id.created_at(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_domain::TenantId;
    use nuncio_domain::broadcast::{Body, BroadcastChannel, BroadcastType, Counts};

    #[test]
    fn the_end_is_estimated_while_recipients_wait_and_counts_awaited_receipts() {
        let at = |seconds: i64| Timestamp::from_millis(seconds * 1_000);
        let broadcast = |total: i64| Broadcast {
            tenant: TenantId(1),
            id: BroadcastId::from_uuid(uuid::Uuid::nil()),
            status: Status::Sending,
            channel: BroadcastChannel::Sms,
            message_type: BroadcastType::Text,
            sender: SenderId::from_uuid(uuid::Uuid::nil()),
            version: 1,
            due_at: None,
            starved: false,
            total,
            html: None,
            body: Body { started_at: Some(at(0)), ..Body::default() },
            updated_at: at(0),
            counts: Counts { sending: 1, delivered: 2, awaited: 1, ..Counts::default() },
        };
        let end = |total: i64| BroadcastProgress::new(&broadcast(total), at(10)).estimated_completion_at;
        assert_eq!((end(4), end(3)), (Some(at(20)), None));
    }
}
