//! Fields and days of the filters above a list, and values that they cannot take.

use std::time::Duration;

use maud::{Markup, html};
use nuncio_domain::{Error, Result, Timestamp};
use serde_json::Value;

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

/// Splits what a filter found from what is wrong with its value: a value that cannot be read finds nothing, and the page says why.
pub(crate) fn found_or_fault<T: Default>(found: Result<T>) -> Result<(T, Option<String>)> {
    let error = match found {
        Ok(found) => return Ok((found, None)),
        Err(error) => error,
    };
    let faults: Vec<_> = error.details().get("errors").and_then(Value::as_array).into_iter().flatten().cloned().collect();
    let of_filter = |fault: &Value| fault["path"].as_str().is_some_and(|path| path.starts_with("query.") && path != "query.cursor");
    let first = faults.first().and_then(|fault| fault["message"].as_str()).filter(|_| faults.iter().all(of_filter));
    // Messages begin with the value or with a verb; the name of the field is that of the API.
    let said = |message: &str| if message.starts_with('"') { format!("{message}.") } else { format!("It {message}.") };
    first.map(|message| (T::default(), Some(said(message)))).ok_or(error)
}

fn day(asked: &Asked, name: &str) -> Result<Option<Timestamp>> {
    let Some(text) = asked.get(name) else { return Ok(None) };
    let parsed = Timestamp::parse(&format!("{text}T00:00:00Z"));
    parsed.map(Some).map_err(|_| Error::field(name, format!("is {text:?}; must be a day such as 2026-05-31")))
}
