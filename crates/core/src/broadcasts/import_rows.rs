//! Incremental parser of recipient files: CSV (RFC 4180, separated by `,`, `;` or tab) and NDJSON. Pure.

use std::collections::{BTreeMap, BTreeSet};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use nuncio_domain::{Error, Result};
use serde_json::Value;

use super::command::NewContact;
use crate::base::csv::{UNCLOSED, delimiter};

/// Default names of the recipient column, in order of preference.
const RECIPIENT: &[&str] = &[
    "recipient", "to", "phone", "phone_number", "phonenumber", "phone number", "mobile", "msisdn", "telefono", "teléfono", "movil",
    "móvil", "telephone", "telefon", "email", "e-mail", "mail", "correo", "chat_id", "chatid",
];
/// Prefixes of columns with a template's button and header values: `button.0`, `header.1`.
const BUTTON: &str = "button.";
const HEADER: &str = "header.";
/// Maximum length of a row, in bytes, and its maximum number of cells: empty ones have no length.
const ROW: usize = 64 * 1024;
const CELLS: usize = 16 * 1024;

/// Format of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// Comma-separated values with a header.
    Csv,
    /// One JSON object per line.
    Ndjson,
}

/// Column mapping.
#[derive(Clone, Debug, Default)]
pub(super) struct Columns {
    /// Recipient column; detected by name if `None`.
    pub(super) recipient: Option<String>,
    /// Variables by column; a column with an empty variable is ignored.
    pub(super) renamed: BTreeMap<String, String>,
    /// Variables that the content uses, looked for once for each cell. Others are kept only if renamed: a file may contain unrelated personal data.
    pub(super) used: BTreeSet<String>,
}

impl Columns {
    /// Returns the variable of a column, or `None` to ignore it.
    pub(super) fn variable<'a>(&'a self, column: &'a str) -> Option<&'a str> {
        match self.renamed.get(column) {
            Some(name) => Some(name.as_str()).filter(|name| !name.is_empty()),
            None => Some(column).filter(|name| name.starts_with(BUTTON) || name.starts_with(HEADER) || self.used.contains(*name)),
        }
    }

    fn is_recipient(&self, column: &str) -> bool {
        match &self.recipient {
            Some(name) => name == column,
            None => RECIPIENT.contains(&column.to_lowercase().as_str()),
        }
    }

    fn contact<'a>(&self, recipient: &str, cells: impl Iterator<Item = (&'a str, &'a str)>) -> NewContact {
        let mut contact = NewContact { recipient: recipient.trim().to_owned(), ..NewContact::default() };
        for (column, value) in cells {
            let Some(name) = self.variable(column).filter(|_| !value.is_empty()) else { continue };
            let (values, name) = if let Some(index) = name.strip_prefix(BUTTON) {
                (&mut contact.template_button_variables, index)
            } else if let Some(index) = name.strip_prefix(HEADER) {
                (&mut contact.template_header_variables, index)
            } else {
                (&mut contact.template_variables, name)
            };
            values.get_or_insert_default().insert(name.to_owned(), value.to_owned());
        }
        contact
    }
}

/// Line where a row begins, and the row or its error.
pub(super) type Row = (u64, std::result::Result<NewContact, String>);

/// Parser of a file in pieces.
#[derive(Debug)]
pub(super) enum Rows {
    Csv(Box<Csv>),
    Ndjson(Ndjson),
}

impl Rows {
    pub(super) fn new(format: Format, columns: Columns) -> Self {
        match format {
            Format::Csv => Self::Csv(Box::new(Csv {
                columns,
                head: Vec::new(),
                reader: None,
                names: None,
                fields: vec![0; 4_096],
                ends: vec![0; 64],
                filled: (0, 0),
                within: false,
                newlines: 0,
                line: 1,
            })),
            Format::Ndjson => Self::Ndjson(Ndjson { columns, rest: Vec::new(), line: 0 }),
        }
    }

    /// Parses the rows that end in this piece; if `last`, the end of the file ends a row too. Fails if the header is invalid.
    pub(super) fn read(&mut self, piece: &[u8], last: bool) -> Result<Vec<Row>> {
        match self {
            Self::Csv(csv) => csv.read(piece, last),
            Self::Ndjson(lines) => lines.read(piece, last),
        }
    }
}

