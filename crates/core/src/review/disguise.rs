//! Reads texts as people see them: fraud hides words from filters by invisible characters, letters of other alphabets that look alike,
//! styled letters, letters spaced apart, and digits in place of letters.

use unicode_normalization::UnicodeNormalization as _;

use super::finding::{Category, Finding};

/// Letters of other alphabets, and the Latin ones that they resemble.
const LOOKALIKES: (&str, &str) =
    ("аеорсухіјѕԁһӏкмтвАВЕКМНОРСТУХІЈЅαονρτικυχΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "aeopcyxijsdhlkmtbABEKMHOPCTYXIJSaovptikuxABEZHIKMNOPTYX");
/// Small capitals, which no normalization knows.
const SMALL: (&str, &str) = ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnoprstuvwyz");
/// Digits and signs in place of letters, and the letters that they resemble.
const DIGITS: (&str, &str) = ("013457@$", "oieastas");
/// Minimum number of words with such digits that are a disguise.
const SWAPPED: usize = 3;
/// The first letter after those of the European languages, which are read as they are.
const STYLED_FROM: char = '\u{250}';
/// Minimum number of letters spaced apart that are read as a word, and that are a disguise.
const SPACED: usize = 4;
const HIDDEN: usize = 5;

/// Punctuation around words.
const SIGNS: &[char] = &['.', ',', ';', ':', '!', '?', '"', '\'', '(', ')', '*'];

/// What a disguised text says.
pub(super) struct Reading {
    pub(super) text: String,
    /// For each byte of `text`, and for its end, the position in the original.
    places: Vec<usize>,
    /// The first word that must be a disguise, if any. Other differences have honest reasons too.
    disguised: Option<Finding>,
}

impl Reading {
    /// Returns what a text says; `None` if it is written plainly.
    pub(super) fn of(original: &str) -> Option<Self> {
        if original.is_ascii() && !spaced_apart(original) && !original.split_ascii_whitespace().any(swaps_letters) {
            return None;
        }
        let (mut letters, mut disguised) = visible(original);
        let mostly_latin = {
            let latin = letters.iter().filter(|(_, c)| c.is_ascii_alphabetic()).count();
            latin * 2 > letters.iter().filter(|(_, c)| c.is_alphabetic()).count()
        };
        disguised = disguised.or(replace_lookalikes(&mut letters, mostly_latin)).or(replace_digits(&mut letters));
        let (letters, joined) = join_spaced(&letters);
        disguised = disguised.filter(|_| mostly_latin).or(joined);
        if letters.iter().map(|(_, c)| *c).eq(original.chars()) {
            return None;
        }
        let (mut text, mut places) = (String::with_capacity(original.len()), Vec::with_capacity(original.len() + 1));
        for (at, c) in letters {
            text.push(c);
            places.resize(text.len(), at);
        }
        places.push(original.len());
        let disguised = disguised.map(|at| Finding(Category::Disguise, word_at(original, at).to_owned()));
        Some(Self { text, places, disguised })
    }

    /// Returns the finding about the disguise itself, if it must be one.
    pub(super) fn disguised(&self) -> Vec<Finding> {
        self.disguised.iter().cloned().collect()
    }

    /// Returns the position in the original of a part of the text.
    pub(super) fn place(&self, part: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        let at = |byte: usize| self.places.get(byte).copied().unwrap_or_default();
        at(part.start)..at(part.end)
    }

    /// Returns a finding in the text with its fragment as the original has it.
    pub(super) fn locate(&self, original: &str, finding: Finding) -> Finding {
        let Finding(category, fragment) = finding;
        if category == Category::Disguise {
            return Finding(category, fragment);
        }
        let part = self.text.find(&fragment).map(|at| self.place(&(at..at + fragment.len())));
        let written = part.and_then(|part| original.get(part)).unwrap_or_default();
        Finding(category, written.trim().to_owned())
    }
}

/// Returns whether single letters follow one another, as in "c a s h": only then can a text of ASCII be disguised.
fn spaced_apart(text: &str) -> bool {
    let bytes = text.as_bytes();
    let single = |at: usize| bytes[at].is_ascii_alphabetic() && !bytes[at + 1].is_ascii_alphanumeric();
    (0..bytes.len().saturating_sub(5)).any(|at| single(at) && single(at + 2) && bytes[at + 4].is_ascii_alphabetic())
}

/// Returns the visible characters with their positions, styled letters as plain ones, and where an invisible one stands within a word.
fn visible(original: &str) -> (Vec<(usize, char)>, Option<usize>) {
    let (mut letters, mut hidden): (Vec<(usize, char)>, Option<usize>) = (Vec::new(), None);
    let mut skipped = false;
    for (at, c) in original.char_indices() {
        if is_invisible(c) {
            // Soft hyphens say where a word can be broken.
            skipped |= c != '\u{ad}';
            continue;
        }
        let within = skipped && c.is_ascii_alphabetic() && letters.last().is_some_and(|(_, before)| before.is_ascii_alphabetic());
        hidden = hidden.or(within.then_some(at));
        skipped = false;
        letters.push((at, plain(c)));
    }
    (letters, hidden)
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// Returns a styled letter or sign as a plain one: bold, full width, in a circle, or a small capital.
fn plain(c: char) -> char {
    if c < STYLED_FROM {
        return c;
    }
    let mut parts = std::iter::once(c).nfkd();
    match (parts.next(), parts.next()) {
        (Some(one), None) if one.is_ascii() => one,
        _ => swapped(c, SMALL).unwrap_or(c),
    }
}

/// Returns the letter of the second text at the place of `c` in the first.
fn swapped(c: char, (from, to): (&str, &str)) -> Option<char> {
    from.chars().zip(to.chars()).find(|(from, _)| *from == c).map(|(_, to)| to)
}

/// Replaces letters of other alphabets in words that mix them with Latin ones and, in a mostly Latin text, in words of nothing else. Returns
/// where the first such word begins.
fn replace_lookalikes(letters: &mut [(usize, char)], mostly_latin: bool) -> Option<usize> {
    let mut first = None;
    for word in letters.chunk_by_mut(|(_, a), (_, b)| a.is_alphabetic() && b.is_alphabetic()) {
        let foreign = word.iter().filter(|(_, c)| !c.is_ascii()).count();
        // A single foreign letter is a sign, as in "10 μm" or "σ".
        if foreign == 0
            || word.len() < 2
            || (foreign == word.len() && !mostly_latin)
            || word.iter().any(|(_, c)| !c.is_ascii() && swapped(*c, LOOKALIKES).is_none())
        {
            continue;
        }
        first = first.or(Some(word[0].0));
        for (_, c) in word.iter_mut() {
            *c = swapped(*c, LOOKALIKES).unwrap_or(*c);
        }
    }
    first
}

/// Replaces digits in place of letters: "y0ur acc0unt". Returns where the first such word begins if there are many.
fn replace_digits(letters: &mut [(usize, char)]) -> Option<usize> {
    let written: Vec<String> = words(letters).map(|word| word.iter().map(|(_, c)| *c).collect()).collect();
    if !written.iter().any(|word| swaps_letters(word)) {
        return None;
    }
    let (mut first, mut count) = (None, 0);
    for (word, written) in words(letters).zip(&written).filter(|(_, written)| has_digit_within(written)) {
        first = first.or(word.first().map(|(at, _)| *at));
        count += 1;
        let last = written.trim_end_matches(SIGNS).chars().count().saturating_sub(1);
        for (n, (_, c)) in word.iter_mut().enumerate() {
            // As in "paypa1".
            *c = if *c == '1' && n == last { 'l' } else { swapped(*c, DIGITS).unwrap_or(*c) };
        }
    }
    first.filter(|_| count >= SWAPPED)
}

/// Returns the words, without the blanks between them.
fn words(letters: &mut [(usize, char)]) -> impl Iterator<Item = &mut [(usize, char)]> {
    letters.split_mut(|(_, c)| c.is_whitespace()).filter(|word| !word.is_empty())
}

/// Returns whether digits stand for letters in a word. Codes and numbers of vehicles, which mix them too, are in capitals.
fn swaps_letters(word: &str) -> bool {
    has_digit_within(word) && word.contains(|c: char| c.is_ascii_lowercase())
}

/// Returns whether a word is made of letters and of what stands for them, with some of that between letters.
fn has_digit_within(word: &str) -> bool {
    let word = word.trim_matches(SIGNS);
    let stands = |c: char| DIGITS.0.contains(c);
    let letters = word.chars().filter(char::is_ascii_alphabetic).count();
    let within = word.trim_matches(stands).contains(stands);
    // As in the address of a payment: "ana.ruiz@bank".
    let is_address = word.split_once('@').is_some_and(|(name, host)| name.len() > 3 && host.len() > 3);
    within && !is_address && letters >= 2 && letters * 2 >= word.len() && word.chars().all(|c| c.is_ascii_alphabetic() || stands(c))
}

/// Joins letters that are spaced apart: "c a s h", "c.a.s.h". Returns also where the first long word of such letters begins.
fn join_spaced(letters: &[(usize, char)]) -> (Vec<(usize, char)>, Option<usize>) {
    let (mut joined, mut first, mut at) = (Vec::with_capacity(letters.len()), None, 0);
    while at < letters.len() {
        let length = spaced_word(letters, at);
        if length < SPACED {
            joined.push(letters[at]);
            at += 1;
            continue;
        }
        first = first.or((length >= HIDDEN).then_some(letters[at].0));
        joined.extend(letters[at..].iter().step_by(2).take(length));
        at += 2 * length - 1;
    }
    (joined, first)
}

/// Returns the number of single letters from `at` on, each separated from the next by the same sign.
fn spaced_word(letters: &[(usize, char)], at: usize) -> usize {
    let is_letter = |n: usize| letters.get(n).is_some_and(|(_, c)| c.is_ascii_alphabetic());
    let ends_word = |n: usize| letters.get(n).is_none_or(|(_, c)| !c.is_alphanumeric());
    let Some((_, sign)) = letters.get(at + 1) else { return 0 };
    if !matches!(sign, ' ' | '.' | '-' | '_' | '*') || (at > 0 && letters[at - 1].1.is_alphanumeric()) {
        return 0;
    }
    let single = |n: &usize| is_letter(*n) && ends_word(*n + 1) && (*n == at || letters[*n - 1].1 == *sign);
    (at..letters.len()).step_by(2).take_while(single).count()
}

/// Returns the word of a text that contains the byte `at`.
fn word_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind(char::is_whitespace).map_or(0, |before| text.ceil_char_boundary(before + 1));
    let end = text[at..].find(char::is_whitespace).map_or(text.len(), |after| at + after);
    &text[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disguised_word_is_read_as_it_looks() {
        for (written, read) in [
            ("c\u{200b}asino", "casino"),
            ("pass\u{ad}word", "password"),
            ("са\u{455}ino", "casino"),
            ("play at our саѕіхо now", "play at our casixo now"),
            ("ｃａｓｉｎｏ", "casino"),
            ("𝐲𝐨𝐮𝐫 𝗯𝗮𝗻𝗸 ⓒⓐⓢⓗ", "your bank cash"),
            ("ᴄᴏᴄᴀɪɴᴇ", "cocaine"),
            ("buy c o c a i n e now", "buy cocaine now"),
            ("P.A.Y.P.A.L account", "PAYPAL account"),
            ("k̶i̶l̶l̶ you", "kill you"),
            ("Ver1fy y0ur P@yP@1 acc0unt, FR33 B1TC01N", "Verify your PayPal account, FR33 BiTCoiN"),
        ] {
            assert_eq!(Reading::of(written).expect(written).text, read);
        }
        for plain in [
            "Hello Ada, 5 € off",
            "Añadir à la fête",
            "I a m",
            "A B test",
            "Привет, Ада",
            "e.g. a, b, c",
            "10 μm",
            "",
            "Flight BA2490, AB1C D3E",
            "4 you on the 1st at 5pm, covid19, 10km",
            "a1b.com/x0y",
            "ana@m0rris.com",
        ] {
            assert!(Reading::of(plain).is_none(), "{plain}: {}", Reading::of(plain).expect("a reading").text);
        }
    }

    #[test]
    fn only_what_must_be_a_disguise_is_held_against_a_text() {
        for (text, word) in [
            ("Win at c\u{200b}asino!", "c\u{200b}asino!"),
            ("the саsino", "саsino"),
            ("c-o-k-e-s now", "c-o-k-e-s"),
            ("l0se y0ur acc0unt", "l0se"),
        ] {
            let found = Reading::of(text).expect(text).disguised();
            assert_eq!(found, [Finding(Category::Disguise, word.to_owned())]);
        }
        for text in ["Family 👩\u{200d}👩\u{200d}👧", "𝐒𝐚𝐥𝐞 today", "S A L E today", "soft\u{ad}ly", "می\u{200c}خواهم", "cl1ck and w1n"]
        {
            assert!(Reading::of(text).expect(text).disguised().is_empty(), "{text}");
        }
    }

    #[test]
    fn parts_are_found_in_the_original() {
        let text = "Buy c\u{200b}ocaine 𝐧𝐨𝐰, friend";
        let reading = Reading::of(text).expect("a reading");
        let found = reading.locate(text, Finding(Category::Forbidden, "cocaine now".to_owned()));
        assert_eq!(found.1, "c\u{200b}ocaine 𝐧𝐨𝐰");
    }
}
