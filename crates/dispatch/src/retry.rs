//! When to try again.

use std::time::Duration;

use nuncio_domain::Entropy;

/// Seconds before the second, third … attempt.
const STEPS: &[u64] = &[5, 15, 60, 300, 900, 1_800, 3_600];
/// The longest pause of a connection that is down.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// The longest pause of a connection whose account is refused.
const REFUSED_MAX: Duration = Duration::from_secs(15 * 60);

/// The longest that a provider is believed that it wants to be left alone.
pub(crate) const ASKED_MAX: Duration = Duration::from_secs(3_600);

/// How long to wait after attempt number `attempt` (from 0), ±20 % so that what failed together does not come back together.
/// What the provider asks for, within [`ASKED_MAX`], is waited for in full, plus up to a tenth.
pub(crate) fn after(attempt: usize, asked: Option<Duration>, entropy: &dyn Entropy) -> Duration {
    if let Some(asked) = asked {
        return asked + jitter(asked / 10, entropy);
    }
    let base = Duration::from_secs(STEPS[attempt.min(STEPS.len() - 1)]);
    base * 4 / 5 + jitter(base * 2 / 5, entropy)
}

/// How long a connection rests after this many failures in a row.
pub(crate) fn pause(failures: u32, asked: Option<Duration>, entropy: &dyn Entropy) -> Duration {
    let base = asked.unwrap_or_else(|| Duration::from_secs(1 << failures.min(6)).min(PAUSE_MAX));
    base + jitter(base / 5, entropy)
}

/// How long a connection rests before its provider is asked again whether it takes the account. Logins that fail too often get an
/// account locked.
pub(crate) fn pause_of_refused(failures: u32, entropy: &dyn Entropy) -> Duration {
    let base = Duration::from_secs(15 << failures.min(6)).min(REFUSED_MAX);
    base + jitter(base / 5, entropy)
}

fn jitter(most: Duration, entropy: &dyn Entropy) -> Duration {
    Duration::from_millis(entropy.below(most.as_millis() as u64 + 1))
}
