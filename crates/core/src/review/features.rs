//! Extracts the features of a text for the review's model: hashed words, word pairs, pieces of words, and traits such as loudness.
//!
//! The training reads the same features (`cargo run -p nuncio-core --example review_features`); after a change here, train the model again.

use std::collections::BTreeMap;
use std::ops::Range;

/// Number of features; a power of two.
pub const BUCKETS: usize = 1 << 16;
/// Maximum number of words read of a text.
const WORDS: usize = 600;
/// Lengths of pieces of words.
const PIECES: Range<usize> = 3..6;

/// Cheap top-level domains that occur disproportionately in fraud.
const CHEAP: &[&str] = &[
    "top", "xyz", "click", "icu", "cyou", "buzz", "rest", "cfd", "sbs", "monster", "quest", "gq", "tk", "ml", "cf", "ga", "bond", "vip",
    "loan", "win", "bid", "life", "live", "online", "site", "info", "support", "help", "zip", "mov", "ru", "cc", "pw", "ws", "club",
];

/// Features of a text: buckets, and the parts of the text with each.
#[derive(Debug, Default)]
pub struct Features {
    found: BTreeMap<u32, Vec<Range<usize>>>,
}

impl Features {
    /// Returns the features of a text; the same on every machine.
    pub fn of(text: &str) -> Self {
        let mut all = Self::default();
        let mut previous: Option<(String, usize)> = None;
        let mut count = 0;
        for (start, raw) in words(text).take(WORDS) {
            count += 1;
            let span = start..start + raw.len();
            if is_link(raw) {
                all.link(raw, &span);
                previous = all.pair(previous, "<link>", &span);
                continue;
            }
            let Some(word) = normal(raw) else {
                previous = None;
                continue;
            };
            all.add("w", &word, &span);
            all.pieces(&word, &span);
            all.number(raw, &span);
            previous = all.pair(previous, &word, &span);
        }
        all.shape(text, count);
        all
    }

    /// Returns the buckets in ascending order, and their common value, which makes a vector of length 1.
    pub fn vector(&self) -> (impl Iterator<Item = u32> + '_, f32) {
        let count = u16::try_from(self.found.len()).unwrap_or(u16::MAX);
        (self.found.keys().copied(), 1.0 / f32::from(count.max(1)).sqrt())
    }

    /// Returns the buckets with their parts of the text.
    pub(super) fn spans(&self) -> impl Iterator<Item = (u32, &[Range<usize>])> {
        self.found.iter().map(|(bucket, spans)| (*bucket, spans.as_slice()))
    }

    fn add(&mut self, kind: &str, what: &str, span: &Range<usize>) {
        self.found.entry(bucket(kind, what)).or_default().push(span.clone());
    }

    fn pair(&mut self, previous: Option<(String, usize)>, word: &str, span: &Range<usize>) -> Option<(String, usize)> {
        if let Some((before, start)) = previous {
            self.add("p", &format!("{before} {word}"), &(start..span.end));
        }
        Some((word.to_owned(), span.start))
    }

    fn pieces(&mut self, word: &str, span: &Range<usize>) {
        let marked: Vec<char> = format!("_{word}_").chars().collect();
        for length in PIECES {
            for piece in marked.windows(length) {
                self.add("c", &piece.iter().collect::<String>(), span);
            }
        }
    }

    /// Adds traits of a link. The host is only split into words: rules decide which name belongs to whom.
    fn link(&mut self, raw: &str, span: &Range<usize>) {
        let lower = raw.to_lowercase();
        let rest = lower.split_once("://").map_or(lower.as_str(), |(_, rest)| rest);
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        self.add("l", "any", span);
        let tld = host.rsplit('.').next().unwrap_or_default();
        let signs = [
            ("plain", lower.starts_with("http://")),
            ("bare", !lower.contains("://")),
            ("cheap", CHEAP.contains(&tld)),
            ("digits", host.chars().any(|c| c.is_ascii_digit())),
            ("address", host.split('.').all(|label| label.chars().all(|c| c.is_ascii_digit()))),
            ("hyphen", host.contains('-')),
            ("hyphens", host.matches('-').count() > 1),
            ("deep", host.matches('.').count() > 2),
        ];
        signs.iter().filter(|(_, holds)| *holds).for_each(|(name, _)| self.add("l", name, span));
        for word in host.split(['.', '-']).filter(|word| word.len() > 2) {
            self.add("h", word, span);
        }
    }

