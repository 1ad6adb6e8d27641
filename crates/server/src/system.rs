//! The machine's clock, randomness and open-file limit. The only place that uses them.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nuncio_domain::{Clock, Entropy, Ids, Timestamp};
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};

/// The system clock. Never runs backwards: waits out corrections of the wall clock.
#[derive(Debug)]
pub struct SystemClock {
    started: Instant,
    newest: AtomicI64,
}

impl Default for SystemClock {
    fn default() -> Self {
        Self { started: Instant::now(), newest: AtomicI64::new(0) }
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_millis() as i64);
        let before = self.newest.fetch_max(millis, Ordering::Relaxed);
        Timestamp::from_millis(millis.max(before))
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }
}

/// A generator per thread (ChaCha20), seeded by the operating system.
#[derive(Debug, Default)]
pub struct SystemEntropy;

thread_local! {
    static GENERATOR: RefCell<ChaCha20Rng> = RefCell::new(ChaCha20Rng::from_os_rng());
}

impl Entropy for SystemEntropy {
    fn fill(&self, out: &mut [u8]) {
        GENERATOR.with_borrow_mut(|generator| generator.fill_bytes(out));
    }
}

/// The machine's clock and randomness.
pub fn ids() -> Ids {
    Ids::new(Arc::new(SystemClock::default()), Arc::new(SystemEntropy))
}

/// Raises the open-file limit as far as permitted, and returns it.
#[cfg(target_os = "linux")]
pub(crate) fn raise_open_files() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).is_ok();
    let files = if raised { maximum } else { current };
    files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX)
}

/// Other systems keep their limit.
#[cfg(not(target_os = "linux"))]
pub(crate) fn raise_open_files() -> usize {
    usize::MAX
}
