//! Splits text into SMS segments.
//!
//! The alphabet is the default one of 3GPP TS 23.038 with its extension table, where a character takes one or two septets; a text with any
//! other character uses UCS-2, where it takes one or two 16-bit units. A text that does not fit one message is split into segments, each of
//! which loses six bytes to the header that lets the phone reassemble them. Escape sequences and surrogate pairs are never split.

use serde::{Deserialize, Serialize};

use crate::channel::named;

named! {
    /// Encoding of a short message.
    #[cfg_attr(feature = "openapi", schema(as = SmsEncoding))]
    Encoding {
        /// The default alphabet, seven bits per character.
        Gsm7 = 1 "gsm7",
        /// UCS-2, sixteen bits per unit, for all other texts.
        Ucs2 = 2 "ucs2",
    }
}

/// Encoding of an inbound short message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Alphabet {
    /// The default alphabet, one septet per octet.
    Gsm7,
    /// 16-bit units, big endian.
    Ucs2,
    /// ISO 8859-1.
    Latin1,
}

/// The default alphabet, by septet. The escape to the extension table stands at 0x1B and is not a character.
const DEFAULT: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{1b}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
     ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// The extension table: the septet after the escape.
const EXTENSION: &[(char, u8)] = &[
    ('\u{c}', 0x0a),
    ('^', 0x14),
    ('{', 0x28),
    ('}', 0x29),
    ('\\', 0x2f),
    ('[', 0x3c),
    ('~', 0x3d),
    (']', 0x3e),
    ('|', 0x40),
    ('€', 0x65),
];
const ESCAPE: u8 = 0x1b;

impl Encoding {
    /// Returns the units of a single message.
    pub const fn alone(self) -> usize {
        match self {
            Self::Gsm7 => 160,
            Self::Ucs2 => 70,
        }
    }

    /// Returns the units of each of several segments.
    pub const fn part(self) -> usize {
        match self {
            Self::Gsm7 => 153,
            Self::Ucs2 => 67,
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Self::Gsm7 => 1 + usize::from(default_septet(c).is_none()),
            Self::Ucs2 => c.len_utf16(),
        }
    }
}

/// A character outside the default alphabet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Foreign {
    pub character: char,
    /// Position in code points, from 0.
    pub position: usize,
}

/// Size of a text as SMS.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Measure {
    pub encoding: Encoding,
    /// Number of segments.
    pub segments: u16,
    /// Septets or 16-bit units of the text, without headers.
    pub units: usize,
    /// The first character that requires UCS-2.
    pub forced_by: Option<Foreign>,
}

/// One segment of a text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Segment {
    /// Septets, one per byte, escapes included.
    Gsm7(Vec<u8>),
    /// 16-bit units.
    Ucs2(Vec<u16>),
}

impl Segment {
    /// Returns the number of units.
    pub fn units(&self) -> usize {
        match self {
            Self::Gsm7(septets) => septets.len(),
            Self::Ucs2(units) => units.len(),
        }
    }
}

/// Decodes the octets of an inbound short message. After an unknown escape, the next character is read as is (3GPP TS 23.038, 6.2.1.1);
/// NUL, which the database cannot store in text, becomes U+FFFD. A byte order mark is not part of the text.
pub fn read(alphabet: Alphabet, octets: &[u8]) -> String {
    let text = match alphabet {
        Alphabet::Gsm7 => read_gsm7(octets),
        Alphabet::Ucs2 => {
            let units =
                octets.strip_prefix(b"\xfe\xff").unwrap_or(octets).chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            char::decode_utf16(units).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
        }
        Alphabet::Latin1 => octets.iter().copied().map(char::from).collect(),
    };
    if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text }
}

fn read_gsm7(octets: &[u8]) -> String {
    let plain = |octet: u8| match octet {
        ESCAPE => None,
        octet if is_same_in_ascii(char::from(octet)) => Some(char::from(octet)),
        octet => DEFAULT.chars().nth(usize::from(octet)),
    };
    let extended = |octet: u8| EXTENSION.iter().find(|(_, septet)| *septet == octet).map(|(c, _)| *c);
    let mut rest = octets.iter().copied();
    let mut text = String::with_capacity(octets.len());
    while let Some(octet) = rest.next() {
        let read =
            if octet == ESCAPE { rest.next().map_or(Some(' '), |next| extended(next).or_else(|| plain(next))) } else { plain(octet) };
        text.push(read.unwrap_or(char::REPLACEMENT_CHARACTER));
    }
    text
}

/// Fast path: characters that have the same position as in ASCII.
fn is_same_in_ascii(c: char) -> bool {
    matches!(c, ' '..='#' | '%'..='?' | 'A'..='Z' | 'a'..='z')
}

fn default_septet(c: char) -> Option<u8> {
    if is_same_in_ascii(c) {
        return Some(c as u8);
    }
    let at = DEFAULT.chars().position(|known| known == c).filter(|at| *at != usize::from(ESCAPE))?;
    u8::try_from(at).ok()
}

fn extension_septet(c: char) -> Option<u8> {
    EXTENSION.iter().find(|(known, _)| *known == c).map(|(_, septet)| *septet)
}

