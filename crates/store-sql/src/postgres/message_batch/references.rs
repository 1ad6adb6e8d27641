//! Message ids of providers, and receipts as providers sent them.

use std::collections::HashMap;

use nuncio_domain::id::Id as _;
use nuncio_store::{RawReceipt, Result};
use uuid::Uuid;

use super::super::records::Records;
use super::super::session::{Params, failed};
use super::{PgResult, Session, column};
use crate::cache::Cache;
use crate::message_batch::{Reference, ReferencedPart, ResolvedTransition, TransitionOp, by_reference, with_messages};

pub(super) const FIND: &str = r#"
    SELECT r.tenant_id, r.connection_id, r.reference, r.message_id, r.attempt, r.part
    FROM unnest($1::bigint[], $2::uuid[], $3::text[]) AS asked (tenant_id, connection_id, reference)
    JOIN provider_refs r ON r.tenant_id = asked.tenant_id AND r.connection_id = asked.connection_id
        AND r.reference = asked.reference COLLATE "C""#;

pub(super) const INSERT: &str = r"
    INSERT INTO provider_refs (tenant_id, connection_id, reference, message_id, attempt, part)
    SELECT tenant_id, connection_id, reference, message_id, attempt, part
    FROM unnest($1::reference_row[])
    ON CONFLICT (tenant_id, connection_id, reference) DO UPDATE SET
        message_id = excluded.message_id,
        attempt = excluded.attempt,
        part = excluded.part
    WHERE provider_refs.message_id < excluded.message_id";

pub(super) const INSERT_RECEIPTS: &str = r"
    INSERT INTO receipts (tenant_id, message_id, id, connection_id, reference, raw)
    SELECT tenant_id, message_id, id, connection_id, reference, raw
    FROM unnest($1::receipt_row[])
    ON CONFLICT DO NOTHING";

/// The transitions of a batch, with the messages that receipts name. Those that the cache does not know are read in one query.
pub(super) async fn resolve<'a>(session: &Session, cache: &Cache, ops: &'a [TransitionOp]) -> Result<Vec<ResolvedTransition<'a>>> {
    let asked: Vec<_> = ops
        .iter()
        .filter_map(|op| Some((op.item.tenant.0, by_reference(&op.item)?)))
        .filter(|(tenant, receipt)| cache.reference(*tenant, receipt).is_none())
        .collect();
    let mut known: HashMap<(i64, Uuid, String), ReferencedPart> = HashMap::new();
    if !asked.is_empty() {
        let params: &Params<'_> = &[
            &column(&asked, |(tenant, _)| *tenant),
            &column(&asked, |(_, receipt)| receipt.connection.uuid()),
            &column(&asked, |(_, receipt)| receipt.reference.as_str()),
        ];
        let rows = session.query(&session.statements.find_references, params).await.map_err(failed)?;
        known.extend(rows.iter().map(|row| ((row.get(0), row.get(1), row.get(2)), (row.get(3), row.get(4), row.get(5)))));
    }
    let find = |tenant, receipt: &RawReceipt| {
        cache.reference(tenant, receipt).or_else(|| known.get(&(tenant, receipt.connection.uuid(), receipt.reference.clone())).copied())
    };
    with_messages(ops, |tenant, receipt| Ok(find(tenant, receipt)))
}

pub(super) async fn insert(session: &Session, references: &[Reference<'_>]) -> PgResult<u64> {
    let records =
        Records::new(references, |r, fields| fields.write(&[&r.tenant, &r.connection, &r.reference, &r.message, &r.attempt, &r.part]));
    session.execute(!references.is_empty(), &session.statements.insert_references, &[&records]).await
}

/// Inserts receipts, each with its tenant and message.
pub(super) async fn insert_receipts(session: &Session, receipts: &[(i64, Uuid, &RawReceipt)]) -> PgResult<u64> {
    let records = Records::new(receipts, |(tenant, message, r), fields| {
        fields.write(&[tenant, message, &r.id.uuid(), &r.connection.uuid(), &r.reference, &r.raw])
    });
    session.execute(!receipts.is_empty(), &session.statements.insert_receipts, &[&records]).await
}
