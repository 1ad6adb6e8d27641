//! Addresses and contacts of the recipients of new messages.

use std::collections::{BTreeMap, HashMap};

use nuncio_domain::id::Id as _;
use nuncio_store::{Accept, Result};
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::super::records::Records;
use super::super::session::Params;
use super::{PgResult, Session, column};
use crate::message_batch::{MessageInsert, Prepared};

/// An unknown recipient may be one who was erased, and a known email address (kind 2) one that was erased in another case: their suppressions
/// are stored under a mark. The last column is 0 without such, 1 with some, and 2 if one of them applies. Senders are compared by `OR`, which
/// is one look into the index; `IN` would be two. Without `OFFSET 0` PostgreSQL would read all suppressions into a hash table.
pub(super) const FIND: &str = r"
    SELECT u.ordinality, a.id, a.contact_id,
        EXISTS (
            SELECT 1
            FROM suppressions s
            WHERE s.tenant_id = u.tenant_id
              AND s.kind = u.kind
              AND s.identifier = u.folded
              AND (s.sender_id = '00000000-0000-0000-0000-000000000000' OR s.sender_id = u.sender_id)
        ),
        CASE
            WHEN a.id IS NOT NULL AND u.kind <> 2 THEN 0
            WHEN NOT EXISTS (
                SELECT 1
                FROM suppressions s
                WHERE s.tenant_id = u.tenant_id AND s.kind = u.kind AND s.identifier = u.mark
                OFFSET 0
            ) THEN 0
            WHEN NOT EXISTS (
                SELECT 1
                FROM suppressions s
                WHERE s.tenant_id = u.tenant_id
                  AND s.kind = u.kind
                  AND s.identifier = u.mark
                  AND (s.sender_id = '00000000-0000-0000-0000-000000000000' OR s.sender_id = u.sender_id)
            ) THEN 1
            ELSE 2
        END
    FROM unnest($1::recipient_row[]) WITH ORDINALITY u
    LEFT JOIN addresses a ON a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier";

/// An address that another node has inserted meanwhile is a conflict; the batch then runs again.
pub(super) const INSERT_ADDRESSES: &str = r"
    INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
    SELECT tenant_id, id, kind, identifier, contact_id, at
    FROM unnest($1::recipient_row[])";

pub(super) const INSERT_CONTACTS: &str = r"
    INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
    SELECT tenant_id, contact_id, country, at, at
    FROM unnest($1::recipient_row[])";

/// Inserts the addresses of recipients that are new. One that another node inserts meanwhile is a conflict.
pub(super) const INSERT_UNKNOWN_ADDRESSES: &str = r"
    INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
    SELECT u.tenant_id, u.id, u.kind, u.identifier, u.contact_id, u.at
    FROM unnest($1::recipient_row[]) u
    WHERE NOT EXISTS (
        SELECT 1
        FROM addresses a
        WHERE a.tenant_id = u.tenant_id AND a.kind = u.kind AND a.identifier = u.identifier
    )";

/// Inserts the contacts of the addresses that [`INSERT_UNKNOWN_ADDRESSES`] inserted.
pub(super) const INSERT_UNKNOWN_CONTACTS: &str = r"
    INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
    SELECT u.tenant_id, u.contact_id, u.country, u.at, u.at
    FROM unnest($1::recipient_row[]) u
    JOIN addresses a ON a.tenant_id = u.tenant_id AND a.id = u.id";

/// Restores the opt-outs of an erased person who is known again.
pub(super) const RESTORE_SUPPRESSIONS: &str = r"
    UPDATE suppressions s
    SET identifier = u.identifier
    FROM unnest($1::bigint[], $2::smallint[], $3::text[], $4::text[])
      AS u (tenant_id, kind, identifier, mark)
    WHERE s.tenant_id = u.tenant_id
      AND s.kind = u.kind
      AND s.identifier = u.mark
      AND NOT EXISTS (
          SELECT 1
          FROM suppressions o
          WHERE o.tenant_id = s.tenant_id
            AND o.kind = s.kind
            AND o.identifier = u.identifier
            AND o.sender_id = s.sender_id
            AND o.reason = s.reason
      )";

/// What the database knows of the recipient of an item.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Found {
    /// Address and contact.
    pub(super) known: Option<(Uuid, Uuid)>,
    /// The recipient was erased and has suppressions under its mark.
    pub(super) marked: bool,
    pub(super) suppressed: bool,
}

