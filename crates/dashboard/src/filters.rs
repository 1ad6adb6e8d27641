//! Fields and days of the filters above a list.

use std::time::Duration;

use maud::{Markup, html};
use nuncio_domain::{Error, Result, Timestamp};

use crate::signed::Asked;

/// Length of a day (UTC).
const DAY: Duration = Duration::from_secs(86_400);

/// Renders a field with what the query has for it.
pub(crate) fn field(asked: &Asked, name: &str, label: &str, kind: &str, hint: &str) -> Markup {
    html! {
        div class="field" {
            label for=(name) { (label) }
            input class="in" id=(name) name=(name) type=(kind) placeholder=(hint) value=(asked.get(name).unwrap_or_default());
        }
    }
}

/// Renders the fields of the first and the last day, `since` and `until`.
pub(crate) fn span_fields(asked: &Asked) -> Markup {
    html! { (field(asked, "since", "From (UTC)", "date", "")) (field(asked, "until", "Until (UTC)", "date", "")) }
}

/// Parses these fields; returns the start of the first day and the end of the last one.
pub(crate) fn span(asked: &Asked) -> Result<(Option<Timestamp>, Option<Timestamp>)> {
    Ok((day(asked, "since")?, day(asked, "until")?.map(|day| day.plus(DAY))))
}

fn day(asked: &Asked, name: &str) -> Result<Option<Timestamp>> {
    let Some(text) = asked.get(name) else { return Ok(None) };
    let parsed = Timestamp::parse(&format!("{text}T00:00:00Z"));
    parsed.map(Some).map_err(|_| Error::field(name, format!("is {text:?}; must be a day such as 2026-05-31")))
}
