//! Agenda rows, and the lists of failed and of held messages.

use tokio_postgres::Statement;

use super::super::session::Params;
use super::{PgResult, Session, column};
use crate::agenda::{AgendaKey, AgendaRow};
use crate::message_batch::Flag;

pub(super) const INSERT: &str = r"
    INSERT INTO agenda (tenant_id, id, shard, owner, due_at, connection_id, bulk, decide_at, ids)
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::smallint[], $4::bigint[], $5::bigint[], $6::uuid[],
        $7::smallint[], $8::bigint[], $9::bytea[])";

pub(super) const DELETE: &str = r"
    DELETE FROM agenda a
    USING unnest($1::bigint[], $2::bigint[]) AS u (tenant_id, id)
    WHERE a.tenant_id = u.tenant_id AND a.id = u.id";

pub(super) const INSERT_FLAGS: &str = r"
    INSERT INTO flagged (tenant_id, kind, id)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::uuid[])
    ON CONFLICT DO NOTHING";

pub(super) const DELETE_FLAGS: &str = r"
    DELETE FROM flagged f
    USING unnest($1::bigint[], $2::smallint[], $3::uuid[]) AS u (tenant_id, kind, id)
    WHERE f.tenant_id = u.tenant_id AND f.kind = u.kind AND f.id = u.id";

pub(super) async fn insert(session: &Session, rows: &[AgendaRow]) -> PgResult<u64> {
    let params: &Params<'_> = &[
        &column(rows, |r| r.tenant),
        &column(rows, |r| r.id),
        &column(rows, AgendaRow::shard),
        &column(rows, |r| r.owner),
        &column(rows, |r| r.due_at),
        &column(rows, |r| r.connection),
        &column(rows, |r| i16::from(r.bulk)),
        &column(rows, |r| r.decide_at),
        &column(rows, AgendaRow::ids),
    ];
    session.execute(!rows.is_empty(), &session.statements.insert_agenda, params).await
}

pub(super) async fn delete(session: &Session, keys: &[AgendaKey]) -> PgResult<u64> {
    let params: &Params<'_> = &[&column(keys, |key| key.0), &column(keys, |key| key.1)];
    session.execute(!keys.is_empty(), &session.statements.delete_agenda, params).await
}

/// Inserts or deletes flags.
pub(super) async fn write_flags(session: &Session, statement: &Statement, flags: &[Flag]) -> PgResult<u64> {
    let params: &Params<'_> = &[&column(flags, |f| f.tenant), &column(flags, |f| f.kind), &column(flags, |f| f.id)];
    session.execute(!flags.is_empty(), statement, params).await
}
