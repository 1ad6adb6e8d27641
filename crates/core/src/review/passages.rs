//! Splits long texts into passages, so that fraud is not diluted by harmless sentences around it.

use std::ops::Range;

use super::words::sentences;

/// Maximum number of words of a text that is judged as a whole only.
const SHORT: usize = 40;
/// Minimum number of words of a passage.
const PASSAGE: usize = 20;
/// Maximum number of words between two breaks, for texts without full stops.
const SENTENCE: usize = 40;

/// Returns the passages of a long text: sentences that follow one another, each passage from the middle of the one before on. None of a
/// short text.
pub(super) fn passages(text: &str) -> Vec<Range<usize>> {
    if text.split_whitespace().nth(SHORT).is_none() {
        return Vec::new();
    }
    let pieces: Vec<(Range<usize>, usize)> = sentences(text).flat_map(|sentence| pieces(text, sentence)).collect();
    let (mut found, mut rest) = (Vec::new(), pieces.as_slice());
    while let Some((first, _)) = rest.first() {
        let passage = &rest[..holding(rest, PASSAGE)];
        let (last, _) = &passage[passage.len() - 1];
        found.push(first.start..last.end);
        if passage.len() == rest.len() {
            break;
        }
        let words: usize = passage.iter().map(|(_, words)| words).sum();
        rest = &rest[(holding(passage, words.div_ceil(2)) - 1).max(1)..];
    }
    found
}

/// Returns how many pieces hold a number of words; all of them if they do not.
fn holding(pieces: &[(Range<usize>, usize)], words: usize) -> usize {
    let mut sum = 0;
    let ends = pieces.iter().position(|(_, count)| {
        sum += count;
        sum >= words
    });
    ends.map_or(pieces.len(), |at| at + 1)
}

/// Returns the pieces of a sentence with their numbers of words: usually one.
fn pieces(text: &str, sentence: &str) -> Vec<(Range<usize>, usize)> {
    let start = |part: &str| part.as_ptr() as usize - text.as_ptr() as usize;
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let piece = |words: &[&str]| Some((start(words.first()?)..start(words.last()?) + words.last()?.len(), words.len()));
    words.chunks(SENTENCE).filter_map(piece).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_a_long_text_and_overlap() {
        let text = (0..30).map(|n| format!("This is the sentence number {n}.")).collect::<Vec<_>>().join(" ");
        let found = passages(&text);
        assert_eq!((found.first().map(|part| part.start), found.last().map(|part| part.end)), (Some(0), Some(text.len())));
        assert!(found.windows(2).all(|pair| pair[0].start < pair[1].start && pair[1].start < pair[0].end), "{found:?}");
        assert!(found.iter().all(|part| text[part.clone()].split_whitespace().count() <= PASSAGE + 6), "{found:?}");
        assert!(passages("One short text. And one more sentence.").is_empty());
        assert!(passages(&"word ".repeat(1000)).len() > 20);
    }
}
