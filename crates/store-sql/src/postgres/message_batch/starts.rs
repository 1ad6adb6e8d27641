//! Checks whether attempts may start.

use std::collections::BTreeMap;

use nuncio_domain::address::folded;
use nuncio_domain::id::Id as _;
use nuncio_store::Result;
use uuid::Uuid;

use super::super::session::{Params, failed};
use super::{Session, broadcasts, column};
use crate::message_batch::{ResolvedTransition, TransitionBatch};

/// Of messages that are about to be sent, those whose recipient is suppressed.
pub(super) const SUPPRESSED: &str = r"
    SELECT u.tenant_id, u.id
    FROM unnest($1::bigint[], $2::uuid[], $3::text[], $4::smallint[], $5::uuid[])
      AS u (tenant_id, id, recipient, kind, sender_id)
    WHERE EXISTS (
        SELECT 1
        FROM suppressions s
        WHERE s.tenant_id = u.tenant_id
          AND s.identifier = u.recipient
          AND s.kind = u.kind
          AND s.sender_id IN ('00000000-0000-0000-0000-000000000000', u.sender_id)
    )";

/// Notes in `transitions` which of these messages go to a suppressed recipient, and which broadcasts let no attempt of the batch start.
pub(super) async fn check(
    session: &Session,
    transitions: &mut TransitionBatch,
    keys: &[(i64, Uuid)],
    items: &[ResolvedTransition<'_>],
) -> Result<()> {
    let asked: Vec<_> = keys
        .iter()
        .filter_map(|key| {
            let row = &transitions.get(key)?.row;
            let message = row.fixed.as_ref()?;
            let kind = row.state.route.channel.address_kind();
            Some((*key, folded(kind, &message.to).into_owned(), kind.number(), message.sender.uuid()))
        })
        .collect();
    let mut halting: BTreeMap<i64, Vec<Uuid>> = BTreeMap::new();
    transitions.deciding_broadcasts(items).into_iter().for_each(|(tenant, broadcast)| halting.entry(tenant).or_default().push(broadcast));
    let params: &Params<'_> = &[
        &column(&asked, |a| a.0.0),
        &column(&asked, |a| a.0.1),
        &column(&asked, |a| a.1.as_str()),
        &column(&asked, |a| a.2),
        &column(&asked, |a| a.3),
    ];
    let (suppressed, halted) =
        tokio::join!(session.query_if(!asked.is_empty(), &session.statements.suppressed, params), broadcasts::halted(session, halting));
    for row in suppressed.map_err(failed)? {
        transitions.suppress(&(row.get(0), row.get(1)));
    }
    transitions.halt(&halted?);
    Ok(())
}
