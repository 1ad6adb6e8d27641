//! Formats tables for a terminal: one line per row, columns as wide as needed, clipped to the terminal's width.

use console::{Term, measure_text_width, pad_str, style, truncate_str};
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

    /// Formats the table with lines of at most `width` columns, without a trailing newline. IDs and times stay whole. Columns without values
    /// go first, then the last ones; a line at the end names what is hidden.
    pub fn text(&self, width: Option<usize>) -> String {
        // Texts from people and providers must not control the terminal or start a row.
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| clean(cell)).collect());
        let mut columns = columns(&self.head, &rows.collect::<Vec<Vec<String>>>());
        let hidden = width.map(|width| fit(&mut columns, width)).unwrap_or_default();
        let mut lines = vec![style(line(&columns, width, |column| &column.name)).bold().to_string()];
        lines.extend((0..self.rows.len()).map(|row| line(&columns, width, |column| &column.cells[row])));
        if !hidden.is_empty() {
            let text = format!("hidden for lack of width: {}", hidden.join(", "));
            lines.push(style(truncate_str(&text, width.unwrap_or(usize::MAX), "…")).dim().to_string());
        }
        lines.join("\n")
    }
}

/// A column as it is printed.
struct Column {
    name: String,
    cells: Vec<String>,
    width: usize,
    /// The smallest width that it may be cut to.
    least: usize,
}

/// Returns the width of the output terminal; `None` if the output is not a terminal.
pub fn terminal_width() -> Option<usize> {
    Term::stdout().size_checked().map(|(_, columns)| usize::from(columns))
}

fn clean(cell: &str) -> String {
    nuncio_domain::line::escaped(&cell.replace(['\n', '\r', '\t'], " ")).into_owned()
}

/// Whether a text is useless when it is cut: an ID such as `msg_` and 26 characters, or a time.
fn is_whole(cell: &str) -> bool {
    let id = cell.split_once('_').is_some_and(|(kind, id)| kind.len() <= 8 && id.len() >= 20 && !id.contains(' '));
    id || (cell.len() == 19 && cell.starts_with("20") && cell.as_bytes()[10] == b' ')
}

fn columns(head: &[String], rows: &[Vec<String>]) -> Vec<Column> {
    let column = |(place, name): (usize, &String)| {
        let cells: Vec<String> = rows.iter().map(|row| row.get(place).cloned().unwrap_or_default()).collect();
        let width = cells.iter().chain([name]).map(|cell| measure_text_width(cell)).max().unwrap_or_default();
        let least = if cells.iter().any(|cell| is_whole(cell)) { width } else { width.min(NARROW) };
        Column { name: name.clone(), cells, width, least }
    };
    head.iter().enumerate().map(column).collect()
}

/// Hides columns until the others fit, then cuts the widest. Returns the names of those with values that it hid, in their order.
fn fit(columns: &mut Vec<Column>, limit: usize) -> Vec<String> {
    let total =
        |columns: &[Column], width: fn(&Column) -> usize| columns.iter().map(width).sum::<usize>() + GAP * columns.len().saturating_sub(1);
    let mut hidden = Vec::new();
    if total(columns, |column| column.width) > limit {
        columns.retain(|column| column.cells.iter().any(|cell| !cell.is_empty()));
    }
    while columns.len() > 1 && total(columns, |column| column.least) > limit {
        hidden.extend(columns.pop().map(|column| column.name));
    }
    while total(columns, |column| column.width) > limit
        && let Some(widest) = columns.iter_mut().filter(|column| column.width > column.least).max_by_key(|column| column.width)
    {
        widest.width -= 1;
    }
    hidden.reverse();
    hidden
}

fn line(columns: &[Column], width: Option<usize>, text: impl Fn(&Column) -> &String) -> String {
    let padded = columns.iter().map(|column| {
        let cell = truncate_str(text(column), column.width, "…");
        pad_str(&cell, column.width, console::Alignment::Left, None).into_owned()
    });
    let line = padded.collect::<Vec<_>>().join(&" ".repeat(GAP));
    truncate_str(line.trim_end(), width.unwrap_or(usize::MAX), "…").into_owned()
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

    #[test]
    fn what_can_be_copied_is_whole_and_the_last_columns_go_first() {
        let id = "msg_01h455vb4pex5vsknk084sn02q";
        let cells = ["live", id, "delivered", "+34600111222", "2026-01-31 09:30:00", "", "Hello"].map(str::to_owned);
        let table = Table::new(&["ENV", "ID", "STATUS", "TO", "CREATED (UTC)", "COST", "TEXT"]).with([cells.to_vec()]);
        for width in [40, 60, 80, 100] {
            let text = console::strip_ansi_codes(&table.text(Some(width))).into_owned();
            assert!(text.lines().all(|line| measure_text_width(line) <= width) && text.contains(id), "{width}: {text}");
            assert_eq!(text.contains("COST"), width == 100, "an empty column goes where there is no room: {text}");
            assert!(!text.contains("2026-01-31…"), "{width}: {text}");
        }
        let text = console::strip_ansi_codes(&table.text(Some(60))).into_owned();
        assert!(text.contains("+34600111") && text.ends_with("hidden for lack of width: CREATED (UTC), TEXT"), "{text}");
    }
}