    /// Adds amounts of money, phone numbers and short numbers by their shape.
    fn number(&mut self, raw: &str, span: &Range<usize>) {
        let digits: String = raw.chars().filter(char::is_ascii_digit).collect();
        if digits.is_empty() {
            return;
        }
        if raw.contains(['£', '$', '€', '₹']) {
            self.add("n", "money", span);
            self.add("n", &format!("money{}", digits.len()), span);
        }
        if digits.len() == raw.trim_matches(|c: char| !c.is_alphanumeric()).chars().count() {
            self.add("n", &format!("digits{}", digits.len().min(13)), span);
            if digits.len() >= 9 && (digits.starts_with("09") || digits.starts_with("087")) {
                self.add("n", "premium", span);
            }
        }
        let letters = raw.chars().filter(|c| c.is_alphabetic()).count();
        if letters > 2 && raw.chars().next().is_some_and(char::is_alphabetic) && raw.chars().last().is_some_and(char::is_alphabetic) {
            self.add("n", "within", span);
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
            self.add("s", &format!("capitals{}", (capitals * 10 / letters).min(6)), &whole);
        }
        self.add("s", &format!("shouts{}", text.matches('!').count().min(4)), &whole);
        self.add("s", &format!("words{}", (words / 6).min(6)), &whole);
        self.add("s", &format!("digits{}", (text.chars().filter(char::is_ascii_digit).count() / 6).min(5)), &whole);
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

fn is_link(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    if lower.starts_with("http:/") || lower.starts_with("https:/") || lower.starts_with("www.") {
        return true;
    }
    let host = lower.split('/').next().unwrap_or_default();
    let Some((name, tld)) = host.rsplit_once('.') else { return false };
    let plain = |part: &str| part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '.'));
    let name_fits = name.len() >= 2 && name.chars().any(|c| c.is_ascii_alphabetic()) && plain(name) && !name.contains("..");
    let known = matches!(
        tld,
        "com" | "net" | "org" | "co" | "uk" | "es" | "fr" | "de" | "it" | "pt" | "br" | "io" | "ly" | "me" | "biz" | "example"
    );
    name_fits && tld.chars().all(|c| c.is_ascii_alphabetic()) && (known || CHEAP.contains(&tld) || lower.contains('/'))
}

/// Normalizes a word: lower case, no accents, every digit as 0. `None` for non-Latin scripts, which the training does not cover.
fn normal(word: &str) -> Option<String> {
    let mut out = String::with_capacity(word.len());
    for c in word.chars().flat_map(char::to_lowercase) {
        match c {
            '0'..='9' => out.push('0'),
            'a'..='z' => out.push(c),
            'á' | 'à' | 'â' | 'ä' | 'ã' | 'å' => out.push('a'),
            'é' | 'è' | 'ê' | 'ë' => out.push('e'),
            'í' | 'ì' | 'î' | 'ï' => out.push('i'),
            'ó' | 'ò' | 'ô' | 'ö' | 'õ' => out.push('o'),
            'ú' | 'ù' | 'û' | 'ü' => out.push('u'),
            'ñ' => out.push('n'),
            'ç' => out.push('c'),
            'ß' => out.push_str("ss"),
            '£' | '$' | '€' | '₹' => out.push('$'),
            '%' | '&' | '+' | '@' | '#' | '/' => out.push(c),
            c if c.is_alphabetic() => return None,
            _ => {}
        }
    }
    (!out.is_empty()).then_some(out)
}

/// Returns the bucket of a feature: FNV-1a, 64 bits, folded. Short, and permanently stable.
fn bucket(kind: &str, what: &str) -> u32 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in kind.bytes().chain([b':']).chain(what.bytes()) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    ((hash ^ (hash >> 29)) as u32) & (BUCKETS as u32 - 1)
}