#[derive(Debug)]
pub(super) struct Csv {
    columns: Columns,
    /// The file up to the end of its header, which determines the separator.
    head: Vec<u8>,
    reader: Option<Reader>,
    names: Option<Names>,
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// How much of each buffer the current row fills.
    filled: (usize, usize),
    /// Whether a row has begun.
    within: bool,
    newlines: u64,
    /// Line where it began.
    line: u64,
}

#[derive(Debug)]
pub(super) struct Names {
    pub(super) all: Vec<String>,
    pub(super) recipient: usize,
}

impl Csv {
    fn read(&mut self, piece: &[u8], last: bool) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        if self.reader.is_some() {
            self.records(piece, false, &mut rows)?;
        } else {
            self.head.extend_from_slice(piece);
            if !last && !self.head.contains(&b'\n') && self.head.len() < ROW {
                return Ok(rows);
            }
            let head = std::mem::take(&mut self.head);
            let head = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&head);
            self.reader = Some(ReaderBuilder::new().delimiter(delimiter(head)).build());
            self.records(head, false, &mut rows)?;
        }
        if last {
            // Ends any row but one within quotation marks.
            self.records(b"\n", false, &mut rows)?;
            self.records(&[], true, &mut rows)?;
            if self.names.is_none() {
                return Err(Error::field("body", "is empty; the first line must name the columns"));
            }
        }
        Ok(rows)
    }

    /// Parses records; with `last`, the input is empty and the file ends.
    fn records(&mut self, mut input: &[u8], last: bool, rows: &mut Vec<Row>) -> Result<()> {
        let Some(mut reader) = self.reader.take() else { return Ok(()) };
        loop {
            if !self.within {
                let blank = input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
                self.newlines += newlines(&input[..blank]);
                input = &input[blank..];
                self.line = self.newlines + 1;
            }
            if input.is_empty() && !last {
                break;
            }
            let (fields, ends) = (&mut self.fields[self.filled.0..], &mut self.ends[self.filled.1..]);
            let (result, read, wrote, ended) = reader.read_record(input, fields, ends);
            self.newlines += newlines(&input[..read]);
            self.within |= read > 0;
            input = &input[read..];
            self.filled = (self.filled.0 + wrote, self.filled.1 + ended);
            match result {
                ReadRecordResult::InputEmpty if !last => {}
                ReadRecordResult::InputEmpty | ReadRecordResult::End => break,
                ReadRecordResult::OutputFull if self.fields.len() >= ROW => {
                    return Err(Error::field("body", format!("line {}: the row is longer than {ROW} bytes", self.line)));
                }
                ReadRecordResult::OutputFull => self.fields.resize(self.fields.len() * 2, 0),
                ReadRecordResult::OutputEndsFull if self.ends.len() >= CELLS => {
                    return Err(Error::field("body", format!("line {}: the row has more than {CELLS} cells", self.line)));
                }
                ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
                ReadRecordResult::Record if last && self.names.is_none() => {
                    return Err(Error::field("body", format!("line {} {UNCLOSED}", self.line)));
                }
                ReadRecordResult::Record if last => rows.push((self.line, Err(UNCLOSED.to_owned()))),
                ReadRecordResult::Record => {
                    rows.extend(self.record(self.line)?);
                    (self.filled, self.within) = ((0, 0), false);
                }
            }
        }
        self.reader = Some(reader);
        Ok(())
    }

    fn record(&mut self, line: u64) -> Result<Option<Row>> {
        let ends = &self.ends[..self.filled.1];
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let cells: std::result::Result<Vec<&str>, _> =
            starts.zip(ends).map(|(start, end)| std::str::from_utf8(&self.fields[start..*end])).collect();
        let Ok(cells) = cells else {
            let wrong = "is not UTF-8; save the file as UTF-8";
            return if self.names.is_none() {
                Err(Error::field("body", format!("line {line}: {wrong}")))
            } else {
                Ok(Some((line, Err(wrong.to_owned()))))
            };
        };
        let Some(names) = &self.names else {
            self.names = Some(named(&self.columns, cells)?);
            return Ok(None);
        };
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            return Ok(None);
        }
        if cells.len() != names.all.len() {
            let wrong = format!("has {} cells; the header row has {}", cells.len(), names.all.len());
            return Ok(Some((line, Err(wrong))));
        }
        let pairs = names.all.iter().map(String::as_str).zip(cells.iter().map(|cell| cell.trim()));
        let pairs = pairs.enumerate().filter(|(n, _)| *n != names.recipient).map(|(_, pair)| pair);
        Ok(Some((line, Ok(self.columns.contact(cells[names.recipient], pairs)))))
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

