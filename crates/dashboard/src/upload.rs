//! Parts of forms that upload a file, and of their results.

use std::fmt::Display;

use maud::{Markup, html};

use crate::components::{Faults, Field, data_table, words};

/// Maximum number of invalid rows shown.
const SHOWN: usize = 20;

/// Renders the control of the file. `accept`: the extensions, separated by commas.
pub(crate) fn file_field(label: &str, accept: &str, hint: &str, faults: &Faults) -> Markup {
    Field { kind: "file", accept, ..Field::new("file", label, hint, "") }.show(faults)
}

/// Renders the first invalid rows: line and reason.
pub(crate) fn invalid_rows<'a>(rows: impl Iterator<Item = (impl Display, &'a str)>) -> Markup {
    let rows = html! {
        @for (line, reason) in rows.take(SHOWN) { tr { td class="num" { (line.to_string()) } td { (words(reason)) } } }
    };
    data_table("fix", "Invalid rows", &[("num w1", "Line"), ("", "Error")], rows)
}
