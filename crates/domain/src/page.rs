//! Pages of a list, newest first, by keyset.

use uuid::Uuid;

/// Which slice of a list is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PageRequest {
    /// Items per page, 1 to 100.
    pub limit: u32,
    /// Only items older than the one with this id.
    pub before: Option<Uuid>,
}

/// A slice of a list.
#[derive(Clone, Debug)]
pub struct Page<T> {
    /// Newest first; at most `limit`.
    pub items: Vec<T>,
    /// The id to continue after; `None` on the last page. Never set on an empty page.
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
