//! Receipts as providers sent them.

use nuncio_domain::id::Id as _;
use nuncio_store::RawReceipt;
use uuid::Uuid;

use super::super::session::Params;
use super::{PgResult, Session, column};

pub(super) const INSERT: &str = r"
    INSERT INTO receipts (tenant_id, message_id, id, connection_id, reference, raw)
    SELECT *
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::uuid[], $5::text[], $6::text[])
    ON CONFLICT DO NOTHING";

/// Inserts receipts, each with its tenant and message.
pub(super) async fn insert(session: &Session, receipts: &[(i64, Uuid, &RawReceipt)]) -> PgResult<u64> {
    let params: &Params<'_> = &[
        &column(receipts, |(tenant, ..)| *tenant),
        &column(receipts, |(_, message, _)| *message),
        &column(receipts, |(.., r)| r.id.uuid()),
        &column(receipts, |(.., r)| r.connection.uuid()),
        &column(receipts, |(.., r)| r.reference.as_str()),
        &column(receipts, |(.., r)| r.raw.as_str()),
    ];
    session.execute(!receipts.is_empty(), &session.statements.insert_receipts, params).await
}
