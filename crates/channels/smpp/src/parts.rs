//! Encodes text as user data, and decodes it. Pure.
//!
//! Alphabet, segments and their sizes are those of [`nuncio_domain::sms`], by which messages are priced. Here they become octets: one septet
//! per octet (SMPP carries the default alphabet unpacked), 16-bit units with the high octet first.

use nuncio_domain::sms::{self, Alphabet, Encoding, Segment, segments};

use crate::wire::{Body, DeliverSm, Sar};

/// The escape to the extension table (3GPP TS 23.038, 6.2.1).
const ESCAPE: u8 = 0x1B;
/// How a text in UCS-2 can begin, to tell the order of its octets.
const BOM: &[u8] = b"\xFE\xFF";
/// Units of a segment whose header has a 16-bit reference, which is one octet longer: 133 octets (3GPP TS 23.040, 9.2.3.24.8).
const WIDE: (usize, usize) = (152, 66);

/// How the parts of a long text are marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Marking {
    /// A header with a reference of 8 bits (3GPP TS 23.040, 9.2.3.24.1).
    Header,
    /// A header with a 16-bit reference, unless that takes more segments than were priced.
    WideHeader,
    /// Optional parameters; the SMSC makes the header.
    Sar,
    /// In one piece; the SMSC cuts it.
    Payload,
}

/// The text is longer than the 255 parts that can be numbered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct TooLong;

/// Encodes `text` as user data. `reference` distinguishes its segments from those of other messages.
pub(crate) fn bodies(text: &str, marking: Marking, reference: u16) -> Result<(Encoding, Vec<Body>), TooLong> {
    let mut segments = segments(text);
    let encoding = match segments.first() {
        Some(Segment::Ucs2(_)) => Encoding::Ucs2,
        _ => Encoding::Gsm7,
    };
    if segments.len() == 1 {
        return Ok((encoding, segments.into_iter().map(|part| Body { octets: octets(part), ..Body::default() }).collect()));
    }
    if marking == Marking::Payload {
        return Ok((encoding, vec![Body { octets: segments.into_iter().flat_map(octets).collect(), payload: true, ..Body::default() }]));
    }
    let mut wide = false;
    if marking == Marking::WideHeader {
        let cut = recut(&segments);
        wide = cut.len() <= segments.len();
        if wide {
            segments = cut;
        }
    }
    let total = u8::try_from(segments.len()).map_err(|_| TooLong)?;
    let numbered = (1..=total).zip(segments);
    let bodies = numbered.map(|(sequence, part)| {
        let sar = Sar { reference, total, sequence };
        match marking {
            Marking::Sar => Body { octets: octets(part), sar: Some(sar), ..Body::default() },
            _ => Body { octets: with_header(sar, wide, octets(part)), has_header: true, ..Body::default() },
        }
    });
    Ok((encoding, bodies.collect()))
}

fn octets(part: Segment) -> Vec<u8> {
    match part {
        Segment::Gsm7(septets) => septets,
        Segment::Ucs2(units) => units.iter().flat_map(|unit| unit.to_be_bytes()).collect(),
    }
}

fn with_header(sar: Sar, wide: bool, octets: Vec<u8>) -> Vec<u8> {
    let [high, low] = sar.reference.to_be_bytes();
    let header: &[u8] = if wide { &[6, 8, 4, high, low, sar.total, sar.sequence] } else { &[5, 0, 3, low, sar.total, sar.sequence] };
    [header, &octets].concat()
}

/// The same text in parts that are smaller by the longer header.
fn recut(segments: &[Segment]) -> Vec<Segment> {
    let (mut septets, mut units) = (Vec::new(), Vec::new());
    for part in segments {
        match part {
            Segment::Gsm7(more) => septets.extend_from_slice(more),
            Segment::Ucs2(more) => units.extend_from_slice(more),
        }
    }
    let septets = pieces(&septets, WIDE.0, |last| last == ESCAPE).map(|piece| Segment::Gsm7(piece.to_vec()));
    let units = pieces(&units, WIDE.1, |last| (0xD800..0xDC00).contains(&last)).map(|piece| Segment::Ucs2(piece.to_vec()));
    septets.chain(units).collect()
}

