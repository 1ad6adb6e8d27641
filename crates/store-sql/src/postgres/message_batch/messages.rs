//! Rows of new messages.

use nuncio_domain::Recipient;
use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::super::records::Records;
use super::super::session::Params;
use super::{PgResult, Session, states};
use crate::message_batch::{MessageInsert, Prepared, StateWrite};
use crate::row::FixedRow;

pub(super) const INSERT: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    SELECT tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request
    FROM unnest($1::message_row[])";

/// As [`INSERT`], with the addresses as they are in the database by now.
pub(super) const INSERT_FOUND: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    SELECT u.tenant_id, u.id, u.direction, u.message_type, u.sender_id, a.id, u.recipient,
        u.sent_from, u.idempotency_key, u.spooled, u.request
    FROM unnest($1::message_row[]) u
    LEFT JOIN addresses a ON a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier";

/// Inserts messages and their states.
pub(super) async fn insert(session: &Session, new: &[MessageInsert<'_>], states: &[StateWrite<'_>]) -> PgResult<()> {
    let records = records(new, |m| (&m.encoded.fixed, Some(m.address), None));
    insert_both(session, (&session.statements.insert_messages, &[&records]), states).await
}

/// Inserts messages and their states, with the addresses that the database has for their recipients.
pub(super) async fn insert_found(session: &Session, all: &[&Prepared], states: &[StateWrite<'_>]) -> PgResult<()> {
    let records = records(all, |p| (&p.encoded.fixed, None, Some(&p.item.recipient)));
    insert_both(session, (&session.statements.insert_found_messages, &[&records]), states).await
}

async fn insert_both(session: &Session, (insert, params): (&Statement, &Params<'_>), states: &[StateWrite<'_>]) -> PgResult<()> {
    let messages = session.execute(!states.is_empty(), insert, params);
    let (messages, states) = tokio::join!(messages, states::insert(session, states));
    messages.and(states).map(drop)
}

/// The type `message_row`: the columns of a message, with its address or what finds it.
fn records<T: Sync>(rows: &[T], columns: impl Fn(&T) -> (&FixedRow, Option<Uuid>, Option<&Recipient>) + Sync) -> impl ToSql + Sync {
    Records::new(rows, move |row, fields| {
        let (fixed, address, recipient) = columns(row);
        fields.write(&[
            &fixed.tenant_id,
            &fixed.id,
            &fixed.direction,
            &fixed.message_type,
            &fixed.sender_id,
            &address,
            &recipient.map(|r| r.kind.number()),
            &recipient.map(|r| r.identifier.as_str()),
            &fixed.recipient,
            &fixed.sent_from,
            &fixed.idempotency_key,
            &fixed.spooled,
            &fixed.request,
        ])
    })
}
