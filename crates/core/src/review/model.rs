//! The review's model: one weight per feature. See `training/` for its data and training.

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

/// The model's judgement of a text.
#[derive(Clone, Debug)]
pub(super) struct Judgement {
    /// Natural logarithm of the odds, as trained. Above 0, the text resembles abuse.
    pub(super) margin: f32,
    /// The parts of the text with the most weight, heaviest first.
    pub(super) reasons: Vec<Range<usize>>,
}

/// Returns whether a text is in a script that the training covers: mostly in Latin letters, or with a passage in them.
pub(super) fn is_learned(text: &str) -> bool {
    let latin = text.chars().filter(char::is_ascii_alphabetic).count();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let is_word = |word: &&str| word.chars().all(|c| c.is_ascii_alphabetic());
    latin * 2 >= letters || text.split_whitespace().filter(is_word).nth(LATIN_WORDS - 1).is_some()
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

    /// Judges a text; `None` if it is too short or mostly not in Latin letters.
    pub(super) fn judge(&self, text: &str) -> Option<Judgement> {
        text.split_whitespace().nth(FEWEST_WORDS - 1)?;
        if !is_learned(text) {
            return None;
        }
        let features = Features::of(text);
        let (buckets, value) = features.vector();
        let sum: f32 = buckets.map(|bucket| self.weight(bucket)).sum();
        Some(Judgement { margin: self.bias + sum * value, reasons: self.reasons(&features) })
    }

    /// Returns the parts of a text with the most weight towards abuse, without overlaps.
    fn reasons(&self, features: &Features) -> Vec<Range<usize>> {
        let mut parts: Vec<(Range<usize>, f32)> = Vec::new();
        for (bucket, spans) in features.spans() {
            let Some(span) = spans.iter().find(|span| !span.is_empty()) else { continue };
            let share = self.weight(bucket);
            match parts.iter_mut().find(|(known, _)| known == span) {
                Some((_, sum)) => *sum += share,
                None => parts.push((span.clone(), share)),
            }
        }
        parts.retain(|(_, share)| *share > 0.0);
        parts.sort_by(|(a, x), (b, y)| y.total_cmp(x).then(a.start.cmp(&b.start)));
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
