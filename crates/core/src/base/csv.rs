//! CSV (RFC 4180): safe cells for spreadsheets, and parsing of small files.

use csv_core::{ReadRecordResult, ReaderBuilder};
use nuncio_domain::{Error, Result};

/// Quotes a cell. An apostrophe keeps spreadsheets from evaluating text as a formula; numbers stay unchanged.
pub(crate) fn quoted(cell: &str) -> String {
    let number = cell.strip_prefix(['+', '-']).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !number;
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\n', '\r', ';']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}

/// Removes the apostrophe that [`quoted`] added.
pub(crate) fn unquoted(cell: &str) -> &str {
    cell.strip_prefix('\'').filter(|rest| rest.starts_with(['=', '+', '-', '@', '\t', '\r'])).unwrap_or(cell)
}

/// Returns the most frequent delimiter of the first line: `,`, `;` or a tab.
pub(crate) fn delimiter(head: &[u8]) -> u8 {
    let line = head.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let count = |mark: u8| line.iter().filter(|byte| **byte == mark).count();
    [b',', b';', b'\t'].into_iter().rev().max_by_key(|mark| count(*mark)).unwrap_or(b',')
}

/// A non-empty record, with the line on which it begins.
pub(crate) type Record = (u64, Vec<String>);

/// Returns all non-empty records. Needs as much memory again as the file.
pub(crate) fn records(file: &[u8]) -> Result<Vec<Record>> {
    match parse(file)? {
        (records, None) => Ok(records),
        (_, Some(line)) => Err(Error::field("file", format!("line {line} {UNCLOSED}"))),
    }
}

/// Returns the non-empty records of the beginning of a file, which can end within one.
pub(crate) fn first_records(head: &[u8]) -> Result<Vec<Record>> {
    parse(head).map(|(records, _)| records)
}

/// What is wrong with a record that takes the rest of the file into a cell.
pub(crate) const UNCLOSED: &str = "has a quotation mark that is not closed";

/// Returns all non-empty records, and the line of the last one if it ends within quotation marks.
fn parse(file: &[u8]) -> Result<(Vec<Record>, Option<u64>)> {
    let mut input = file.strip_prefix(b"\xef\xbb\xbf").unwrap_or(file);
    if std::str::from_utf8(input).is_err() {
        return Err(Error::field("file", "is not UTF-8; save it as UTF-8"));
    }
    let mut reader = ReaderBuilder::new().delimiter(delimiter(input)).build();
    let (mut fields, mut ends) = (vec![0; input.len() + 1], vec![0; 64]);
    let (mut filled, mut ended, mut records) = (0, 0, Vec::new());
    let (mut line, mut begins) = (1, 1);
    // The end of the file is read as a newline first, which ends any record but one within quotation marks.
    let (mut is_new, mut is_ended) = (true, false);
    loop {
        if is_new {
            // The reader counts these to the record, whose line would be that of the one before.
            let blank = input.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            line += lines(&input[..blank]);
            (input, begins, is_new) = (&input[blank..], line, false);
        }
        let is_unclosed = is_ended && input.is_empty();
        let (result, read, wrote, more) = reader.read_record(input, &mut fields[filled..], &mut ends[ended..]);
        line += lines(&input[..read]);
        input = &input[read..];
        (filled, ended) = (filled + wrote, ended + more);
        match result {
            ReadRecordResult::InputEmpty if is_ended => {}
            ReadRecordResult::InputEmpty => (input, is_ended) = (b"\n", true),
            ReadRecordResult::OutputFull => fields.resize(fields.len() * 2, 0),
            ReadRecordResult::OutputEndsFull => ends.resize(ends.len() * 2, 0),
            ReadRecordResult::End => return Ok((records, None)),
            ReadRecordResult::Record => {
                let starts = std::iter::once(0).chain(ends[..ended].iter().copied());
                let cell = |(start, end): (usize, &usize)| String::from_utf8_lossy(&fields[start..*end]).trim().to_owned();
                let cells: Vec<String> = starts.zip(&ends[..ended]).map(cell).collect();
                if cells.iter().any(|cell| !cell.is_empty()) {
                    records.push((begins, cells));
                }
                if is_unclosed {
                    return Ok((records, Some(begins)));
                }
                (filled, ended, is_new) = (0, 0, true);
            }
        }
    }
}

fn lines(text: &[u8]) -> u64 {
    text.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        let cells = ["+34600111222", "=1+1", "@SUM(A1)", "a,b", "say \"hi\"", "-5", "+34\n=1"].map(quoted);
        assert_eq!(cells, ["+34600111222", "'=1+1", "'@SUM(A1)", "\"a,b\"", "\"say \"\"hi\"\"\"", "-5", "\"'+34\n=1\""]);
        assert_eq!(["'=1+1", "'tis", "+34"].map(unquoted), ["=1+1", "'tis", "+34"]);
    }

    #[test]
    fn a_file_is_read_with_its_lines() {
        let read = records("\u{feff}name;phone\nAna;\"a;\nb\"\n\n;\nBo;2\n".as_bytes()).expect("UTF-8");
        let cells = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
        assert_eq!(read[0], (1, cells(["name", "phone"])));
        assert_eq!(read[1], (2, cells(["Ana", "a;\nb"])));
        assert_eq!((read.len(), &read[2]), (3, &(6, cells(["Bo", "2"]))));
        let read = records(b"name,phone\r\nAna,1\r\n\r\nBo,2\r\n").expect("UTF-8");
        assert_eq!(read.iter().map(|(line, _)| *line).collect::<Vec<_>>(), [1, 2, 4]);
        assert!(records(b"name\n\xff\n").is_err());
        assert_eq!(records(b"").expect("nothing"), []);
    }

    #[test]
    fn a_quotation_mark_that_is_not_closed_is_found_with_its_line() {
        for (file, line) in
            [("a,b\n1,2\n3,\"4\n5,6\n", 3), ("a,b\n\n3,\"4", 3), ("a\nb\n\"", 3), ("a\nb\n\"\n", 3), ("a\n\"\n\"\n\"\"\"\n", 4), ("\"a", 1)]
        {
            let error = records(file.as_bytes()).expect_err(file);
            assert_eq!(error.message_without("file"), format!("line {line} {UNCLOSED}"), "{file:?}");
            assert_eq!(first_records(file.as_bytes()).expect("a beginning")[0].0, 1, "{file:?}");
        }
        for file in ["a\n\"\"", "a\n5\" pipe", "a\r\n\"b\nc\"\r\n", "\"a\"", "a\n\"b\"\n\n", "\n"] {
            assert!(records(file.as_bytes()).is_ok(), "{file:?}");
        }
    }
}
