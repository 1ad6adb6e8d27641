//! Rows of new messages.

use tokio_postgres::Statement;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::super::session::Params;
use super::states::StateColumns;
use super::{PgResult, Session, column};
use crate::message_batch::{MessageInsert, Prepared, StateWrite};
use crate::row::FixedRow;

pub(super) const INSERT: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::uuid[], $6::uuid[],
        $7::text[], $8::text[], $9::text[], $10::int[], $11::text[])";

/// As [`INSERT`], with the addresses as they are in the database by now.
pub(super) const INSERT_FOUND: &str = r"
    INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id, recipient,
        sent_from, idempotency_key, spooled, request)
    SELECT u.tenant_id, u.id, u.direction, u.message_type, u.sender_id, a.id, u.recipient,
        u.sent_from, u.idempotency_key, u.spooled, u.request
    FROM unnest($1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::uuid[], $6::smallint[], $7::text[],
        $8::text[], $9::text[], $10::text[], $11::int[], $12::text[])
      AS u (tenant_id, id, direction, message_type, sender_id, kind, identifier,
        recipient, sent_from, idempotency_key, spooled, request)
    LEFT JOIN addresses a ON a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier";

/// Inserts messages and their states.
pub(super) async fn insert(session: &Session, new: &[MessageInsert<'_>], states: &[StateWrite<'_>]) -> PgResult<()> {
    let columns = MessageColumns::new(new.iter().map(|m| &m.encoded.fixed));
    let addresses = column(new, |m| m.address);
    insert_both(session, (&session.statements.insert_messages, &columns.params(&[&addresses])), states).await
}

/// Inserts messages and their states, with the addresses that the database has for their recipients.
pub(super) async fn insert_found(session: &Session, all: &[&Prepared], states: &[StateWrite<'_>]) -> PgResult<()> {
    let columns = MessageColumns::new(all.iter().map(|p| &p.encoded.fixed));
    let kinds = column(all, |p| p.item.recipient.kind.number());
    let identifiers = column(all, |p| p.item.recipient.identifier.as_str());
    insert_both(session, (&session.statements.insert_found_messages, &columns.params(&[&kinds, &identifiers])), states).await
}

async fn insert_both(session: &Session, (insert, params): (&Statement, &Params<'_>), states: &[StateWrite<'_>]) -> PgResult<()> {
    let state_columns = StateColumns::new(states);
    let (columns, any) = (state_columns.params(), !states.is_empty());
    let (messages, rows) =
        tokio::join!(session.execute(any, insert, params), session.execute(any, &session.statements.insert_states, &columns));
    messages.and(rows).map(drop)
}

/// The values of messages, column by column.
struct MessageColumns<'a> {
    keys: (Vec<i64>, Vec<Uuid>),
    kinds: (Vec<i16>, Vec<i16>),
    senders: Vec<Uuid>,
    names: (Vec<&'a str>, Vec<&'a str>),
    idempotency_keys: Vec<Option<&'a str>>,
    spooled: Vec<i32>,
    requests: Vec<&'a str>,
}

impl<'a> MessageColumns<'a> {
    fn new(rows: impl Iterator<Item = &'a FixedRow>) -> Self {
        let rows: Vec<&FixedRow> = rows.collect();
        Self {
            keys: (column(&rows, |r| r.tenant_id), column(&rows, |r| r.id)),
            kinds: (column(&rows, |r| r.direction), column(&rows, |r| r.message_type)),
            senders: column(&rows, |r| r.sender_id),
            names: (column(&rows, |r| r.recipient.as_str()), column(&rows, |r| r.sent_from.as_str())),
            idempotency_keys: column(&rows, |r| r.idempotency_key.as_deref()),
            spooled: column(&rows, |r| r.spooled),
            requests: column(&rows, |r| r.request.as_str()),
        }
    }

    /// With what names the address of the recipient.
    fn params<'p>(&'p self, address: &[&'p (dyn ToSql + Sync)]) -> Vec<&'p (dyn ToSql + Sync)> {
        let mut params: Vec<&'p (dyn ToSql + Sync)> = vec![&self.keys.0, &self.keys.1, &self.kinds.0, &self.kinds.1, &self.senders];
        params.extend(address);
        let rest: [&'p (dyn ToSql + Sync); 5] = [&self.names.0, &self.names.1, &self.idempotency_keys, &self.spooled, &self.requests];
        params.extend(rest);
        params
    }
}
