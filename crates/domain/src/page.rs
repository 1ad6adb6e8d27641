//! Pages of a list, newest first, by keyset.

use uuid::Uuid;

use crate::id::uuid_floor;
use crate::time::Timestamp;

/// Which slice of a list is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// Items per page, 1 to 100.
    pub limit: u32,
    /// Only items older than the one with this id.
    pub before: Option<Uuid>,
    /// Only the item with this id and newer ones.
    pub oldest: Option<Uuid>,
}

impl PageRequest {
    /// The newest items.
    pub const fn newest(limit: u32) -> Self {
        Self::older(limit, None)
    }

    /// The newest items that are older than `before`.
    pub const fn older(limit: u32, before: Option<Uuid>) -> Self {
        Self { limit, before, oldest: None }
    }

    /// Only items created at `since` or later, and before `until`. Ids begin with their time, so a span of time is a span of ids.
    #[must_use]
    pub fn within(mut self, since: Option<Timestamp>, until: Option<Timestamp>) -> Self {
        self.oldest = since.map(uuid_floor);
        self.before = self.before.into_iter().chain(until.map(uuid_floor)).min();
        self
    }

    /// Whether an item is in the slice, if there is room.
    pub fn admits(&self, id: Uuid) -> bool {
        self.before.is_none_or(|before| id < before) && self.oldest.is_none_or(|oldest| id >= oldest)
    }
}

/// A slice of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Newest first; at most `limit`.
    pub items: Vec<T>,
    /// The id to continue after; `None` on the last page. That of the last item, unless the search ended at a row that is not an item.
    pub next: Option<Uuid>,
}

impl<T> Page<T> {
    /// Makes a page from up to `limit + 1` rows: the surplus row only proves that there is more.
    pub fn from_rows(mut rows: Vec<T>, limit: u32, id: impl Fn(&T) -> Uuid) -> Self {
        let more = rows.len() > limit as usize;
        rows.truncate(limit as usize);
        let next = if more { rows.last().map(id) } else { None };
        Self { items: rows, next }
    }
}