/// Maps the columns of a header.
pub(super) fn named(columns: &Columns, cells: Vec<&str>) -> Result<Names> {
    let all: Vec<String> = cells.into_iter().map(|cell| cell.trim().to_owned()).collect();
    let shown = || all.join(", ");
    let named = columns.renamed.keys().map(|column| ("query.columns", column));
    for (field, column) in named.chain(columns.recipient.iter().map(|column| ("query.recipient", column))) {
        if !all.contains(column) {
            return Err(Error::field(field, format!("the file has no column {column:?}; it has {}", shown())));
        }
    }
    let order = |name: &String| RECIPIENT.iter().position(|known| *known == name.to_lowercase());
    let candidates = all.iter().enumerate().filter(|(_, name)| columns.is_recipient(name));
    let Some((recipient, _)) = candidates.min_by_key(|(_, name)| order(name)) else {
        let message = format!(
            "no column has the name of a recipient (recipient, phone, email …); give its name as recipient. The file has {}",
            shown()
        );
        return Err(Error::field("query.recipient", message));
    };
    Ok(Names { all, recipient })
}

#[derive(Debug)]
pub(super) struct Ndjson {
    columns: Columns,
    /// The incomplete last line.
    rest: Vec<u8>,
    line: u64,
}

impl Ndjson {
    fn read(&mut self, piece: &[u8], last: bool) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        let mut pieces = piece.split(|byte| *byte == b'\n').peekable();
        while let Some(part) = pieces.next() {
            self.rest.extend_from_slice(part);
            if pieces.peek().is_none() && !last {
                break;
            }
            self.line += 1;
            let text = self.rest.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&self.rest).trim_ascii();
            if !text.is_empty() {
                rows.push((self.line, object(&self.columns, text)));
            }
            self.rest.clear();
        }
        if self.rest.len() > ROW {
            return Err(Error::field("body", format!("line {}: the row is longer than {ROW} bytes", self.line + 1)));
        }
        Ok(rows)
    }
}

