//! Idempotency keys of new messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, limits};
use nuncio_store::{Accepted, Idempotency, Result, StoreError};
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use super::super::batch_error::BatchError;
use super::super::session::{Params, failed};
use super::{PgResult, Session, column};
use crate::message_batch::Prepared;

pub(super) const INSERT: &str = r"
    INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[])
    ON CONFLICT DO NOTHING
    RETURNING resource_id";

/// Fails if a key is taken.
pub(super) const INSERT_FREE: &str = r"
    INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[])";

pub(super) const FIND: &str = r"
    SELECT k.tenant_id, k.operation, k.key, k.resource_id, k.fingerprint
    FROM unnest($1::bigint[], $2::smallint[], $3::text[]) AS u (tenant_id, operation, key)
    JOIN idempotency_keys k ON k.tenant_id = u.tenant_id AND k.operation = u.operation AND k.key = u.key";

/// Releases the keys of messages that were not written after all.
pub(super) const DELETE: &str = r"
    DELETE FROM idempotency_keys k
    USING unnest($1::bigint[], $2::smallint[], $3::text[]) AS u (tenant_id, operation, key)
    WHERE k.tenant_id = u.tenant_id
      AND k.operation = u.operation
      AND k.key = u.key";

/// Tenant, operation and key.
type Key<'a> = (i64, i16, &'a str);

/// A key with the message that claims it.
pub(super) type Claim<'a> = (Key<'a>, &'a Prepared, &'a Idempotency);

fn key_of<'a>(prepared: &'a Prepared, idempotency: &'a Idempotency) -> Key<'a> {
    (prepared.item.message.tenant.0, idempotency.operation.number(), &idempotency.key)
}

pub(super) fn claim_of(prepared: &Prepared) -> Option<Claim<'_>> {
    prepared.item.idempotency.as_ref().map(|idempotency| (key_of(prepared, idempotency), prepared, idempotency))
}

/// Claims the idempotency keys of a batch, in key order. A message whose key is taken is answered with the original.
pub(super) async fn claim(session: &Session, all: &[&Prepared], answers: &mut [Option<Accepted>]) -> Result<(), BatchError> {
    // Of two items with one key the first claims it: the statement may name each key once only.
    let mut claims: BTreeMap<Key<'_>, Claim<'_>> = BTreeMap::new();
    let mut guarded = Vec::new();
    for (n, prepared) in all.iter().enumerate() {
        if answers[n].is_none()
            && let Some(claim @ (key, _, idempotency)) = claim_of(prepared)
        {
            claims.entry(key).or_insert(claim);
            guarded.push((n, key, idempotency));
        }
    }
    if guarded.is_empty() {
        return Ok(());
    }
    let claims: Vec<Claim<'_>> = claims.into_values().collect();
    let won = insert(session, &session.statements.insert_keys, &claims).await.map_err(failed)?;
    let won: HashSet<Uuid> = won.iter().map(|row| row.get(0)).collect();
    let lost: Vec<_> = guarded.into_iter().filter(|(n, ..)| !won.contains(&all[*n].item.message.id.uuid())).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let originals = find(session, &lost).await?;
    for (n, (tenant, operation, key), mine) in lost {
        let Some((id, fingerprint)) = originals.get(&(tenant, operation, key.to_owned())) else {
            return Err(StoreError::Busy("an idempotency key of this batch was purged meanwhile".to_owned()).into());
        };
        let same_request = fingerprint.as_slice() == mine.fingerprint;
        answers[n] = Some(Accepted::Duplicate { original: MessageId::from_uuid(*id), same_request });
    }
    Ok(())
}

/// Claims the keys of messages of which no two have the same; fails if one is taken.
pub(super) async fn insert_free(session: &Session, all: &[&Prepared]) -> PgResult<()> {
    let mut claims: Vec<Claim<'_>> = all.iter().filter_map(|prepared| claim_of(prepared)).collect();
    claims.sort_unstable_by_key(|(key, ..)| *key);
    if claims.is_empty() {
        return Ok(());
    }
    insert(session, &session.statements.insert_free_keys, &claims).await.map(drop)
}

async fn insert(session: &Session, statement: &Statement, claims: &[Claim<'_>]) -> PgResult<Vec<Row>> {
    let params: &Params<'_> = &[
        &column(claims, |((tenant, ..), ..)| *tenant),
        &column(claims, |((_, operation, _), ..)| *operation),
        &column(claims, |((.., key), ..)| *key),
        &column(claims, |(.., idempotency)| idempotency.fingerprint.as_slice()),
        &column(claims, |(_, prepared, _)| prepared.item.message.id.uuid()),
        &column(claims, |(_, prepared, _)| prepared.item.now.plus(limits::IDEMPOTENCY_RETENTION).millis()),
    ];
    session.query(statement, params).await
}

/// The messages that hold the keys of these items, each with the fingerprint of its request.
async fn find(session: &Session, items: &[(usize, Key<'_>, &Idempotency)]) -> Result<HashMap<(i64, i16, String), (Uuid, Vec<u8>)>> {
    let params: &Params<'_> = &[
        &column(items, |(_, (tenant, ..), _)| *tenant),
        &column(items, |(_, (_, operation, _), _)| *operation),
        &column(items, |(_, (.., key), _)| *key),
    ];
    let rows = session.query(&session.statements.find_keys, params).await.map_err(failed)?;
    Ok(rows.iter().map(|row| ((row.get(0), row.get(1), row.get(2)), (row.get(3), row.get(4)))).collect())
}

/// Releases the keys of refused messages.
pub(super) async fn release<'a>(session: &Session, refused: impl Iterator<Item = &'a Prepared>) -> Result<()> {
    let keys: Vec<Key<'_>> = refused.filter_map(|p| Some(key_of(p, p.item.idempotency.as_ref()?))).collect();
    let params: &Params<'_> =
        &[&column(&keys, |(tenant, ..)| *tenant), &column(&keys, |(_, operation, _)| *operation), &column(&keys, |(.., key)| *key)];
    session.execute(!keys.is_empty(), &session.statements.delete_keys, params).await.map_err(failed)?;
    Ok(())
}
