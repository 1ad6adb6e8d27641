//! Rows of message states.

use nuncio_domain::id::Id as _;
use nuncio_store::RawReceipt;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::super::records::Records;
use super::{PgResult, Session};
use crate::message_batch::StateWrite;

pub(super) const INSERT: &str = r"
    INSERT INTO states (tenant_id, id, status, wait, held, due_at, owner, fence, version, revision, expires_at,
        updated_at, channel, connection_id, agenda, provider, detail, history)
    SELECT tenant_id, id, status, wait, held, due_at, owner, fence, version, revision, expires_at,
        updated_at, channel, connection_id, agenda, provider, detail, history
    FROM unnest($1::state_row[])";

/// Leaves a state alone that another node has written meanwhile, and one whose receipt names another message by now.
pub(super) const UPDATE: &str = r#"
    UPDATE states s
    SET status = u.status, wait = u.wait, held = u.held, due_at = u.due_at, owner = u.owner, fence = u.fence,
        version = u.version, revision = u.revision, expires_at = u.expires_at, updated_at = u.updated_at,
        channel = u.channel, connection_id = u.connection_id, agenda = u.agenda, provider = u.provider,
        detail = u.detail, history = u.history
    FROM unnest($1::state_row[]) u
    WHERE s.tenant_id = u.tenant_id
      AND s.id = u.id
      AND s.revision = u.revision - 1
      AND (u.named_by IS NULL OR u.id = (
          SELECT r.message_id
          FROM provider_refs r
          WHERE r.tenant_id = u.tenant_id
            AND r.connection_id = u.named_by
            AND r.reference = u.reference COLLATE "C"
      ))
    RETURNING s.tenant_id, s.id"#;

pub(super) async fn insert(session: &Session, states: &[StateWrite<'_>]) -> PgResult<u64> {
    session.execute(!states.is_empty(), &session.statements.insert_states, &[&records(states, |_| None)]).await
}

/// Updates states, each with the receipt that named its message; returns tenant and message of those written.
pub(super) async fn update<'r>(
    session: &Session,
    states: &[StateWrite<'_>],
    receipt: impl Fn(&StateWrite<'_>) -> Option<&'r RawReceipt> + Sync,
) -> PgResult<Vec<Row>> {
    session.query(&session.statements.update_states, &[&records(states, receipt)]).await
}

/// The type `state_row`.
fn records<'s, 'r>(states: &'s [StateWrite<'_>], receipt: impl Fn(&StateWrite<'_>) -> Option<&'r RawReceipt> + Sync) -> impl ToSql + Sync {
    Records::new(states, move |state, fields| {
        let (row, receipt) = (&state.row, receipt(state));
        fields.write(&[
            &state.tenant,
            &state.id,
            &row.status,
            &row.wait,
            &row.held,
            &row.due_at,
            &row.owner,
            &row.fence,
            &row.version,
            &state.revision,
            &row.expires_at,
            &row.updated_at,
            &row.channel,
            &row.connection_id,
            &state.agenda,
            &row.provider,
            &row.detail,
            &state.history,
            &receipt.map(|r| r.connection.uuid()),
            &receipt.map(|r| r.reference.as_str()),
        ])
    })
}
