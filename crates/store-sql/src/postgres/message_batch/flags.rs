//! Lists of failed and of held messages.

use tokio_postgres::Statement;

use super::super::session::Params;
use super::{PgResult, Session, column};
use crate::message_batch::Flag;

pub(super) const INSERT: &str = r"
    INSERT INTO flagged (tenant_id, kind, id)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::uuid[])
    ON CONFLICT DO NOTHING";

pub(super) const DELETE: &str = r"
    DELETE FROM flagged f
    USING unnest($1::bigint[], $2::smallint[], $3::uuid[]) AS u (tenant_id, kind, id)
    WHERE f.tenant_id = u.tenant_id AND f.kind = u.kind AND f.id = u.id";

/// Runs one of the two statements.
pub(super) async fn write(session: &Session, statement: &Statement, flags: &[Flag]) -> PgResult<u64> {
    let params: &Params<'_> = &[&column(flags, |f| f.tenant), &column(flags, |f| f.kind), &column(flags, |f| f.id)];
    session.execute(!flags.is_empty(), statement, params).await
}
