//! Tables for a terminal: a line a row, columns as wide as they must be, and clipped where the terminal ends.

use console::{Term, measure_text_width, pad_str, style, truncate_str};
use nuncio_domain::line;
use serde::{Deserialize, Serialize};

/// Blanks between two columns.
const GAP: usize = 2;
/// A column is not clipped below this width.
const NARROW: usize = 8;

/// A table: names of columns, and rows of as many cells.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Table {
    /// Names of the columns.
    pub head: Vec<String>,
    /// The cells, row by row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(head: &[&str]) -> Self {
        Self { head: head.iter().map(|&name| name.to_owned()).collect(), rows: Vec::new() }
    }

    /// The same table with these rows.
    #[must_use]
    pub fn with(mut self, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// The table with one more column before the others, which holds the same in every row.
    #[must_use]
    pub fn under(mut self, name: &str, value: &str) -> Self {
        self.head.insert(0, name.to_owned());
        self.rows.iter_mut().for_each(|row| row.insert(0, value.to_owned()));
        self
    }

    /// The text of the table, no line wider than `width` columns of a terminal, without a line end at the end.
    pub fn text(&self, width: Option<usize>) -> String {
        // What people and providers wrote must not control the terminal, nor begin a row of its own.
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect()).collect();
        let widths = widths(&self.head, &rows, width);
        let lines = std::iter::once(row(&self.head, &widths)).map(|head| style(head).bold().to_string());
        lines.chain(rows.iter().map(|cells| row(cells, &widths))).collect::<Vec<_>>().join("\n")
    }
}

/// Columns of the terminal that the output goes to; none when it goes elsewhere.
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

/// How wide each column is. The widest ones give way until the table fits, but none below [`NARROW`].
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