/// Splits `all` into pieces of at most `most`; none ends with something that `belongs` to what follows.
fn pieces<T: Copy>(mut all: &[T], most: usize, belongs: impl Fn(T) -> bool) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut end = most.min(all.len());
        if end < all.len() && belongs(all[end - 1]) {
            end -= 1;
        }
        let (piece, rest) = all.split_at(end);
        all = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// The alphabet of user data. `data_coding` as in SMPP 3.4 §5.2.19, and the groups of 3GPP TS 23.038, 4. Codings of other scripts and of
/// no script are read as Latin-1.
pub(crate) const fn alphabet(data_coding: u8) -> Alphabet {
    match data_coding {
        0x00 | 0xC0..=0xDF => Alphabet::Gsm7,
        0x08 | 0xE0..=0xEF => Alphabet::Ucs2,
        // Message classes and waiting indications: the alphabet has two bits, or one.
        0x10..=0x1F if data_coding & 0x0C == 0 => Alphabet::Gsm7,
        0x10..=0x1F if data_coding & 0x0C == 0x08 => Alphabet::Ucs2,
        0xF0..=0xFF if data_coding & 0x04 == 0 => Alphabet::Gsm7,
        _ => Alphabet::Latin1,
    }
}

/// Decodes user data without its header.
pub(crate) fn read(data_coding: u8, octets: &[u8]) -> String {
    sms::read(alphabet(data_coding), octets)
}

/// Decodes the text of a receipt, which can end with NUL. SMSCs mostly write it in ASCII, whatever its coding says: some repeat that of the
/// message. Where it really is of the default alphabet, the signs of message ids are control characters in ASCII.
pub(crate) fn read_receipt(data_coding: u8, octets: &[u8]) -> String {
    let end = octets.iter().rposition(|&octet| octet != 0).map_or(0, |last| last + 1);
    let octets = &octets[..end];
    match alphabet(data_coding) {
        // The names of fields begin with NUL.
        Alphabet::Ucs2 if octets.starts_with(b"\0") || octets.starts_with(BOM) => return read(data_coding, octets),
        Alphabet::Latin1 => return read(data_coding, octets),
        _ => {}
    }
    let sign = |&octet: &u8| match octet {
        0x00 => '@',
        0x02 => '$',
        0x11 => '_',
        octet => char::from(octet),
    };
    octets.iter().map(sign).collect()
}

/// Splits user data into its segment header, if it has one, and the rest. A malformed header counts as text.
fn strip_header(octets: &[u8]) -> (Option<Sar>, &[u8]) {
    let Some((&length, rest)) = octets.split_first() else { return (None, octets) };
    let Some((mut elements, body)) = rest.split_at_checked(usize::from(length)) else { return (None, octets) };
    let mut found = None;
    while let [kind, length, rest @ ..] = elements {
        let Some((value, rest)) = rest.split_at_checked(usize::from(*length)) else { break };
        match (kind, value) {
            (0x00, &[reference, total, sequence]) => found = Some(Sar { reference: u16::from(reference), total, sequence }),
            (0x08, &[high, low, total, sequence]) => found = Some(Sar { reference: u16::from_be_bytes([high, low]), total, sequence }),
            _ => {}
        }
        elements = rest;
    }
    (found, body)
}

impl DeliverSm {
    /// Returns the segment header, if there is one, and the user data without it.
    pub(crate) fn body(&self) -> (Option<Sar>, &[u8]) {
        // §5.2.12: the bit that announces a header.
        if self.esm_class & 0x40 == 0 { (None, &self.octets) } else { strip_header(&self.octets) }
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
