//! Estimates the chance of delivery.

/// A channel with at least this chance is good enough.
pub(super) const GOOD: f64 = 0.8;
/// Prior chance of a channel without attempts in the country, and its weight in attempts.
const BELIEF: (f64, f64) = (0.9, 10.0);
/// Weight of the country's rate, in attempts, against the recipient's own.
const COUNTRY: f64 = 8.0;

/// The chance of one channel to reach one recipient: the mean of a Beta distribution. Its prior is the channel's rate in the recipient's
/// country, which has a fixed prior itself.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Estimate {
    own: (i64, i64),
    country: (i64, i64),
}

impl Estimate {
    /// Makes an estimate from successes and failures of the recipient and of the country.
    pub(super) const fn new(own: (i64, i64), country: (i64, i64)) -> Self {
        Self { own, country }
    }

    /// Returns the number of attempts to the recipient.
    pub(super) const fn attempts(&self) -> i64 {
        self.own.0 + self.own.1
    }

    /// Returns the chance, from 0 to 1.
    pub(super) fn chance(&self) -> f64 {
        mean(self.own, mean(self.country, BELIEF.0, BELIEF.1), COUNTRY)
    }

    /// Returns the chance in thousandths.
    pub(super) fn thousandths(&self) -> u16 {
        (self.chance() * 1_000.0).round() as u16
    }

    pub(super) fn words(&self, country: &str) -> String {
        if self.own == (0, 0) && self.country == (0, 0) {
            return format!("assumed {:.0} % likely to arrive, as nothing was sent there yet", self.chance() * 100.0);
        }
        let tried = |(successes, failures): (i64, i64)| format!("{successes} of {}", successes + failures);
        let place = if country.is_empty() { "unknown countries" } else { country };
        format!(
            "{:.0} % likely to arrive ({} to this recipient, {} to {place})",
            self.chance() * 100.0,
            tried(self.own),
            tried(self.country)
        )
    }
}

fn mean((successes, failures): (i64, i64), prior: f64, weight: f64) -> f64 {
    (successes as f64 + prior * weight) / ((successes + failures) as f64 + weight)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happened_outweighs_belief() {
        assert!(Estimate::new((0, 0), (0, 0)).chance() >= GOOD, "a channel is good until it fails");
        assert!(Estimate::new((0, 2), (0, 0)).chance() < GOOD, "two failures in a row are enough");
        assert!(Estimate::new((20, 2), (0, 0)).chance() >= GOOD);
        assert!(Estimate::new((0, 0), (5, 95)).chance() < 0.2, "a channel that nobody in the country has");
        assert!(Estimate::new((9, 0), (5, 95)).chance() < GOOD && Estimate::new((40, 0), (5, 95)).chance() >= GOOD);
    }
}
