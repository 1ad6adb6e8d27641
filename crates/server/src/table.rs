//! Formats tables for a terminal: one line per row, columns as wide as needed, clipped to the terminal's width.

use console::{Term, measure_text_width, pad_str, style, truncate_str};
use nuncio_domain::line;
use serde::{Deserialize, Serialize};

/// Spaces between columns.
const GAP: usize = 2;
/// Columns are not clipped below this width.
const NARROW: usize = 8;

/// A table: column names, and rows with as many cells.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Column names.
    pub head: Vec<String>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// Sets the rows.
    #[must_use]
    pub fn with(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// Inserts a first column with the same value in every row.
    #[must_use]
    pub fn under(mut self, name: &str, value: &str) -> Self {
        self.head.insert(0, name.to_owned());
        self.rows.iter_mut().for_each(|row| row.insert(0, value.to_owned()));
        self
    }

    /// Formats the table with lines of at most `width` columns, without a trailing newline.
    pub fn text(&self, width: Option<usize>) -> String {
        // Texts from people and providers must not control the terminal or start a row.
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
        let widths = widths(&self.head, &rows, width);
        let lines = std::iter::once(row(&self.head, &widths)).map(|head| style(head).bold().to_string());
        lines.chain(rows.iter().map(|cells| row(cells, &widths))).collect::<Vec<_>>().join("\n")
    }
}

/// Returns the width of the output terminal; `None` if the output is not a terminal.
pub fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

fn clean(cell: &str) -> String {
    line::escaped(&cell.replace(['\n', '\r', '\t'], " ")).into_owned()
}

fn row(cells: &[String], widths: &[usize]) -> String {
    let gap = " ".repeat(GAP);
    let padded = cells.iter().zip(widths).map(|(cell, &width)| {
        let cell = truncate_str(cell, width, "…");
        pad_str(&cell, width, console::Alignment::Left, None).into_owned()
    });
    padded.collect::<Vec<_>>().join(&gap).trim_end().to_owned()
}

/// Computes the column widths. The widest columns shrink until the table fits, but not below [`NARROW`].
fn widths(head: &[String], rows: &[Vec<String>], limit: Option<usize>) -> Vec<usize> {
    let all = std::iter::once(head).chain(rows.iter().map(Vec::as_slice));
    let mut widths = vec![0; head.len()];
    for cells in all {
        for (width, cell) in widths.iter_mut().zip(cells) {
            *width = (*width).max(measure_text_width(cell));
        }
    }
    let gaps = GAP * widths.len().saturating_sub(1);
    while let Some(limit) = limit
        && widths.iter().sum::<usize>() + gaps > limit
    {
        match widths.iter_mut().max() {
            Some(widest) if *widest > NARROW => *widest -= 1,
            _ => break,
        }
    }
    widths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: [&str; 3]| cells.iter().map(|&cell| cell.to_owned()).collect();
        Table::new(&["ID", "NAME", "NOTE"]).with([row(["key_1", "café", ""]), row(["key_22", "漢字", "a\nb\u{1b}[2J"])])
    }

    #[test]
    fn columns_stand_below_their_names() {
        let text = console::strip_ansi_codes(&table().text(None)).into_owned();
        assert_eq!(text, "ID      NAME  NOTE\nkey_1   café\nkey_22  漢字  a b\\u{1b}[2J");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut table = table();
        table.rows[0][2] = "x".repeat(300);
        for line in table.text(Some(40)).lines() {
            assert!(measure_text_width(line) <= 40, "{line}");
        }
        assert!(table.text(None).contains(&"x".repeat(300)), "a file gets all of it");
    }
}
