//! Counts the header fields of an email before it is parsed, because each takes hundreds of octets once parsed. Pure.
//!
//! It can count more than the parser will find, but never less: a line counts if it has a colon and can belong to a header for the parser.
//! Headers are at the beginning, after the line of a boundary, and after the header of a part that is an email itself.

use std::ops::Range;

use mail_parser::parsers::MessageStream;

/// Maximum number of header fields in an email and its parts.
pub(crate) const FIELDS: usize = 10_000;
/// Longest `Content-Type` that is read, in octets. After a longer one, any two hyphens are taken for a boundary.
const TYPE: usize = 4 * 1024;
/// Octets of a boundary that are compared: as many as it may have (RFC 2046 §5.1.1).
const BOUNDARY: usize = 70;

/// What the `Content-Type` fields of an email say about where headers begin.
#[derive(Default)]
struct Types {
    /// Beginnings of the boundaries, all of the same length, in order.
    boundaries: Vec<Vec<u8>>,
    /// Positions of fields whose part is an email, in order.
    emails: Vec<usize>,
    /// Whether a part can be an email without saying so.
    digest: bool,
    /// Whether a field was too long to be read.
    unclear: bool,
}

impl Types {
    /// `colons` are the positions of the colons of all fields, in order.
    fn read(mail: &[u8], colons: &[usize]) -> Self {
        let mut types = Self::default();
        for &colon in colons {
            types.add(mail, colon);
        }
        // Of the same length, so that one look-up tells.
        let length = types.boundaries.iter().map(Vec::len).min().unwrap_or_default().min(BOUNDARY);
        types.boundaries.iter_mut().for_each(|boundary| boundary.truncate(length));
        types.boundaries.sort_unstable();
        types.boundaries.dedup();
        types
    }

    fn add(&mut self, mail: &[u8], colon: usize) {
        let rest = &mail[colon + 1..];
        let read = &rest[..rest.len().min(TYPE)];
        let found = MessageStream::new(read).parse_content_type();
        let Some(found) = found.as_content_type() else {
            // It has no type, or no end in what was read.
            let is_cut = read.len() < rest.len();
            (self.unclear, self.digest) = (self.unclear || is_cut, self.digest || is_cut);
            self.emails.extend(is_cut.then_some(colon));
            return;
        };
        let subtype = found.subtype().unwrap_or_default();
        self.digest |= found.ctype() == "multipart" && subtype == "digest";
        self.emails.extend((found.ctype() == "message" && matches!(subtype, "rfc822" | "global")).then_some(colon));
        self.boundaries.extend(found.attribute("boundary").filter(|it| !it.is_empty()).map(|it| it.as_bytes().to_vec()));
    }

    /// Whether a part can begin after this line.
    fn divide(&self, line: &[u8]) -> bool {
        let length = self.boundaries.first().map_or(0, Vec::len);
        let is_boundary = |at: usize| line.get(at + 2..at + 2 + length).is_some_and(|text| self.has_boundary(text));
        line.windows(2).enumerate().any(|(at, pair)| pair == b"--" && (self.unclear || is_boundary(at)))
    }

    fn has_boundary(&self, text: &[u8]) -> bool {
        self.boundaries.binary_search_by(|boundary| boundary.as_slice().cmp(text)).is_ok()
    }

    /// Whether one of these octets begins the type of an email.
    fn has_email(&self, place: &Range<usize>) -> bool {
        self.emails.get(self.emails.partition_point(|&at| at < place.start)).is_some_and(|at| place.contains(at))
    }
}

/// Counts what can be header fields. `colons` are the positions of the colons of what can be `Content-Type` fields, in order.
pub(crate) fn count(mail: &[u8], colons: &[usize]) -> usize {
    let types = Types::read(mail, colons);
    // In a header, whether its part is an email. Then another header follows.
    let mut header = Some(false);
    let (mut count, mut at) = (0, 0);
    for line in mail.split_inclusive(|&b| b == b'\n') {
        let place = at..at + line.len();
        at = place.end;
        if types.divide(line) {
            // For the parser, it may be in the middle of a header.
            header = Some(header.unwrap_or_default() || types.digest);
        } else if matches!(line, b"\n" | b"\r\n") {
            header = header.filter(|is_email| *is_email).map(|_| false);
        }
        if let Some(is_email) = &mut header {
            *is_email |= types.has_email(&place);
            // The end of the email ends a name as well.
            count += usize::from(line.contains(&b':') || !line.ends_with(b"\n"));
        }
    }
    count
}

#[cfg(test)]
#[path = "fields_tests.rs"]
mod tests;
