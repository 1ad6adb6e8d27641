//! Reads rows of recipients.

use nuncio_domain::broadcast::{BroadcastContact, ContactStatus, Variables};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{self, Detail, Failure};
use nuncio_domain::{AddressKind, BroadcastContactId, Channel, MessageId, Recipient, Timestamp};
use nuncio_store::Result;
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::super::Db;
use super::super::query::Condition;
use super::number;
use crate::row::{corrupt, from_row};

const CONTACTS: &str = "broadcast_contacts";

from_row! {
    pub(super) struct ContactRow {
        pub(super) id: Uuid,
        kind: i16,
        recipient: String,
        message_id: Uuid,
        outcome: i16,
        variables: String,
        failure: Option<String>,
        processed_at: Option<i64>,
        status: Option<i16>,
        channel: Option<i16>,
        detail: Option<String>,
        changed_at: Option<i64>,
    }
}

impl ContactRow {
    pub(super) fn decode(self) -> Result<BroadcastContact> {
        let wrong = |e: serde_json::Error| corrupt(CONTACTS, e);
        let detail: Option<Detail> = self.detail.as_deref().map(serde_json::from_str).transpose().map_err(wrong)?;
        let own: Option<Failure> = self.failure.as_deref().map(serde_json::from_str).transpose().map_err(wrong)?;
        let status = self.status(detail.as_ref())?;
        let ended = matches!(status, ContactStatus::Delivered | ContactStatus::Failed | ContactStatus::Skipped);
        let failed = matches!(status, ContactStatus::Failed | ContactStatus::Skipped);
        let cost = detail.as_ref().and_then(|d| d.cost).and_then(|c| c.fee.checked_add(c.provider));
        Ok(BroadcastContact {
            id: BroadcastContactId::from_uuid(self.id),
            recipient: recipient(self.kind, self.recipient)?,
            status,
            variables: variables(&self.variables)?,
            channel: self.channel.map(|n| number(Channel::from_number(n), "states", "channel", n)).transpose()?,
            message: (!self.message_id.is_nil()).then(|| MessageId::from_uuid(self.message_id)),
            failure: own.or(detail.and_then(|d| d.failure)).filter(|_| failed),
            cost,
            processed_at: self.processed_at.or(self.changed_at).filter(|_| ended).map(Timestamp::from_millis),
        })
    }

    /// What the row says, else its message; a message that retention has deleted was delivered.
    fn status(&self, detail: Option<&Detail>) -> Result<ContactStatus> {
        match (self.outcome, self.status, detail) {
            (0, ..) if self.message_id.is_nil() => Ok(ContactStatus::Pending),
            (0, Some(status), Some(detail)) => {
                let status = number(message::Status::from_number(status), "states", "status", status)?;
                Ok(ContactStatus::of_message(status, detail))
            }
            (0, ..) => Ok(ContactStatus::Delivered),
            (outcome, ..) => number(ContactStatus::from_number(outcome), CONTACTS, "outcome", outcome),
        }
    }
}

pub(super) fn recipient(kind: i16, identifier: String) -> Result<Recipient> {
    Ok(Recipient { kind: number(AddressKind::from_number(kind), CONTACTS, "kind", kind)?, identifier })
}

pub(super) fn variables(text: &str) -> Result<Variables> {
    serde_json::from_str(text).map_err(|e| corrupt(CONTACTS, e))
}

/// Whether a recipient's status is `status`, from its row `c` and the state `s` of its message.
fn has_status(query: &mut QueryBuilder<Db>, status: ContactStatus) {
    use message::Status as Of;
    // A provider that sends no receipts: what it took counts as delivered.
    const SILENT: &str = "s.detail LIKE '%\"b\":{\"i\":\"%\",\"c\":\"%\",\"n\":true%'";
    let is = |statuses: &[Of]| statuses.iter().map(|status| status.number().to_string()).collect::<Vec<_>>().join(", ");
    let (taken, arrived) = (is(&[Of::Sent]), is(&[Of::Delivered, Of::Read, Of::Received]));
    let condition = match status {
        ContactStatus::Pending => {
            query.push("(c.outcome = 0 AND c.message_id = ").push_bind(Uuid::nil()).push(")");
            return;
        }
        ContactStatus::Queued => format!("(c.outcome = 0 AND s.status IN ({}))", is(&[Of::Scheduled, Of::Queued])),
        ContactStatus::Sending => format!(
            "(c.outcome = {} OR c.outcome = 0 AND (s.status IN ({}) OR s.status IN ({taken}) AND NOT {SILENT}))",
            status.number(),
            is(&[Of::Sending])
        ),
        ContactStatus::Delivered => {
            query.push("(c.outcome = 0 AND c.message_id <> ").push_bind(Uuid::nil());
            format!(" AND (s.id IS NULL OR s.status IN ({arrived}) OR s.status IN ({taken}) AND {SILENT}))")
        }
        ContactStatus::Failed | ContactStatus::Skipped => format!("c.outcome = {}", status.number()),
    };
    query.push(condition);
}

/// That a recipient has one of these statuses.
pub(super) fn any_status(statuses: Vec<ContactStatus>) -> Option<Condition> {
    (!statuses.is_empty()).then(|| {
        Box::new(move |query: &mut QueryBuilder<Db>| {
            for (n, status) in statuses.iter().enumerate() {
                query.push(if n == 0 { "(" } else { " OR " });
                has_status(query, *status);
            }
            query.push(")");
        }) as Condition
    })
}
