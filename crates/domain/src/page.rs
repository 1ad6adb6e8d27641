//! Pages of a list, newest first, by keyset.

use uuid::Uuid;

use crate::{id::uuid_floor, time::Timestamp};

/// A request for one page of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// Items per page, 1 to 100.
    pub limit: u32,
    /// Only items older than this id.
    pub before: Option<Uuid>,
    /// Only this id and newer ones.
    pub oldest: Option<Uuid>,
}

impl PageRequest {
    /// Requests the newest items.
    pub const fn newest(limit: u32) -> Self {
        Self::older(limit, None)
    }

    /// Requests the newest items older than `before`.
    pub const fn older(limit: u32, before: Option<Uuid>) -> Self {
        Self { limit, before, oldest: None }
    }

    /// Restricts the request to items created at `since` or later and before `until`. Ids start with their time, so a time range is an id
    /// range.
    #[must_use]
    pub fn within(mut self, since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        self.oldest = since.map(uuid_floor);
        self.before = self.before.into_iter().chain(until.map(uuid_floor)).min();
        self
    }
}

/// One page of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Newest first; at most `limit`.
    pub items: Vec<T>,
    /// The id to continue after; `None` on the last page. Usually the id of the last item, unless the scan limit ended the search at a row
    /// that does not match.
    pub next: Option<Uuid>,
}
