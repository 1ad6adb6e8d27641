//! What all lists have in common.

use nuncio_domain::page::PageRequest;
use nuncio_domain::{Error, FieldError, Result, TenantId, Timestamp, address, limits};
use uuid::Uuid;

use crate::Core;

/// A page, and the cursor of the next one.
pub type Listed<T> = (Vec<T>, Option<String>);

/// The page size that is asked for.
pub(crate) fn limit(asked: Option<u32>, errors: &mut Vec<FieldError>) -> u32 {
    let limit = asked.unwrap_or(limits::PAGE_DEFAULT);
    if !(1..=limits::PAGE_MAX).contains(&limit) {
        errors.push(FieldError::new("query.limit", format!("is {limit}; must be a whole number from 1 to {}", limits::PAGE_MAX)));
    }
    limit
}

/// Comma-joined words of an enumeration.
pub(crate) fn words<T: Copy + std::fmt::Display>(
    text: Option<&str>,
    path: &str,
    parse: fn(&str) -> Option<T>,
    all: &[T],
    errors: &mut Vec<FieldError>,
) -> Vec<T> {
    let Some(text) = text else { return Vec::new() };
    let mut found = Vec::new();
    for word in text.split(',') {
        match parse(word) {
            Some(value) => found.push(value),
            None => {
                let known = all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let shown: String = word.chars().take(64).collect();
                errors.push(FieldError::new(path, format!("{shown:?} is not one of {known}")));
            }
        }
    }
    found
}

/// A moment in a query.
pub(crate) fn time(text: Option<&str>, path: &str, errors: &mut Vec<FieldError>) -> Option<Timestamp> {
    match Timestamp::parse(text?) {
        Ok(at) => Some(at),
        Err(error) => {
            errors.push(FieldError::new(path, error.to_string()));
            None
        }
    }
}

/// A country (ISO 3166-1 alpha-2) that there are phone numbers of, in upper case.
pub(crate) fn country(text: &str, path: &str, errors: &mut Vec<FieldError>) -> String {
    let upper = text.to_ascii_uppercase();
    if !address::is_country(&upper) {
        let shown: String = text.chars().take(64).collect();
        errors.push(FieldError::new(path, format!("{shown:?} is no ISO 3166-1 country code of two letters such as ES")));
    }
    upper
}

/// A phone number in a query: a plus sign that was not percent-encoded arrives as a space.
pub(crate) fn phone(text: &str) -> String {
    text.strip_prefix(' ').map_or_else(|| text.to_owned(), |digits| format!("+{digits}"))
}

impl Core {
    /// Which slice of a list is wanted. `scope` names the operation and its filters; a cursor of another scope is a 400.
    pub(crate) fn page(&self, tenant: TenantId, scope: &str, limit: u32, cursor: Option<&str>) -> Result<PageRequest> {
        let before = cursor.map(|c| self.cursors().read(tenant, scope, c)).transpose()?;
        Ok(PageRequest { limit, before: before.map(Uuid::from_bytes) })
    }

    /// The same for a list without filters of its own.
    pub(crate) fn plain_page(&self, tenant: TenantId, scope: &str, asked: Option<u32>, cursor: Option<&str>) -> Result<PageRequest> {
        let mut errors = Vec::new();
        let limit = limit(asked, &mut errors);
        if errors.is_empty() { self.page(tenant, scope, limit, cursor) } else { Err(Error::invalid(errors)) }
    }

    /// The `nextCursor` of a page whose last row is `next`.
    pub(crate) fn next_cursor(&self, tenant: TenantId, scope: &str, next: Option<Uuid>) -> Option<String> {
        next.map(|id| self.cursors().make(tenant, scope, *id.as_bytes()))
    }
}
