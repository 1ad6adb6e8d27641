//! Computes latencies of a run, and the spread of a figure over runs.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Returns a histogram of microseconds, from 1 µs to 60 s, with three significant digits. Longer times are recorded as 60 s.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000, 3).expect("the bounds are constants")
}

pub(crate) fn record(histogram: &mut Histogram<u64>, latency: Duration) {
    let us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
    histogram.saturating_record(us.max(1));
}

/// Latencies of a run, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Latency {
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

impl Latency {
    pub(crate) fn of(histogram: &Histogram<u64>) -> Self {
        let ms = |us: u64| us as f64 / 1000.0;
        Self { p50_ms: ms(histogram.value_at_quantile(0.5)), p99_ms: ms(histogram.value_at_quantile(0.99)), max_ms: ms(histogram.max()) }
    }
}

/// Median and extremes of a figure over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns `None` without samples. For an even count, the median is the mean of the middle two.
    pub(crate) fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Some(Self { median, min, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_samples() {
        let mut h = histogram();
        for us in 1..=1000 {
            record(&mut h, Duration::from_micros(us));
        }
        let latency = Latency::of(&h);
        assert_eq!(latency.p50_ms, 0.5);
        assert_eq!(latency.p99_ms, 0.99);
        assert_eq!(latency.max_ms, 1.0);
    }

    #[test]
    fn what_is_longer_than_the_histogram_is_kept_at_its_end() {
        let mut h = histogram();
        record(&mut h, Duration::from_secs(3600));
        record(&mut h, Duration::ZERO);
        assert_eq!(h.len(), 2);
        assert!(Latency::of(&h).max_ms >= 60_000.0);
    }

    #[test]
    fn the_median_of_an_even_count_lies_between() {
        let odd = Spread { median: 2.0, min: 1.0, max: 9.0 };
        assert_eq!(Spread::of(&[9.0, 1.0, 2.0]), Some(odd));
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 9.0]).map(|s| s.median), Some(3.0));
        assert_eq!(Spread::of(&[]), None);
    }
}
