//! Parts of writing messages in batches that both databases share.

mod flags;
mod insert;
mod recipients;
mod references;
mod transitions;
mod writes;

use std::collections::BTreeMap;

use nuncio_domain::id::Id as _;
use nuncio_domain::{AddressId, ContactId, TenantId};
use nuncio_store::{Accepted, DeliveryLog, MetricDelta, MetricRow, Result, StoreError, Transition, Transitioned};
use tokio::sync::oneshot;

pub(crate) use crate::cache::ReferencedPart;
pub(crate) use flags::{FAILED, Flag, HELD};
pub(crate) use insert::{AcceptOutcome, EncodedMessage, MessageInsert, Prepared, unspool};
pub(crate) use recipients::{RecipientUpdate, RecipientUpdates};
pub(crate) use references::{Reference, ResolvedTransition, by_reference, items};
pub(crate) use transitions::{LoadedMessage, TransitionBatch, asks_broadcast};
pub(crate) use writes::{StateWrite, Writes};

/// An item waiting for a batch, with the channel for its answer.
#[derive(Debug)]
pub(crate) struct Op<I, O> {
    pub(crate) item: I,
    pub(crate) reply: oneshot::Sender<Result<O>>,
}

pub(crate) type AcceptOp = Op<Box<Prepared>, Accepted>;
pub(crate) type TransitionOp = Op<Transition, Transitioned>;
pub(crate) type MetricsOp = Op<Vec<MetricRow>, ()>;
pub(crate) type DeliveriesOp = Op<DeliveryLog, bool>;

/// An item that is written in batches.
pub(crate) trait Batched: Sized {
    /// Result of the item in the transaction.
    type Done;
    /// What its caller gets.
    type Answer;

    /// The answer, once the transaction is committed.
    fn into_answer(self, done: Self::Done) -> Self::Answer;
}

impl Batched for Box<Prepared> {
    type Done = AcceptOutcome;
    type Answer = Accepted;

    fn into_answer(self, verdict: AcceptOutcome) -> Accepted {
        match verdict {
            AcceptOutcome::Refused(refusal) => refusal,
            AcceptOutcome::Inserted { replacement, address, contact } => {
                let mut message = replacement.map_or(self.encoded, |encoded| *encoded).message;
                message.address = AddressId::from_uuid(address);
                Accepted::New { message: Box::new(message), contact: ContactId::from_uuid(contact) }
            }
        }
    }
}

impl Batched for Transition {
    type Done = Transitioned;
    type Answer = Transitioned;

    fn into_answer(self, done: Transitioned) -> Transitioned {
        done
    }
}

impl Batched for Vec<MetricRow> {
    type Done = ();
    type Answer = ();

    fn into_answer(self, (): ()) {}
}

impl Batched for DeliveryLog {
    type Done = bool;
    type Answer = bool;

    fn into_answer(self, fence_holds: bool) -> bool {
        fence_holds
    }
}

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

/// A copy of an error, for each item of a batch that failed as a whole.
pub(crate) fn copy_error(error: &StoreError) -> StoreError {
    match error {
        StoreError::Busy(what) => StoreError::Busy(what.clone()),
        StoreError::Unavailable(what) => StoreError::Unavailable(what.clone()),
        StoreError::InDoubt(what) => StoreError::InDoubt(what.clone()),
        StoreError::Corrupt { table, what } => StoreError::Corrupt { table, what: what.clone() },
        StoreError::Conflict(source) => StoreError::Conflict(source.to_string().into()),
        StoreError::Other(source) => StoreError::Other(source.to_string().into()),
    }
}

#[cfg(test)]
mod tests {
    use nuncio_domain::Channel;

    /// The statements map channels to address kinds by number.
    #[test]
    fn the_statements_know_what_identifies_a_recipient_on_each_channel() {
        for source in [include_str!("../sqlite/message_batch/statements.rs"), include_str!("../postgres/message_batch/starts.rs")] {
            let (_, rest) = source.split_once("kind = CASE ").expect("a CASE by channel");
            let (_, rest) = rest.split_once(" WHEN ").expect("a WHEN");
            let (cases, rest) = rest.split_once(" ELSE ").expect("an ELSE");
            let otherwise: i16 = rest.split(' ').next().and_then(|n| n.parse().ok()).expect("a number");
            let cases: Vec<Vec<i16>> =
                cases.split(" WHEN ").map(|case| case.split(" THEN ").map(|n| n.parse().expect("a number")).collect()).collect();
            for channel in Channel::ALL {
                let kind = cases.iter().find(|case| case[0] == channel.number()).map_or(otherwise, |case| case[1]);
                assert_eq!(kind, channel.address_kind().number(), "{channel}");
            }
        }
    }
}
