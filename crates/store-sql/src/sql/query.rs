//! Parts shared by many queries.

use nuncio_domain::limits;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_store::Result;
use sqlx::{QueryBuilder, Row as _};
use uuid::Uuid;

use super::{Db, Record, SqlTx};
use crate::SqlxResult as _;

/// Writes a condition, without `AND` before it.
pub(crate) type Condition = Box<dyn Fn(&mut QueryBuilder<Db>) + Send + Sync>;

/// A list of which one page is read.
pub(super) struct List<'a> {
    /// What is selected; the id among it under the name `id`.
    pub(super) columns: &'a str,
    /// The table, with its alias and what `streams` need of others.
    pub(super) table: &'static str,
    /// The id column.
    pub(super) id: &'static str,
    /// A table with one row for each of these.
    pub(super) joined: Option<Joined>,
    /// The rows of the list as indexes serve them: each in the order of the id, none in two of them.
    pub(super) streams: Vec<Condition>,
    /// What no index serves.
    pub(super) filter: Option<Condition>,
}

/// What `columns` and `filter` of a list need of another table.
pub(super) struct Joined {
    /// ` JOIN … ON …`.
    pub(super) join: &'static str,
    /// The same id in this table. PostgreSQL does not carry a span of ids over a join, and may read the whole joined table for a rare value.
    pub(super) id: &'static str,
}

impl List<'_> {
    /// The id of the last row to scan of each stream that continues after it.
    fn ends(&self, page: PageRequest) -> QueryBuilder<Db> {
        let rows = i64::from(limits::SCAN_ROWS) / self.streams.len().max(1) as i64;
        let mut query = QueryBuilder::<Db>::new("");
        for (n, stream) in self.streams.iter().enumerate() {
            query.push(if n == 0 { "" } else { " UNION ALL " }).push("SELECT id FROM (SELECT ").push(self.id).push(" AS id");
            self.slice(&mut query, stream, page, None);
            query.push(" LIMIT 1 OFFSET ").push_bind(rows.max(1) - 1).push(") s").push(n.to_string());
        }
        query
    }

    /// Up to `rows` rows that pass the filter.
    fn rows(&self, page: PageRequest, rows: i64) -> QueryBuilder<Db> {
        let mut query = QueryBuilder::<Db>::new("");
        let several = self.streams.len() > 1;
        for (n, stream) in self.streams.iter().enumerate() {
            query.push(if n == 0 { "" } else { " UNION ALL " }).push(if several {
                "SELECT * FROM (SELECT "
            } else {
                r"
                    SELECT "
            });
            query.push(self.columns);
            self.slice(&mut query, stream, page, self.joined.as_ref());
            query.push(" LIMIT ").push_bind(rows);
            if several {
                query.push(") s").push(n.to_string());
            }
        }
        if several {
            query.push(" ORDER BY id DESC LIMIT ").push_bind(rows);
        }
        query
    }

    fn slice(&self, query: &mut QueryBuilder<Db>, stream: &Condition, page: PageRequest, joined: Option<&Joined>) {
        query.push(" FROM ").push(self.table).push(joined.map_or("", |joined| joined.join)).push(" WHERE ");
        stream(query);
        if let Some(before) = page.before {
            query.push(" AND ").push(self.id).push(" < ").push_bind(before);
        }
        if let Some(oldest) = page.oldest {
            query.push(" AND ").push(self.id).push(" >= ").push_bind(oldest);
        }
        if let Some((joined, oldest)) = joined.zip(page.oldest) {
            query.push(" AND ").push(joined.id).push(" >= ").push_bind(oldest);
        }
        if let Some(filter) = &self.filter {
            query.push(" AND ");
            filter(query);
        }
        query.push(" ORDER BY ").push(self.id).push(" DESC");
    }
}

impl SqlTx {
    /// One page, newest first. With a filter it looks at [`limits::SCAN_ROWS`] rows at most: where the search ends without a full page, the
    /// next one continues after the last row scanned.
    pub(super) async fn page<T: Record>(&mut self, mut list: List<'_>, page: PageRequest) -> Result<Page<T>> {
        if list.streams.is_empty() {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let mut last = None;
        if let Some(filter) = list.filter.take() {
            last = self.column(list.ends(page).build()).await?.into_iter().max();
            list.filter = Some(filter);
        }
        let looked_at = PageRequest { oldest: last.or(page.oldest), ..page };
        let mut rows = self.rows(list.rows(looked_at, i64::from(page.limit) + 1).build()).await?;
        // The extra row only shows that there are more.
        let more = rows.len() > page.limit as usize;
        rows.truncate(page.limit as usize);
        let next: Option<Uuid> = rows.last().filter(|_| more).map(|row| row.try_get("id").store()).transpose()?;
        Ok(Page { items: rows.iter().map(T::of).collect::<Result<_>>()?, next: next.or(last) })
    }
}

/// A condition that begins with the tenant's key, followed by `rest`.
pub(super) fn of_tenant(tenant: i64, rest: impl Fn(&mut QueryBuilder<Db>) + Send + Sync + 'static) -> Condition {
    Box::new(move |query| {
        query.push("tenant_id = ").push_bind(tenant);
        rest(query);
    })
}

/// All of `conditions`; nothing for none.
pub(super) fn all(conditions: Vec<Condition>) -> Option<Condition> {
    if conditions.is_empty() {
        return None;
    }
    Some(Box::new(move |query| {
        for (n, condition) in conditions.iter().enumerate() {
            query.push(if n == 0 { "" } else { " AND " });
            condition(query);
        }
    }))
}

/// That `column` has one of these numbers; nothing for none.
pub(super) fn any_of(column: &'static str, numbers: impl IntoIterator<Item = i16>) -> Option<Condition> {
    let numbers: Vec<i16> = numbers.into_iter().collect();
    (!numbers.is_empty()).then(|| {
        Box::new(move |query: &mut QueryBuilder<Db>| {
            query.push(column).push(" IN (");
            let mut list = query.separated(", ");
            for number in &numbers {
                list.push_bind(*number);
            }
            query.push(")");
        }) as Condition
    })
}

/// That `column` is `value`.
pub(super) fn is<T>(column: &'static str, value: T) -> Condition
where
    T: Clone + Send + Sync + 'static + for<'q> sqlx::Encode<'q, Db> + sqlx::Type<Db>,
{
    Box::new(move |query| {
        query.push(column).push(" = ").push_bind(value.clone());
    })
}

/// The pattern of `LIKE` for texts with `part` in them; a backslash escapes.
pub(crate) fn contains(part: &str) -> String {
    let mut pattern = String::from("%");
    for c in part.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern + "%"
}

/// `part` as it is stored within a text of JSON. Quotes at its ends are left out.
pub(crate) fn in_json(part: &str) -> String {
    serde_json::Value::from(part).to_string().trim_matches('"').to_owned()
}
