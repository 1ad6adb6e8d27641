//! The learned part of the review: one weight for every feature. `training/` says what it was learned from and how.

use std::ops::Range;

use super::features::{BUCKETS, Features};

/// Scale and bias as `f32`, little-endian, then one `i8` for every bucket: a weight is scale times that number.
static FILE: &[u8; 8 + BUCKETS] = include_bytes!("weights.bin");

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

/// Judges one text; `None` if it is too short or in letters that nothing was learned of.
pub(super) fn judge(text: &str) -> Option<Judgement> {
    if text.split_whitespace().nth(FEWEST_WORDS - 1).is_none() {
        return None;
    }
    let latin = text.chars().filter(char::is_ascii_alphabetic).count();
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    if latin * 2 < letters {
        return None;
    }
    let features = Features::of(text);
    let (buckets, value) = features.vector();
    let sum: f32 = buckets.map(weight).sum();
    Some(Judgement { margin: number(4) + sum * value, reasons: reasons(&features) })
}

fn reasons(features: &Features) -> Vec<Range<usize>> {
    let mut parts: Vec<(Range<usize>, f32)> = Vec::new();
    for (bucket, spans) in features.spans() {
        let Some(span) = spans.iter().find(|span| !span.is_empty()) else { continue };
        let share = weight(bucket);
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

fn weight(bucket: u32) -> f32 {
    let byte = FILE.get(8 + bucket as usize).copied().unwrap_or_default();
    number(0) * f32::from(i8::from_le_bytes([byte]))
}

fn number(at: usize) -> f32 {
    let bytes = [FILE[at], FILE[at + 1], FILE[at + 2], FILE[at + 3]];
    f32::from_le_bytes(bytes)
}
