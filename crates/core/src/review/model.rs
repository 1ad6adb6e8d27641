//! The review's model: one weight per feature. See `training/` for its data and training.

use std::collections::HashMap;
use std::ops::Range;

use super::features::{BUCKETS, Features};

/// A trained model: scale and bias as little-endian `f32`, then one `i8` per bucket. A weight is scale times that number.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    scale: f32,
    bias: f32,
    weights: &'a [u8; BUCKETS],
}

/// Maximum number of words shown as reasons.
const REASONS: usize = 5;
/// Minimum number of words: shorter texts, such as a variable's value, are not meaningful alone.
const FEWEST_WORDS: usize = 3;

/// Minimum number of words in Latin letters that are judged although most of a text is in others: a tail must not hide them.
const LATIN_WORDS: usize = 8;

/// Returns whether a text is in a script that the training covers: mostly in its letters, or with a passage in Latin ones.
pub(super) fn is_learned(text: &str) -> bool {
    is_latin(text)
        || mostly(text, |c| matches!(c, 'a'..='z' | 'A'..='Z' | '\u{370}'..='\u{52f}' | '\u{600}'..='\u{6ff}' | '\u{900}'..='\u{97f}'))
}

/// Returns whether a text is mostly in Latin letters, or has a passage in them.
pub(super) fn is_latin(text: &str) -> bool {
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic());
    mostly(text, |c| c < '\u{250}' || matches!(c, '\u{1e00}'..='\u{1eff}'))
        || text.split_whitespace().filter(is_word).nth(LATIN_WORDS - 1).is_some()
}

/// Returns whether at least half of a text's letters fit.
fn mostly(text: &str, fits: impl Fn(char) -> bool) -> bool {
    let letters = || text.chars().filter(|c| c.is_alphabetic());
    letters().filter(|c| fits(*c)).count() * 2 >= letters().count()
}

impl Default for Model<'static> {
    /// Returns the model for reviews of this version.
    fn default() -> Self {
        static FILE: &[u8; 8 + BUCKETS] = include_bytes!("weights.bin");
        const { Self::new(FILE) }
    }
}

impl<'a> Model<'a> {
    /// Parses a trained model; `None` if the bytes are invalid.
    pub fn read(file: &'a [u8]) -> Option<Self> {
        Some(Self::new(file.try_into().ok()?))
    }

    const fn new(file: &'a [u8; 8 + BUCKETS]) -> Self {
        let ([s0, s1, s2, s3, b0, b1, b2, b3, ..], Some(weights)) = (file, file.last_chunk()) else { unreachable!() };
        Self { scale: f32::from_le_bytes([*s0, *s1, *s2, *s3]), bias: f32::from_le_bytes([*b0, *b1, *b2, *b3]), weights }
    }

    /// Judges a text: the natural logarithm of the odds that it is abuse. `None` if it is too short, or in a script that was not learned.
    pub(super) fn judge(&self, text: &str) -> Option<f32> {
        text.split_whitespace().nth(FEWEST_WORDS - 1)?;
        if !is_learned(text) {
            return None;
        }
        let features = Features::of(text);
        let (buckets, value) = features.vector();
        let sum: f32 = buckets.map(|bucket| self.weight(bucket)).sum();
        Some(self.bias + sum * value)
    }

    /// Returns the parts of a text with the most weight towards abuse, heaviest first and without overlaps.
    pub(super) fn reasons(&self, text: &str) -> Vec<Range<usize>> {
        let mut parts: HashMap<Range<usize>, f32> = HashMap::new();
        for (bucket, span) in Features::of(text).spans() {
            *parts.entry(span).or_default() += self.weight(bucket);
        }
        let mut parts: Vec<_> = parts.into_iter().filter(|(_, share)| *share > 0.0).collect();
        parts.sort_by(|(a, x), (b, y)| y.total_cmp(x).then((a.start, a.end).cmp(&(b.start, b.end))));
        let mut chosen: Vec<Range<usize>> = Vec::new();
        for (span, _) in parts {
            if chosen.len() < REASONS && chosen.iter().all(|known| span.end <= known.start || span.start >= known.end) {
                chosen.push(span);
            }
        }
        chosen
    }

    fn weight(&self, bucket: u32) -> f32 {
        let byte = self.weights.get(bucket as usize).copied().unwrap_or_default();
        self.scale * f32::from(i8::from_le_bytes([byte]))
    }
}
