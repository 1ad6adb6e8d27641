//! Pagination and filters shared by all lists.

use std::collections::BTreeMap;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::{Error, FieldError, Result, TenantId, Timestamp, limits, page::PageRequest};
use uuid::Uuid;

use super::Core;

/// A page, and the cursor of the next one.
pub type Listed<T> = (Vec<T>, Option<String>);

/// Parses the page size.
pub(crate) fn limit(asked: Option<u32>, errors: &mut Vec<FieldError>) -> u32 {
    let limit = asked.unwrap_or(limits::PAGE_DEFAULT);
    if !(1..=limits::PAGE_MAX).contains(&limit) {
        errors.push(FieldError::new("query.limit", format!("is {limit}; must be a whole number from 1 to {}", limits::PAGE_MAX)));
    }
    limit
}

/// Parses comma-separated values of an enumeration. Returns each once, in the order of the enumeration: cursors depend on the values only.
pub(crate) fn words<T: Copy + Ord + std::fmt::Display>(
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
    found.sort_unstable();
    found.dedup();
    found
}

/// Parses one of these names.
pub(crate) fn one_of(text: Option<&str>, all: &[&str], path: &str, errors: &mut Vec<FieldError>) -> Option<String> {
    let text = text?;
    if !all.contains(&text) {
        let shown: String = text.chars().take(64).collect();
        errors.push(FieldError::new(path, format!("{shown:?} is not one of {}", all.join(", "))));
    }
    Some(text.to_owned())
}

/// Parses an id in a query; a malformed one is a field error.
pub(crate) fn id<T: std::str::FromStr>(text: Option<&str>, path: &str, what: &str, errors: &mut Vec<FieldError>) -> Option<T> {
    let text = text?;
    let found = text.parse().ok();
    if found.is_none() {
        errors.push(FieldError::new(path, format!("is {text:?}; must be the id of a {what}")));
    }
    found
}

/// Parses a search text of at most 200 characters.
pub(crate) fn part(text: Option<&str>, path: &str, errors: &mut Vec<FieldError>) -> Option<String> {
    let text = text?;
    let length = text.chars().count();
    if !(1..=200).contains(&length) {
        errors.push(FieldError::new(path, format!("has {length} characters; must have 1 to 200")));
    }
    Some(text.to_owned())
}

/// Parses entries of metadata to look for, at most as many as metadata can have.
pub(crate) fn metadata(asked: &BTreeMap<String, String>, path: &str, errors: &mut Vec<FieldError>) -> BTreeMap<String, String> {
    if asked.len() > limits::METADATA_KEYS {
        errors.push(FieldError::new(path, format!("has {} entries; must have at most {}", asked.len(), limits::METADATA_KEYS)));
    }
    asked.clone()
}

/// Parses a time in a query, a bound of times in milliseconds.
pub(crate) fn time(text: Option<&str>, path: &str, errors: &mut Vec<FieldError>) -> Option<Timestamp> {
    let text = text?;
    match Timestamp::parse_bound(text) {
        Ok(at) => Some(at),
        Err(error) => {
            // An unencoded plus sign arrives as a space.
            let plus = if text.contains(' ') { "; a + must be encoded as %2B" } else { "" };
            errors.push(FieldError::new(path, format!("is {text:?}; {error}{plus}")));
            None
        }
    }
}

/// Parses a country (ISO 3166-1 alpha-2) with a numbering plan; returns it in upper case.
pub(crate) fn country(text: &str, path: &str, errors: &mut Vec<FieldError>) -> String {
    let upper = text.trim().to_ascii_uppercase();
    if !address::is_country(&upper) {
        let shown: String = text.chars().take(64).collect();
        errors.push(FieldError::new(path, format!("is {shown:?}; must be an ISO 3166-1 alpha-2 code such as ES")));
    }
    upper
}

/// Parses a list of countries, at most as many as there are; returns each once, in upper case.
pub(crate) fn countries(texts: &[String], path: &str, errors: &mut Vec<FieldError>) -> Vec<String> {
    if texts.len() > limits::COUNTRIES {
        errors.push(FieldError::new(path, format!("has {} items; must have at most {}", texts.len(), limits::COUNTRIES)));
        return Vec::new();
    }
    let mut countries = Vec::new();
    for (n, text) in texts.iter().enumerate() {
        let country = country(text, &format!("{path}[{n}]"), errors);
        if !countries.contains(&country) {
            countries.push(country);
        }
    }
    countries
}

