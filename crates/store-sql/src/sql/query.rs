//! Pieces that many queries share.

use nuncio_domain::page::PageRequest;
use nuncio_store::Result;
use sqlx::QueryBuilder;

use super::Db;

/// The rest of a query for one page, newest first: one row more than fits tells whether there is a next.
pub(super) fn newest_first(query: &mut QueryBuilder<Db>, page: PageRequest) {
    newest_first_by(query, "id", page);
}

/// The same by the identifier in this column.
pub(super) fn newest_first_by(query: &mut QueryBuilder<Db>, id: &str, page: PageRequest) {
    if let Some(before) = page.before {
        query.push(format!(" AND {id} < ")).push_bind(before);
    }
    query.push(format!(" ORDER BY {id} DESC LIMIT ")).push_bind(i64::from(page.limit) + 1);
}

/// `clause`, which ends with `IN (`, for these numbers; nothing for none.
pub(super) fn push_any(query: &mut QueryBuilder<Db>, clause: &str, numbers: impl ExactSizeIterator<Item = i16>) {
    if numbers.len() == 0 {
        return;
    }
    query.push(clause);
    let mut list = query.separated(", ");
    for number in numbers {
        list.push_bind(number);
    }
    query.push(")");
}

/// What can be read of rows that nobody asked for by name: one that cannot must not keep the others of all worlds waiting.
pub(super) fn readable<T>(rows: impl Iterator<Item = Result<T>>) -> Vec<T> {
    rows.filter_map(|row| row.inspect_err(|error| tracing::error!(%error, "a row is passed over")).ok()).collect()
}
