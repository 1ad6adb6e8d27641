//! Reads rows of recipients.

use nuncio_domain::broadcast::{BroadcastContact, ContactStatus};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{self, Detail, Failure};
use nuncio_domain::{MessageId, Recipient, Timestamp};
use nuncio_store::{NewBroadcastContact, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::super::query::Condition;
use super::super::{Columns, Db, Record};
use crate::row::number;

const CONTACTS: &str = "broadcast_contacts";

impl Record for BroadcastContact {
    const TABLE: &'static str = CONTACTS;

    fn read(row: &Columns<'_>) -> Result<Self> {
        let state = Columns { row: row.row, table: "states" };
        let detail: Option<Detail> = state.optional_json("detail")?;
        let own: Option<Failure> = row.optional_json("failure")?;
        let message: Uuid = row.get("message_id")?;
        let status = match (row.get("outcome")?, state.get::<Option<message::Status>>("status")?, &detail) {
            (0, ..) if message.is_nil() => ContactStatus::Pending,
            (0, Some(status), Some(detail)) => ContactStatus::of_message(status, detail),
            // Retention has deleted the message: it was delivered.
            (0, ..) => ContactStatus::Delivered,
            (outcome, ..) => number(ContactStatus::from_number, CONTACTS, "outcome", outcome)?,
        };
        let ended = matches!(status, ContactStatus::Delivered | ContactStatus::Failed | ContactStatus::Skipped);
        let failed = matches!(status, ContactStatus::Failed | ContactStatus::Skipped);
        let cost = detail.as_ref().and_then(|d| d.cost).and_then(|c| c.fee.checked_add(c.provider));
        let (own_time, changed_at): (Option<Timestamp>, _) = (row.get("processed_at")?, row.get("changed_at")?);
        Ok(Self {
            id: row.get("id")?,
            recipient: Recipient { kind: row.get("kind")?, identifier: row.get("recipient")? },
            status,
            variables: row.json("variables")?,
            channel: state.get("channel")?,
            message: (!message.is_nil()).then(|| MessageId::from_uuid(message)),
            failure: own.or(detail.and_then(|d| d.failure)).filter(|_| failed),
            cost,
            processed_at: own_time.or(changed_at).filter(|_| ended),
        })
    }
}

impl Record for NewBroadcastContact {
    const TABLE: &'static str = CONTACTS;

    fn read(row: &Columns<'_>) -> Result<Self> {
        let recipient = Recipient { kind: row.get("kind")?, identifier: row.get("recipient")? };
        Ok(Self { id: row.get("id")?, recipient, variables: row.json("variables")? })
    }
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