/// Parses a row: an object as in `POST …/contacts`, or a flat object whose members are columns.
fn object(columns: &Columns, text: &[u8]) -> std::result::Result<NewContact, String> {
    let members: serde_json::Map<String, Value> = serde_json::from_slice(text).map_err(|error| format!("is not a JSON object: {error}"))?;
    if members.keys().any(|key| key.starts_with("template")) {
        return serde_json::from_value(Value::Object(members)).map_err(|error| error.to_string());
    }
    let order = |name: &String| RECIPIENT.iter().position(|known| *known == name.to_lowercase());
    let found = members.keys().filter(|name| columns.is_recipient(name)).min_by_key(|name| order(name)).cloned();
    let Some(name) = found else { return Err("has no recipient (recipient, phone, email …)".to_owned()) };
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    let Some(recipient) = members.get(&name).and_then(text) else { return Err(format!("{name} must be text")) };
    let cells: Vec<(&str, String)> =
        members.iter().filter(|(key, _)| **key != name).filter_map(|(key, value)| Some((key.as_str(), text(value)?))).collect();
    Ok(columns.contact(&recipient, cells.iter().map(|(key, value)| (*key, value.trim()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses the file whole and in pieces of every size, and asserts equal rows.
    fn read(format: Format, columns: &Columns, file: &str) -> Vec<(u64, std::result::Result<String, String>)> {
        let in_pieces = |size: usize| {
            let mut rows = Rows::new(format, columns.clone());
            let mut found = Vec::new();
            for piece in file.as_bytes().chunks(size) {
                found.extend(rows.read(piece, false).expect("a file"));
            }
            found.extend(rows.read(&[], true).expect("a file"));
            let shown = |contact: NewContact| format!("{}{:?}", contact.recipient, contact.template_variables.unwrap_or_default());
            found.into_iter().map(|(line, row)| (line, row.map(shown))).collect::<Vec<_>>()
        };
        let whole = in_pieces(file.len());
        for size in 1..file.len() {
            assert_eq!(in_pieces(size), whole, "in pieces of {size}");
        }
        whole
    }

    fn using(names: &[&str]) -> Columns {
        Columns { used: names.iter().map(|name| (*name).to_owned()).collect(), ..Columns::default() }
    }

    #[test]
    fn csv_is_read_with_quotes_marks_and_line_numbers() {
        let file = "\u{feff}Name;Phone;City\r\nAda;+34 600 111 222;\"Rome; \"\"old\"\"\nand new\"\r\n\r\nBo;600;\nx\n";
        let rows = read(Format::Csv, &using(&["Name", "City"]), file);
        assert_eq!(
            rows,
            [
                (2, Ok("+34 600 111 222{\"City\": \"Rome; \\\"old\\\"\\nand new\", \"Name\": \"Ada\"}".to_owned())),
                (5, Ok("600{\"Name\": \"Bo\"}".to_owned())),
                (6, Err("has 1 cells; the header row has 3".to_owned())),
            ]
        );
    }

    #[test]
    fn a_quotation_mark_that_is_not_closed_rejects_its_row() {
        let rows = read(Format::Csv, &using(&["name"]), "phone,name\n1,\"a\"\n2,\"b\n3,c\n");
        assert_eq!(rows, [(2, Ok("1{\"name\": \"a\"}".to_owned())), (3, Err(UNCLOSED.to_owned()))]);
        let rows = read(Format::Csv, &using(&["name"]), "phone,name\n1,\"a\"");
        assert_eq!(rows, [(2, Ok("1{\"name\": \"a\"}".to_owned()))]);
        let unclosed = Rows::new(Format::Csv, using(&[])).read(b"\"phone,name\n1,a\n", true).expect_err("no columns");
        assert!(unclosed.message().contains(UNCLOSED), "{unclosed}");
    }

    #[test]
    fn columns_are_named_and_renamed() {
        let renamed = [("Vorname".to_owned(), "name".to_owned()), ("x".to_owned(), String::new())].into();
        let columns = Columns { recipient: Some("Nr".to_owned()), renamed, used: ["x".to_owned()].into() };
        assert_eq!(read(Format::Csv, &columns, "Vorname,Nr,x\nAda,1,2\n"), [(2, Ok("1{\"name\": \"Ada\"}".to_owned()))]);
        let wrong = Rows::new(Format::Csv, columns).read(b"a,b\n", true).expect_err("no such columns");
        assert!(wrong.message().contains("a, b"), "{wrong}");
        assert!(Rows::new(Format::Csv, using(&[])).read(b"a,b\n1,2\n", true).is_err(), "nothing is named like a recipient");
        assert!(Rows::new(Format::Csv, using(&[])).read(b"", true).is_err(), "no head line");
    }

    /// Not in a time that grows with the product of both: a minute for these.
    #[test]
    fn many_columns_are_found_among_many_variables() {
        let names: Vec<String> = (0..50_000).map(|n| format!("a{n}")).collect();
        let columns = Columns { used: names.iter().cloned().collect(), ..Columns::default() };
        let (head, row) = (names[40_000..48_000].join(","), ",".repeat(8_000));
        let (begun, file) = (std::time::Instant::now(), format!("phone,{head}\n1{row}\n2{row}\n3{row}\n"));
        let rows = Rows::new(Format::Csv, columns).read(file.as_bytes(), true).expect("a file");
        assert_eq!(rows.len(), 3);
        assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    }

    #[test]
    fn ndjson_is_flat_or_as_the_api_takes_it() {
        let file = "{\"phone\": \"+34600111222\", \"name\": \"Ada\", \"secret\": 1}\n\n{\"recipient\": \"x\", \"templateVariables\": {\"name\": \"Bo\"}}\n{\n[]";
        let rows = read(Format::Ndjson, &using(&["name"]), file);
        assert_eq!(rows[0], (1, Ok("+34600111222{\"name\": \"Ada\"}".to_owned())));
        assert_eq!(rows[1], (3, Ok("x{\"name\": \"Bo\"}".to_owned())));
        assert!(rows[2].1.is_err() && rows[3].1.is_err() && rows.len() == 4, "{rows:?}");
    }
}
