//! Extracts the features of a text for the review's model: hashed words, word pairs, pieces of words, and traits such as loudness.
//!
//! The training reads the same features (`cargo run -p nuncio-core --example review_features`); after a change here, train the model again.

use std::ops::Range;

use unicode_normalization::UnicodeNormalization as _;
use url::Url;

use super::links;

/// Number of features; a power of two.
pub const BUCKETS: usize = 1 << 16;
/// Maximum number of words read of a text. The passages of a longer one are also read by themselves.
const WORDS: usize = 250;
/// Lengths of pieces of words.
const PIECES: Range<usize> = 3..6;

/// Cheap top-level domains that occur disproportionately in fraud.
const CHEAP: &[&str] = &[
    "top", "xyz", "click", "icu", "cyou", "buzz", "rest", "cfd", "sbs", "monster", "quest", "gq", "tk", "ml", "cf", "ga", "bond", "vip",
    "loan", "win", "bid", "life", "live", "online", "site", "info", "support", "help", "zip", "mov", "ru", "cc", "pw", "ws", "club",
];

/// Features of a text: buckets with the parts of the text that have them, sorted, a part once for each of its features.
#[derive(Debug, Default)]
pub struct Features {
    found: Vec<(u32, [u32; 2])>,
}

/// The word before, as features have it, and where it begins.
type Previous = Option<(String, usize)>;

impl Features {
    /// Returns the features of a text; the same on every machine.
    pub fn of(text: &str) -> Self {
        // About as many as an ordinary text has for each of its bytes.
        let mut all = Self { found: Vec::with_capacity(4 * text.len().min(WORDS * 6)) };
        let mut previous: Previous = None;
        let mut count = 0;
        for (start, raw) in words(text).take(WORDS) {
            count += 1;
            let span = start..start + raw.len();
            if let Some(url) = links::link(raw) {
                all.link(raw, &url, &span);
                previous = all.pair(previous, "<link>".to_owned(), &span);
                continue;
            }
            let Some(word) = normal(raw) else {
                previous = None;
                continue;
            };
            all.add("w", &[&word], &span);
            all.pieces(&word, &span);
            all.number(raw, &span);
            previous = all.pair(previous, word, &span);
        }
        all.shape(text, count);
        all.found.sort_unstable();
        all
    }

    /// Returns the buckets in ascending order, and their common value, which makes a vector of length 1.
    pub fn vector(&self) -> (impl Iterator<Item = u32> + Clone + '_, f32) {
        let buckets = self.found.chunk_by(|(a, _), (b, _)| a == b).filter_map(|group| Some(group.first()?.0));
        let count = u16::try_from(buckets.clone().count()).unwrap_or(u16::MAX);
        (buckets, 1.0 / f32::from(count.max(1)).sqrt())
    }

