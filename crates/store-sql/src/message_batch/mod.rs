//! Parts of writing messages in batches that both databases share.

mod broadcasts;
mod flags;
mod insert;
mod queue;
mod references;
mod transitions;
mod writes;

use std::collections::BTreeMap;

use nuncio_domain::TenantId;
use nuncio_store::{MetricDelta, MetricRow};

pub(crate) use crate::cache::ReferencedPart;
pub(crate) use broadcasts::{RecipientUpdate, RecipientUpdates};
pub(crate) use flags::{FAILED, Flag, HELD};
pub(crate) use insert::{AcceptOutcome, EncodedMessage, MessageInsert, Prepared, accept_with_chunks, spool, unspool};
pub(crate) use queue::{
    AcceptOp, BATCH, DeliveriesOp, Limits, MetricsOp, Op, Queue, STEP_WAIT, TransitionOp, answer, closed, fail, log_failure,
    may_be_one_item, push,
};
pub(crate) use references::{Reference, ResolvedTransition, by_reference, with_messages};
pub(crate) use transitions::{LoadedMessage, TransitionBatch, asks_broadcast};
pub(crate) use writes::{StateWrite, Writes};

/// Merges the deltas of each row and sorts them by key, so that two nodes that write the same rows cannot deadlock.
pub(crate) fn folded(deltas: Vec<MetricRow>) -> Vec<MetricRow> {
    let mut rows: BTreeMap<_, MetricDelta> = BTreeMap::new();
    for (tenant, address, channel, delta) in deltas {
        rows.entry((tenant, address, channel)).or_default().add(&delta);
    }
    rows.into_iter().map(|((tenant, address, channel), delta)| (tenant, address, channel, delta)).collect()
}

/// The tenants of a batch, sorted and without duplicates.
pub(crate) fn tenants(items: &[AcceptOp]) -> Vec<TenantId> {
    let mut tenants: Vec<TenantId> = items.iter().map(|op| op.item.item.message.tenant).collect();
    tenants.sort_unstable();
    tenants.dedup();
    tenants
}
