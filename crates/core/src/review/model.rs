//! The learned part of the review: one weight for every feature. `training/` says what it was learned from and how.

use std::ops::Range;

use super::features::{BUCKETS, Features};

/// What was learned: scale and bias as `f32`, little-endian, then one `i8` for every bucket. A weight is scale times that number.
#[derive(Clone, Copy, Debug)]
pub struct Model<'a> {
    scale: f32,
    bias: f32,
    weights: &'a [u8; BUCKETS],
}

/// The most words that are shown as reasons.
const REASONS: usize = 5;
/// Shorter texts, such as the value of a variable, say nothing by themselves.
const FEWEST_WORDS: usize = 3;

/// What the model holds of a text.
#[derive(Clone, Debug)]
pub(super) struct Judgement {
    /// Above 0 the text looks like abuse. The natural logarithm of the odds, as trained.
    pub(super) margin: f32,
    /// The parts of the text that weighed most, heaviest first.
    pub(super) reasons: Vec<Range<usize>>,
}

impl Default for Model<'static> {
    /// The model that the reviews of this version use.
    fn default() -> Self {
        static FILE: &[u8; 8 + BUCKETS] = include_bytes!("weights.bin");
        const { Self::new(FILE) }
    }
}

impl<'a> Model<'a> {
    /// Reads a model that the training wrote; `None` if the bytes are not one.
    pub fn read(file: &'a [u8]) -> Option<Self> {
        Some(Self::new(file.try_into().ok()?))
    }

    const fn new(file: &'a [u8; 8 + BUCKETS]) -> Self {
        let ([s0, s1, s2, s3, b0, b1, b2, b3, ..], Some(weights)) = (file, file.last_chunk()) else { unreachable!() };
        Self { scale: f32::from_le_bytes([*s0, *s1, *s2, *s3]), bias: f32::from_le_bytes([*b0, *b1, *b2, *b3]), weights }
    }

    /// Judges one text; `None` if it is too short or in letters that nothing was learned of.
    pub(super) fn judge(&self, text: &str) -> Option<Judgement> {
        text.split_whitespace().nth(FEWEST_WORDS - 1)?;
        let latin = text.chars().filter(char::is_ascii_alphabetic).count();
        let letters = text.chars().filter(|c| c.is_alphabetic()).count();
        if latin * 2 < letters {
            return None;
        }
        let features = Features::of(text);
        let (buckets, value) = features.vector();
        let sum: f32 = buckets.map(|bucket| self.weight(bucket)).sum();
        Some(Judgement { margin: self.bias + sum * value, reasons: self.reasons(&features) })
    }

    /// The parts of a text that speak most for abuse, without overlaps.
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
