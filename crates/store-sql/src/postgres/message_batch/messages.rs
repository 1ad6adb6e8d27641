//! Rows of new messages.

use super::super::session::Params;
use super::states::StateColumns;
use super::{PgResult, Session, column};
use crate::message_batch::{MessageInsert, StateWrite};

pub(super) const INSERT: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::uuid[], $6::uuid[],
        $7::text[], $8::text[], $9::text[], $10::int[], $11::text[])";

/// Inserts messages and their states.
pub(super) async fn insert(session: &Session, new: &[MessageInsert<'_>], states: &[StateWrite<'_>]) -> PgResult<()> {
    let params: &Params<'_> = &[
        &column(new, |m| m.encoded.fixed.tenant_id),
        &column(new, |m| m.encoded.fixed.id),
        &column(new, |m| m.encoded.fixed.direction),
        &column(new, |m| m.encoded.fixed.message_type),
        &column(new, |m| m.encoded.fixed.sender_id),
        &column(new, |m| m.address),
        &column(new, |m| m.encoded.fixed.recipient.as_str()),
        &column(new, |m| m.encoded.fixed.sent_from.as_str()),
        &column(new, |m| m.encoded.fixed.idempotency_key.as_deref()),
        &column(new, |m| m.encoded.fixed.spooled),
        &column(new, |m| m.encoded.fixed.request.as_str()),
    ];
    let columns = StateColumns::new(states);
    let columns = columns.params();
    let (s, any) = (&session.statements, !new.is_empty());
    let (messages, rows) = tokio::join!(session.execute(any, &s.insert_messages, params), session.execute(any, &s.insert_states, &columns));
    messages.and(rows).map(drop)
}
