//! Computes retry delays.

use std::time::Duration;

use nuncio_domain::Entropy;

/// Seconds before the second, third … attempt.
const STEPS: &[u64] = &[5, 15, 60, 300, 900, 1_800, 3_600];
/// Maximum pause of a connection that is down.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Maximum pause of a connection whose account is refused.
const REFUSED_MAX: Duration = Duration::from_secs(15 * 60);

/// Maximum delay accepted from a provider.
pub(crate) const ASKED_MAX: Duration = Duration::from_secs(3_600);

/// Minimum delay, whatever a provider requests.
const ASKED_MIN: Duration = Duration::from_secs(1);

/// After this many attempts, [`STEPS`] become the minimum of the delays that a provider requests.
const BELIEVED: usize = 5;

/// Returns the delay after attempt number `attempt` (from 0), ±20 %, so that messages that failed together are not retried together. A
/// delay requested by the provider, up to [`ASKED_MAX`], is respected, plus up to 10%.
pub(crate) fn after(attempt: usize, asked: Option<Duration>, entropy: &dyn Entropy) -> Duration {
    let step = |attempt: usize| Duration::from_secs(STEPS[attempt.min(STEPS.len() - 1)]);
    if let Some(asked) = asked {
        let asked = asked.max(attempt.checked_sub(BELIEVED).map_or(ASKED_MIN, step));
        return asked + jitter(asked / 10, entropy);
    }
    let base = step(attempt);
    base * 4 / 5 + jitter(base * 2 / 5, entropy)
}

/// Returns how long a connection backs off after this many consecutive failures.
pub(crate) fn pause(failures: u32, asked: Option<Duration>, entropy: &dyn Entropy) -> Duration {
    let base = asked.map_or_else(|| Duration::from_secs(1 << failures.min(6)).min(PAUSE_MAX), |asked| asked.max(ASKED_MIN));
    base + jitter(base / 5, entropy)
}

/// Returns how long to wait before a refused account is checked again. Too many failed logins can lock an account.
pub(crate) fn pause_of_refused(failures: u32, entropy: &dyn Entropy) -> Duration {
    let base = Duration::from_secs(15 << failures.min(6)).min(REFUSED_MAX);
    base + jitter(base / 5, entropy)
}

fn jitter(most: Duration, entropy: &dyn Entropy) -> Duration {
    Duration::from_millis(entropy.below(most.as_millis() as u64 + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No jitter.
    #[derive(Debug)]
    struct Zeros;

    impl Entropy for Zeros {
        fn fill(&self, out: &mut [u8]) {
            out.fill(0);
        }
    }

    #[test]
    fn a_provider_that_always_asks_for_a_short_delay_is_not_asked_for_ever_at_that_pace() {
        for (attempt, asked, delay) in [(0, 0, 1), (4, 0, 1), (4, 30, 30), (5, 0, 5), (5, 30, 30), (7, 1, 60), (99, 1, 3_600)] {
            let asked = Some(Duration::from_secs(asked));
            assert_eq!(after(attempt, asked, &Zeros), Duration::from_secs(delay), "attempt {attempt}, {asked:?}");
        }
        assert_eq!(pause(1, Some(Duration::ZERO), &Zeros), ASKED_MIN);
    }
}
