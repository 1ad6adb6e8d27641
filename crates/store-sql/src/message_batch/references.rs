//! Resolves the message ids of providers to messages.

use std::borrow::Cow;

use nuncio_domain::MessageId;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Step;
use nuncio_store::{RawReceipt, Result, Transition};
use uuid::Uuid;

use super::TransitionOp;
use crate::cache::ReferencedPart;

/// A provider's id for a part of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference<'a> {
    pub(crate) tenant: i64,
    pub(crate) connection: Uuid,
    pub(crate) reference: &'a str,
    pub(crate) message: Uuid,
    pub(crate) attempt: i16,
    pub(crate) part: i16,
}

/// A transition whose message is known.
pub(crate) type ResolvedTransition<'a> = Cow<'a, Transition>;

/// The provider's id by which a transition names its message.
pub(crate) fn by_reference(item: &Transition) -> Option<&RawReceipt> {
    item.raw.as_deref().filter(|receipt| !receipt.reference.is_empty())
}

/// The transitions of a batch, with provider ids resolved by `find`. An id that it does not know has no message.
pub(crate) fn with_messages(
    ops: &[TransitionOp],
    mut find: impl FnMut(i64, &RawReceipt) -> Result<Option<ReferencedPart>>,
) -> Result<Vec<ResolvedTransition<'_>>> {
    let mut named = |op: &'_ TransitionOp| {
        let found = by_reference(&op.item).map(|receipt| find(op.item.tenant.0, receipt)).transpose()?.flatten();
        Ok(found.map(|found| with_message(op.item.clone(), found)))
    };
    ops.iter().map(|op| Ok(named(op)?.map_or(Cow::Borrowed(&op.item), Cow::Owned))).collect()
}

fn with_message(mut item: Transition, (message, made, number): ReferencedPart) -> Transition {
    item.id = Some(MessageId::from_uuid(message));
    if let Step::Receipt { attempt, part, .. } = &mut item.step {
        *attempt = Some(usize::from(made.unsigned_abs()));
        *part = number as u8;
    }
    item
}
