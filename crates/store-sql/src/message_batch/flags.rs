//! Lists of failed and of held messages.

use nuncio_domain::message::{State, Status, Wait};
use uuid::Uuid;

/// A message that enters or leaves the list of failed or of held messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flag {
    pub(crate) tenant: i64,
    pub(crate) kind: i16,
    pub(crate) id: Uuid,
}

/// Whether a message is in the lists of failed and of held messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Flags {
    failed: bool,
    held: bool,
}

impl Flags {
    pub(super) fn of(state: &State) -> Self {
        Self { failed: state.status == Status::Failed, held: matches!(state.wait, Wait::Held { .. }) }
    }

    /// The flags as they are stored, each with whether it is set.
    pub(super) fn each(self) -> [(i16, bool); 2] {
        [(FAILED, self.failed), (HELD, self.held)]
    }
}

/// Messages whose status is `failed`, as `flagged` stores it.
pub(crate) const FAILED: i16 = 1;
/// Messages that are held.
pub(crate) const HELD: i16 = 2;