    /// Returns the buckets, each with the first part of the text that has it.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u32, Range<usize>)> {
        let groups = self.found.chunk_by(|(a, _), (b, _)| a == b);
        let first = groups.filter_map(|group| group.iter().find(|(_, [start, end])| start < end));
        first.map(|(bucket, [start, end])| (*bucket, *start as usize..*end as usize))
    }

    fn add(&mut self, kind: &str, what: &[&str], span: &Range<usize>) {
        let at = |byte: usize| u32::try_from(byte).unwrap_or(u32::MAX);
        self.found.push((bucket(kind, what), [at(span.start), at(span.end)]));
    }

    fn pair(&mut self, previous: Previous, word: String, span: &Range<usize>) -> Previous {
        if let Some((before, start)) = previous {
            self.add("p", &[&before, " ", &word], &(start..span.end));
        }
        Some((word, span.start))
    }

    fn pieces(&mut self, word: &str, span: &Range<usize>) {
        let marked = format!("_{word}_");
        let ends: Vec<usize> = marked.char_indices().map(|(at, _)| at).chain([marked.len()]).collect();
        for length in PIECES {
            for edges in ends.windows(length + 1) {
                let [start, .., end] = edges else { continue };
                self.add("c", &[&marked[*start..*end]], span);
            }
        }
    }

    /// Adds traits of a link. The host is only split into words: rules decide which name belongs to whom.
    fn link(&mut self, raw: &str, url: &Url, span: &Range<usize>) {
        let host = url.host_str().unwrap_or_default();
        self.add("l", &["any"], span);
        let tld = host.rsplit('.').next().unwrap_or_default();
        let signs = [
            ("plain", raw.starts_with("http://")),
            ("bare", !raw.contains("://")),
            ("cheap", CHEAP.contains(&tld)),
            ("digits", host.chars().any(|c| c.is_ascii_digit())),
            ("address", host.split('.').all(|label| label.chars().all(|c| c.is_ascii_digit()))),
            ("hyphen", host.contains('-')),
            ("hyphens", host.matches('-').count() > 1),
            ("deep", host.matches('.').count() > 2),
        ];
        signs.iter().filter(|(_, holds)| *holds).for_each(|(name, _)| self.add("l", &[name], span));
        for word in host.split(['.', '-']).filter(|word| word.len() > 2) {
            self.add("h", &[word], span);
        }
    }

    /// Adds amounts of money, phone numbers and short numbers by their shape.
    fn number(&mut self, raw: &str, span: &Range<usize>) {
        let digits: String = raw.chars().filter(char::is_ascii_digit).collect();
        if digits.is_empty() {
            return;
        }
        if raw.contains(['£', '$', '€', '₹']) {
            self.add("n", &["money"], span);
            self.add("n", &["money", &digits.len().to_string()], span);
        }
        if digits.len() == raw.trim_matches(|c: char| !c.is_alphanumeric()).chars().count() {
            self.add("n", &["digits", &digits.len().min(13).to_string()], span);
            if digits.len() >= 9 && (digits.starts_with("09") || digits.starts_with("087")) {
                self.add("n", &["premium"], span);
            }
        }
        let letters = raw.chars().filter(|c| c.is_alphabetic()).count();
        if letters > 2 && raw.chars().next().is_some_and(char::is_alphabetic) && raw.chars().last().is_some_and(char::is_alphabetic) {
            self.add("n", &["within"], span);
        }
    }

    /// Adds loudness and length of the whole text.
    fn shape(&mut self, text: &str, words: usize) {
        let whole = 0..0;
        let (mut letters, mut capitals) = (0_usize, 0_usize);
        for c in text.chars().filter(|c| c.is_alphabetic()) {
            letters += 1;
            capitals += usize::from(c.is_uppercase());
        }
        if letters >= 12 {
            self.add("s", &["capitals", &(capitals * 10 / letters).min(6).to_string()], &whole);
        }
        let digits = text.bytes().filter(u8::is_ascii_digit).count();
        self.add("s", &["shouts", &text.matches('!').count().min(4).to_string()], &whole);
        self.add("s", &["words", &(words / 6).min(6).to_string()], &whole);
        self.add("s", &["digits", &(digits / 6).min(5).to_string()], &whole);
    }
}

/// Returns the words of a text without surrounding punctuation, with their positions.
fn words(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '(' | ')' | '|')).filter_map(move |piece| {
        let word =
            piece.trim_matches(|c: char| matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '¡' | '¿' | '\'' | '*' | '[' | ']' | '«' | '»'));
        (!word.is_empty()).then(|| (word.as_ptr() as usize - text.as_ptr() as usize, word))
    })
}

/// Normalizes a word: lower case, no accents, every digit as 0. `None` if nothing is left of it.
fn normal(word: &str) -> Option<String> {
    let mut out = String::with_capacity(word.len());
    for c in word.chars().flat_map(char::to_lowercase) {
        match c {
            '0'..='9' => out.push('0'),
            'a'..='z' => out.push(c),
            'ß' => out.push_str("ss"),
            'đ' => out.push('d'),
            'ł' => out.push('l'),
            'ø' => out.push('o'),
            'ı' => out.push('i'),
            '£' | '$' | '€' | '₹' => out.push('$'),
            '%' | '&' | '+' | '@' | '#' | '/' => out.push(c),
            // Accents are signs of their own once they are taken apart.
            c if !c.is_ascii() => out.extend(std::iter::once(c).nfd().filter(|c| c.is_alphabetic())),
            _ => {}
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the bucket of a feature: FNV-1a, 64 bits, folded. Short, and permanently stable.
fn bucket(kind: &str, what: &[&str]) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in kind.bytes().chain([b':']).chain(what.iter().flat_map(|part| part.bytes())) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    ((hash ^ (hash >> 29)) as u32) & (BUCKETS as u32 - 1)
}
