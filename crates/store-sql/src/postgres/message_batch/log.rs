//! Rows of the event log.

use super::super::session::Params;
use super::{PgResult, Session, column};
use crate::event_log::LogRow;

/// Increments the position of each tenant's log. Other nodes wait here until the transaction ends, so that positions have no gaps and
/// follow the order of commits.
pub(super) const RAISE_HEADS: &str = r"
    INSERT INTO log_heads AS h (tenant_id, position)
    SELECT u.tenant_id, 1
    FROM unnest($1::bigint[]) AS u (tenant_id)
    ON CONFLICT (tenant_id) DO UPDATE SET position = h.position + 1";

pub(super) const INSERT: &str = r"
    INSERT INTO log (tenant_id, position, batch, recorded_at, entries)
    SELECT u.tenant_id, h.position, u.batch, u.recorded_at, u.entries
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bytea[])
      AS u (tenant_id, batch, recorded_at, entries)
    JOIN log_heads h ON h.tenant_id = u.tenant_id";

/// Appends a row per tenant.
pub(super) async fn append(session: &Session, rows: &[LogRow]) -> PgResult<u64> {
    let tenants = column(rows, |r| r.tenant);
    let params: &Params<'_> = &[&tenants, &column(rows, |r| r.batch), &column(rows, |r| r.recorded_at), &column(rows, LogRow::encode)];
    let (s, any) = (&session.statements, !rows.is_empty());
    let heads: &Params<'_> = &[&tenants];
    let (raised, written) = tokio::join!(session.execute(any, &s.raise_heads, heads), session.execute(any, &s.insert_log, params));
    raised.and(written)
}
