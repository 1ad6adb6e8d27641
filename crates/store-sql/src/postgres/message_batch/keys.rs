//! Idempotency keys of new messages.

use std::collections::{BTreeMap, HashMap, HashSet};

use nuncio_domain::id::Id as _;
use nuncio_domain::{MessageId, limits};
use nuncio_store::{Accepted, Idempotency, Result};
use uuid::Uuid;

use super::super::batch_error::BatchError;
use super::super::session::{Params, failed};
use super::{Session, column};
use crate::message_batch::Prepared;

pub(super) const INSERT: &str = r"
    INSERT INTO idempotency_keys (tenant_id, operation, key, fingerprint, resource_id, check_at)
    SELECT *
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::bytea[], $5::uuid[], $6::bigint[])
    ON CONFLICT DO NOTHING
    RETURNING resource_id";

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

fn key_of<'a>(prepared: &'a Prepared, idempotency: &'a Idempotency) -> Key<'a> {
    (prepared.item.message.tenant.0, idempotency.operation.number(), &idempotency.key)
}

/// Claims the idempotency keys of a batch, in key order. A message whose key is taken is answered with the original.
pub(super) async fn claim(session: &Session, all: &[&Prepared], answers: &mut [Option<Accepted>]) -> Result<(), BatchError> {
    // Of two items with one key the first claims it: the statement may name each key once only.
    let mut keys: BTreeMap<Key<'_>, (&Prepared, &Idempotency)> = BTreeMap::new();
    let mut guarded = Vec::new();
    for (n, prepared) in all.iter().enumerate() {
        if answers[n].is_none()
            && let Some(idempotency) = &prepared.item.idempotency
        {
            let key = key_of(prepared, idempotency);
            keys.entry(key).or_insert((prepared, idempotency));
            guarded.push((n, key, idempotency));
        }
    }
    if guarded.is_empty() {
        return Ok(());
    }
    let won = insert(session, &keys).await?;
    let lost: Vec<_> = guarded.into_iter().filter(|(n, ..)| !won.contains(&all[*n].item.message.id.uuid())).collect();
    if lost.is_empty() {
        return Ok(());
    }
    let originals = find(session, &lost).await?;
    for (n, (tenant, operation, key), mine) in lost {
        if let Some((id, fingerprint)) = originals.get(&(tenant, operation, key.to_owned())) {
            let same_request = fingerprint.as_slice() == mine.fingerprint;
            answers[n] = Some(Accepted::Duplicate { original: MessageId::from_uuid(*id), same_request });
        }
    }
    Ok(())
}

/// Inserts keys; returns the messages that claimed theirs.
async fn insert(session: &Session, keys: &BTreeMap<Key<'_>, (&Prepared, &Idempotency)>) -> Result<HashSet<Uuid>> {
    let keys: Vec<_> = keys.iter().collect();
    let params: &Params<'_> = &[
        &column(&keys, |((tenant, ..), _)| *tenant),
        &column(&keys, |((_, operation, _), _)| *operation),
        &column(&keys, |((.., key), _)| *key),
        &column(&keys, |(_, (_, idempotency))| idempotency.fingerprint.to_vec()),
        &column(&keys, |(_, (prepared, _))| prepared.item.message.id.uuid()),
        &column(&keys, |(_, (prepared, _))| prepared.item.now.plus(limits::IDEMPOTENCY_RETENTION).millis()),
    ];
    let rows = session.query(&session.statements.insert_keys, params).await.map_err(failed)?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
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
