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

/// Returns the delay after attempt number `attempt` (from 0), ±20 %, so that messages that failed together are not retried together. A
/// delay requested by the provider, up to [`ASKED_MAX`], is respected, plus up to 10%.
pub(crate) fn after(attempt: usize, asked: Option<Duration>, entropy: &dyn Entropy) -> Duration {
    if let Some(asked) = asked {
        return asked + jitter(asked / 10, entropy);
    }
    let base = Duration::from_secs(STEPS[attempt.min(STEPS.len() - 1)]);
    base * 4 / 5 + jitter(base * 2 / 5, entropy)
}

/// Returns how long a connection backs off after this many consecutive failures.
pub(crate) fn pause(failures: u32, asked: Option<Duration>, entropy: &dyn Entropy) -> Duration {
    let base = asked.unwrap_or_else(|| Duration::from_secs(1 << failures.min(6)).min(PAUSE_MAX));
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