/// Restores a phone number in a query: an unencoded plus sign arrives as a space.
pub(crate) fn phone(text: &str) -> String {
    text.strip_prefix(' ').map_or_else(|| text.to_owned(), |digits| format!("+{digits}"))
}

/// Parses a recipient in a query, or the short code or name that an inbound message was written to.
pub(crate) fn recipient(text: Option<&str>, path: &str, errors: &mut Vec<FieldError>) -> Option<String> {
    let text = phone(text?);
    match Parsed::parse(&text) {
        Ok(parsed) => Some(parsed.identifier().to_owned()),
        Err(wrong) if address::is_meant(&text) => {
            errors.push(FieldError::new(path, wrong.to_string()));
            None
        }
        Err(_) => Some(text),
    }
}

/// Returns the author of a message in a query as messages store it. Providers name authors as they like, so nothing is rejected.
pub(crate) fn author(text: &str) -> String {
    let text = phone(text);
    Parsed::parse(&text).map_or(text, |parsed| parsed.identifier().to_owned())
}

/// Pagination parameters of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// Page size.
    pub(crate) limit: u32,
    /// Created at or after this time.
    pub(crate) since: Option<Timestamp>,
    /// Created before this time.
    pub(crate) until: Option<Timestamp>,
    cursor: Option<&'a str>,
}

/// A parsed list request.
#[derive(Clone, Debug)]
pub(crate) struct Listing {
    pub(crate) page: PageRequest,
    scope: String,
}

impl<'a> Asked<'a> {
    /// Parses the parameters of all lists.
    pub(crate) fn read(limit: Option<u32>, cursor: Option<&'a str>, since: Option<&str>, until: Option<&str>) -> (Self, Vec<FieldError>) {
        let mut errors = Vec::new();
        let limit = self::limit(limit, &mut errors);
        let (since, until) = (time(since, "query.since", &mut errors), time(until, "query.until", &mut errors));
        (Self { limit, since, until, cursor }, errors)
    }
}

/// The query of a list: its filters, and what all lists have.
macro_rules! list_query {
    ($(#[$doc:meta])* $name:ident { $($filters:tt)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, serde::Deserialize, utoipa::IntoParams)]
        #[serde(default, rename_all = "camelCase")]
        #[into_params(parameter_in = Query)]
        pub struct $name {
            $($filters)*
            /// Created at or after this time.
            #[param(format = DateTime)]
            pub since: Option<String>,
            /// Created before this time.
            #[param(format = DateTime)]
            pub until: Option<String>,
            /// Page size; 50 when absent.
            #[param(minimum = 1, maximum = 100)]
            pub limit: Option<u32>,
            /// The `nextCursor` of the previous page, with the same filters.
            pub cursor: Option<String>,
        }
    };
}
pub(crate) use list_query;

/// Takes `limit`, `cursor`, `since` and `until` from a query; returns the errors so far, too.
macro_rules! asked {
    ($query:expr) => {{
        let query = $query;
        $crate::base::list::Asked::read(query.limit, query.cursor.as_deref(), query.since.as_deref(), query.until.as_deref())
    }};
}
pub(crate) use asked;

impl Core {
    /// Parses a list request; fails with `errors`, if there are any. `scope` names the operation and its filters; a cursor of another scope
    /// is a 400.
    pub(crate) fn listing(&self, tenant: TenantId, scope: &str, asked: &Asked<'_>, errors: Vec<FieldError>) -> Result<Listing> {
        let (before, scope) = self.after_cursor(tenant, scope, asked, errors)?;
        let page = PageRequest::older(asked.limit, before.map(Uuid::from_bytes)).within(asked.since, asked.until);
        Ok(Listing { page, scope })
    }

    /// Returns the row after which the cursor continues, and the scope for the next one.
    pub(crate) fn after_cursor(
        &self,
        tenant: TenantId,
        scope: &str,
        asked: &Asked<'_>,
        errors: Vec<FieldError>,
    ) -> Result<(Option<[u8; 16]>, String)> {
        Error::if_any(errors)?;
        let scope = format!("{scope}&{:?}", (asked.since, asked.until));
        let last = asked.cursor.map(|cursor| self.cursors().read(tenant, &scope, cursor)).transpose()?;
        Ok((last, scope))
    }

    /// Returns the `nextCursor` of a page that ended at the row `next`.
    pub(crate) fn next_cursor(&self, tenant: TenantId, listing: &Listing, next: Option<Uuid>) -> Option<String> {
        next.map(|id| self.cursors().make(tenant, &listing.scope, *id.as_bytes()))
    }
}