/// Measures `text`. An empty text is one message.
pub fn measure(text: &str) -> Measure {
    let mut characters = text.chars().enumerate();
    let forced_by = characters.find(|(_, c)| default_septet(*c).is_none() && extension_septet(*c).is_none());
    let forced_by = forced_by.map(|(position, character)| Foreign { character, position });
    let encoding = if forced_by.is_some() { Encoding::Ucs2 } else { Encoding::Gsm7 };
    let units = text.chars().map(|c| encoding.width(c)).sum();
    let mut segments = 1_u16;
    cut(text, encoding, units, |_, begins| segments = segments.saturating_add(u16::from(begins)));
    Measure { encoding, segments, units, forced_by }
}

/// Splits `text` into segments.
pub fn segments(text: &str) -> Vec<Segment> {
    let Measure { encoding, units, .. } = measure(text);
    let empty = || match encoding {
        Encoding::Gsm7 => Segment::Gsm7(Vec::new()),
        Encoding::Ucs2 => Segment::Ucs2(Vec::new()),
    };
    let (mut segments, mut part) = (Vec::new(), empty());
    cut(text, encoding, units, |c, begins| {
        if begins {
            segments.push(std::mem::replace(&mut part, empty()));
        }
        match &mut part {
            Segment::Gsm7(septets) => match default_septet(c) {
                Some(septet) => septets.push(septet),
                None => septets.extend([ESCAPE, extension_septet(c).unwrap_or_default()]),
            },
            Segment::Ucs2(units) => units.extend_from_slice(c.encode_utf16(&mut [0; 2])),
        }
    });
    segments.push(part);
    segments
}

/// Calls `each` with each character, and whether a segment starts before it.
fn cut(text: &str, encoding: Encoding, units: usize, mut each: impl FnMut(char, bool)) {
    let most = if units <= encoding.alone() { encoding.alone() } else { encoding.part() };
    let mut used = 0;
    for c in text.chars() {
        let width = encoding.width(c);
        let begins = used + width > most;
        used = if begins { width } else { used + width };
        each(c, begins);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn takes(text: &str) -> (Encoding, u16, usize) {
        let Measure { encoding, segments, units, .. } = measure(text);
        (encoding, segments, units)
    }

    #[test]
    fn the_alphabet_has_every_septet_once() {
        assert_eq!(DEFAULT.chars().count(), 128);
        for (septet, c) in DEFAULT.chars().enumerate().filter(|(septet, _)| *septet != usize::from(ESCAPE)) {
            assert_eq!(default_septet(c), Some(septet as u8), "{c:?}");
        }
        assert_eq!(default_septet('\u{1b}'), None);
        // Easy to get wrong (3GPP TS 23.038, 6.2.1).
        let known = [('@', 0x00), ('$', 0x02), ('Ç', 0x09), ('Δ', 0x10), ('_', 0x11), ('É', 0x1f), ('¤', 0x24), ('¡', 0x40), ('§', 0x5f)];
        for (c, septet) in known.into_iter().chain([('¿', 0x60), ('à', 0x7f), ('Ä', 0x5b), ('ü', 0x7e), ('Ξ', 0x1a), ('Æ', 0x1c)]) {
            assert_eq!(default_septet(c), Some(septet), "{c:?}");
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_text() {
        assert_eq!(read(Alphabet::Ucs2, b"\xfe\xff\x00S\xfe\xff"), "S\u{feff}");
    }

    #[test]
    fn where_one_message_ends() {
        use Encoding::{Gsm7, Ucs2};
        for (text, expected) in [
            (String::new(), (Gsm7, 1, 0)),
            ("a".repeat(160), (Gsm7, 1, 160)),
            ("a".repeat(161), (Gsm7, 2, 161)),
            ("a".repeat(306), (Gsm7, 2, 306)),
            ("a".repeat(307), (Gsm7, 3, 307)),
            ("€".repeat(80), (Gsm7, 1, 160)),
            ("€".repeat(81), (Gsm7, 2, 162)),
            // 76 characters of two septets fill a segment to 152; the last septet stays empty.
            ("€".repeat(152), (Gsm7, 2, 304)),
            ("€".repeat(153), (Gsm7, 3, 306)),
            ("ж".repeat(70), (Ucs2, 1, 70)),
            ("ж".repeat(71), (Ucs2, 2, 71)),
            ("\u{1F600}".repeat(35), (Ucs2, 1, 70)),
            ("\u{1F600}".repeat(36), (Ucs2, 2, 72)),
            ("\u{1F600}".repeat(67), (Ucs2, 3, 134)),
        ] {
            assert_eq!(takes(&text), expected, "{} x {:?}", text.chars().count(), text.chars().next());
        }
    }

    #[test]
    fn the_first_foreign_character_is_named() {
        assert_eq!(measure("Grüße {1}").forced_by, None);
        assert_eq!(measure("a\u{2019}s ç").forced_by, Some(Foreign { character: '\u{2019}', position: 1 }));
        assert_eq!(measure("\u{1b}").encoding, Encoding::Ucs2, "a bare escape cannot be sent as one");
    }
}