/// Looks up the recipient of each item.
pub(super) async fn find(session: &Session, prepared: &[&Prepared]) -> PgResult<Vec<Found>> {
    if prepared.is_empty() {
        return Ok(Vec::new());
    }
    let rows = session.query(&session.statements.find_recipients, &[&records(prepared)]).await?;
    let mut found = vec![Found::default(); prepared.len()];
    for row in rows {
        let (address, contact, marks): (Option<Uuid>, Option<Uuid>, i32) = (row.get(1), row.get(2), row.get(4));
        found[row.get::<_, i64>(0) as usize - 1] =
            Found { known: address.zip(contact), marked: marks > 0, suppressed: row.get(3) || marks == 2 };
    }
    Ok(found)
}

/// The messages to insert: with the address of their recipient, and failed if the recipient is suppressed.
pub(super) fn message_inserts<'a>(open: &[(&'a Prepared, Found)]) -> Result<Vec<MessageInsert<'a>>> {
    let new = new_recipients(open).into_iter();
    let new: HashMap<_, _> = new.map(|(p, _)| (key_of(p), (p.item.new_address.uuid(), p.item.new_contact.uuid()))).collect();
    open.iter()
        .map(|(prepared, found)| prepared.to_insert(found.suppressed, found.known.unwrap_or_else(|| new[&key_of(prepared)])))
        .collect()
}

/// The first item of each unknown recipient, in key order.
pub(super) fn new_recipients<'a>(open: &[(&'a Prepared, Found)]) -> Vec<(&'a Prepared, Found)> {
    let mut unique: BTreeMap<_, (&Prepared, Found)> = BTreeMap::new();
    for (prepared, found) in open.iter().filter(|(_, found)| found.known.is_none()) {
        unique.entry(key_of(prepared)).or_insert((prepared, *found));
    }
    unique.into_values().collect()
}

/// The first item of each recipient, in key order.
fn each<'a>(all: &[&'a Prepared]) -> Vec<&'a Prepared> {
    let mut unique: BTreeMap<_, &Prepared> = BTreeMap::new();
    for prepared in all {
        unique.entry(key_of(prepared)).or_insert(prepared);
    }
    unique.into_values().collect()
}

/// Tenant, kind and identifier.
fn key_of(prepared: &Prepared) -> (i64, i16, &str) {
    let recipient = &prepared.item.recipient;
    (prepared.item.message.tenant.0, recipient.kind.number(), &recipient.identifier)
}

/// Inserts the addresses and contacts of new recipients.
pub(super) async fn insert(session: &Session, new: &[(&Prepared, Found)]) -> PgResult<()> {
    let marked: Vec<&Prepared> = new.iter().filter(|(_, found)| found.marked).map(|(prepared, _)| *prepared).collect();
    let all = column(new, |(prepared, _)| *prepared);
    let (s, any, records) = (&session.statements, !new.is_empty(), records(&all));
    let params: &Params<'_> = &[&records];
    let (first, second, third) = tokio::join!(
        session.execute(any, &s.insert_addresses, params),
        session.execute(any, &s.insert_contacts, params),
        restore_suppressions(session, &marked)
    );
    first.and(second).and(third).map(drop)
}

/// Inserts the addresses and contacts of those recipients that are unknown.
pub(super) async fn insert_unknown(session: &Session, all: &[&Prepared]) -> PgResult<()> {
    let each = each(all);
    let (s, records) = (&session.statements, records(&each));
    let params: &Params<'_> = &[&records];
    let (first, second) =
        tokio::join!(session.execute(true, &s.insert_unknown_addresses, params), session.execute(true, &s.insert_unknown_contacts, params));
    first.and(second).map(drop)
}

/// The type `recipient_row`: what finds a recipient, and the address and the contact that it gets if it has none.
pub(super) fn records(new: &[&Prepared]) -> impl ToSql + Sync {
    Records::new(new, |prepared, fields| {
        let Accept { message, recipient, new_address, new_contact, country, now, mark, epoch, .. } = &prepared.item;
        fields.write(&[
            &message.tenant.0,
            &new_address.uuid(),
            &recipient.kind.number(),
            &recipient.identifier,
            &new_contact.uuid(),
            &country.as_str(),
            &now.millis(),
            &message.sender.uuid(),
            mark,
            epoch,
            &&*recipient.folded(),
        ])
    })
}

async fn restore_suppressions(session: &Session, marked: &[&Prepared]) -> PgResult<u64> {
    let params: &Params<'_> = &[
        &column(marked, |p| p.item.message.tenant.0),
        &column(marked, |p| p.item.recipient.kind.number()),
        &column(marked, |p| p.item.recipient.folded()),
        &column(marked, |p| p.item.mark.as_str()),
    ];
    session.execute(!marked.is_empty(), &session.statements.restore_suppressions, params).await
}
