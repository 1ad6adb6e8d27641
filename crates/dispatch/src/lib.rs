//! Sends queued messages.
//!
//! A [`Dispatch`] is one run of a node. Each connection has a [lane](lane): a window of permits and a short list of messages waiting for
//! one. The start of an attempt is stored before the provider is called. Its permit is released when its result is in the queue of the
//! store, ahead of the next start. So after a crash, about as many attempts as there are permits have an unknown outcome.
//!
//! [`Shared::tick`] does all periodic work: tests call it with their own clock, [`Shared::run`] calls it in a loop.

mod attachments;
mod attempt;
mod channel_metrics;
mod hint;
mod in_flight;
mod lane;
mod log_signals;
mod memory;
mod nodes;
mod outbound;
mod receipt_recovery;
mod retention;
mod retry;
mod scanner;
mod sessions;
mod shares;
mod track;

use std::collections::HashMap;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use nuncio_channel::{Registry, Services};
use nuncio_domain::{ConnectionId, Ids, LogLimit, MessageId, TenantId, Timestamp, limits, message::NodeId};
use nuncio_secrets::Sealer;
use nuncio_store::{DueMessage, Result, Store};
use parking_lot::{Mutex, RwLock};

use channel_metrics::MetricBuffer;
pub use hint::Hint;
use in_flight::InFlight;
use lane::Lane;
pub use log_signals::{LogFlags, LogSignals};
use memory::Memory;
pub use nodes::is_in;
pub use outbound::Permit;
use scanner::Processed;
pub use shares::Shares;
pub use track::{Gate, Tracker, Working};

/// Interval of rounds.
const EVERY: Duration = Duration::from_millis(100);
/// Delay after a failed round.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

const SECOND: Duration = Duration::from_secs(1);
/// Interval of the search for messages that this node owns but is not processing.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// Settings of dispatch.
#[derive(Clone, Debug)]
pub struct DispatchConfig {
    /// Whether no other node can use the database (SQLite): all earlier nodes are dead.
    pub sole: bool,
    /// Whether the database has its own clock to compare with (PostgreSQL).
    pub compare_clocks: bool,
    /// How long a `sent` message waits for a receipt.
    pub receipt_wait: Duration,
    /// How long finished messages, the event log and deliveries are kept; permanently if `None`.
    pub retention: Option<Duration>,
    /// Maximum number of bytes of large requests and of attachments that all attempts together hold in memory.
    pub max_in_flight_bytes: usize,
    /// Maximum number of waiting messages that the lane of a connection remembers, small and large ones apart: some 100 bytes each. The
    /// scanner finds the others.
    pub hints: usize,
    /// How long a message of a broadcast waits for a permit before it is stored as waiting.
    pub bulk_wait: Duration,
    /// Which addresses the URLs of attachments may lead to.
    pub guard: nuncio_net::GuardPolicy,
}

impl Default for DispatchConfig {
    fn default() -> Self {
        Self {
            sole: true,
            compare_clocks: false,
            receipt_wait: limits::RECEIPT_WAIT,
            retention: None,
            max_in_flight_bytes: 256 * 1024 * 1024,
            hints: 65_536,
            bulk_wait: Duration::from_millis(100),
            guard: nuncio_net::GuardPolicy::default(),
        }
    }
}

/// One run of a node: a [`Shared`] that its clones share.
#[derive(Clone, Debug)]
pub struct Dispatch(Arc<Shared>);

impl Deref for Dispatch {
    type Target = Arc<Shared>;

    fn deref(&self) -> &Arc<Shared> {
        &self.0
    }
}

/// The state of a [`Dispatch`], with all that it does.
#[derive(Debug)]
pub struct Shared {
    deps: DispatchDeps,
    ids: Ids,
    config: DispatchConfig,
    node: AtomicI64,
    lanes: RwLock<HashMap<ConnectionId, Arc<Lane>>>,
    /// For each tenant with lanes, the configuration epoch at the last refresh.
    epochs: Mutex<HashMap<TenantId, i64>>,
    /// Messages that failed to be processed, and until when they are skipped.
    troubled: Mutex<HashMap<MessageId, Duration>>,
    /// Log of attempts that could not be started.
    failed_starts: LogLimit,
    memory: Memory,
    in_flight: InFlight,
    second: Gate,
    forgotten: Gate,
    /// Time up to which orphaned spool chunks were purged.
    purged: Mutex<Option<Timestamp>>,
    /// When this node last searched the provider references for expired ones.
    references: Mutex<Option<Timestamp>>,
    metric_buffer: MetricBuffer,
    running: sessions::Running,
    logs: LogSignals,
    fitness: nodes::Fitness,
    peers: Mutex<HashMap<NodeId, nodes::Sighting>>,
    stopping: AtomicBool,
    /// Whether the node signed off. Locked while its row is written.
    left: tokio::sync::Mutex<bool>,
    receipt_recovery: receipt_recovery::ReceiptRecovery,
    runtime: tokio::runtime::Handle,
}

/// Dependencies of a [`Dispatch`].
#[derive(Debug)]
pub struct DispatchDeps {
    pub store: Arc<dyn Store>,
    /// The available kinds of adapters.
    pub registry: Registry,
    /// Passed to adapters; includes clock and randomness.
    pub services: Services,
    pub sealer: Sealer,
    pub net: nuncio_net::Client,
    /// Counts all work in flight on this node, not only that of dispatch.
    pub tracker: Tracker,
}

impl Dispatch {
    /// Prepares a node; [`Shared::start`] starts it.
    ///
    /// # Panics
    ///
    /// Panics outside a Tokio runtime.
    pub fn new(deps: DispatchDeps, config: DispatchConfig) -> Self {
        Self(Arc::new(Shared {
            ids: deps.services.ids.clone(),
            deps,
            memory: Memory::new(config.max_in_flight_bytes),
            config,
            node: AtomicI64::new(0),
            lanes: RwLock::default(),
            epochs: Mutex::default(),
            failed_starts: LogLimit::default(),
            troubled: Mutex::default(),
            in_flight: InFlight::default(),
            second: Gate::default(),
            forgotten: Gate::default(),
            purged: Mutex::default(),
            references: Mutex::default(),
            metric_buffer: MetricBuffer::default(),
            running: sessions::Running::default(),
            logs: LogSignals::default(),
            fitness: nodes::Fitness::default(),
            peers: Mutex::default(),
            stopping: AtomicBool::new(false),
            left: tokio::sync::Mutex::default(),
            receipt_recovery: receipt_recovery::ReceiptRecovery::default(),
            runtime: tokio::runtime::Handle::current(),
        }))
    }
}

impl Deref for Shared {
    type Target = DispatchDeps;

    fn deref(&self) -> &DispatchDeps {
        &self.deps
    }
}

impl Shared {
    /// Runs one round of all periodic work: heartbeat, due messages, recovery from dead nodes, metrics. Returns whether there was anything
    /// to do.
    pub async fn tick(self: &Arc<Self>) -> Result<bool> {
        self.show_life().await?;
        let due = self.find_due().await;
        Ok(self.run_round(due).await?.any)
    }

    /// Runs a round with these due messages. A failure in one part does not skip the others.
    async fn run_round(self: &Arc<Self>, due: Result<Vec<DueMessage>>) -> Result<Processed> {
        let processed = match due {
            Ok(due) => self.process_due(due).await,
            Err(error) => Err(error),
        };
        let maintained = self.maintain().await;
        let Processed { any, feeds } = processed?;
        Ok(Processed { any: any | maintained?, feeds })
    }

    /// Runs a round without searching for due messages.
    async fn maintain(self: &Arc<Self>) -> Result<bool> {
        self.pump_all();
        let now = self.ids.clock.monotonic();
        if self.second.opens(now, SECOND) { self.run_each_second(now).await } else { Ok(false) }
    }

    /// Runs rounds until [`Self::stop`].
    pub async fn run(self: &Arc<Self>) {
        // In one task: if one loop panics, the heartbeat stops as well and other nodes notice.
        tokio::select! {
            () = self.run_messages() => {}
            () = self.keep_alive() => {}
            () = each_minute(|| self.purge(), "purge old rows") => {}
            () = each_minute(|| self.forget_old(), "delete what is older than retention.days") => {}
        }
    }

    /// Sends heartbeats indefinitely, however long a round takes.
    async fn keep_alive(&self) {
        let log = LogLimit::default();
        loop {
            let shown = self.show_life().await;
            if let Err(error) = &shown
                && let Some(suppressed) = log.line("heartbeat", self.ids.clock.monotonic())
            {
                tracing::warn!(%error, suppressed, "failed to store the heartbeat; will retry");
            }
            tokio::time::sleep(if shown.is_ok() { EVERY } else { AFTER_FAILURE }).await;
        }
    }

    async fn run_messages(self: &Arc<Self>) {
        let mut interval = tokio::time::interval(EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut scan_at = Instant::now();
        loop {
            interval.tick().await;
            if self.is_stopping() {
                return;
            }
            let outcome = if Instant::now() < scan_at {
                self.maintain().await.map(drop)
            } else {
                let began = Instant::now();
                let due = self.find_due().await;
                let took = began.elapsed();
                let outcome = self.run_round(due).await;
                let feeds = outcome.as_ref().is_ok_and(|processed| processed.feeds);
                scan_at = Instant::now() + pause_after_scan(took, feeds);
                outcome.map(drop)
            };
            if let Err(error) = outcome {
                tracing::warn!(%error, "failed to run a round of dispatch; will retry");
                tokio::time::sleep(AFTER_FAILURE).await;
            }
        }
    }

    /// Starts nothing new, waits for work in flight (at most `patience`), and ends the sessions with providers.
    pub async fn stop(&self, patience: Duration) {
        self.stopping.store(true, Ordering::Release);
        let idle = tokio::time::timeout(patience, self.tracker.idle());
        // Without heartbeats, other nodes would declare this one dead before its attempts end.
        let finished = tokio::select! {
            finished = idle => finished.is_ok(),
            () = self.keep_alive() => false,
        };
        if !finished {
            tracing::warn!("shutdown timed out with attempts in flight; the next start will count them as unknown");
        }
        if tokio::time::timeout(patience, self.end_sessions()).await.is_err() {
            tracing::warn!("shutdown timed out with provider sessions open; closed them");
        }
    }

    /// Writes the buffered metrics and signs off. Nothing may follow.
    pub async fn leave(&self) -> Result<()> {
        let flushed = self.flush_metrics().await;
        flushed.and(self.sign_off().await)
    }

    pub fn node(&self) -> NodeId {
        NodeId(self.node.load(Ordering::Acquire))
    }

    /// Returns the signals that readers of event logs wait for.
    pub fn log_signals(&self) -> &LogSignals {
        &self.logs
    }

    /// Runs the work that is due once a second.
    async fn run_each_second(self: &Arc<Self>, now: Duration) -> Result<bool> {
        let recovered = self.recover_dead().await;
        let forgotten = if self.forgotten.opens(now, FORGOTTEN) { self.recover_forgotten().await } else { Ok(()) };
        let refreshed = self.refresh_lanes().await;
        let sessions = self.keep_sessions().await;
        self.look_at_accounts(now);
        let asked = self.recover_receipts().await;
        self.begin_flush();
        forgotten.and(refreshed).and(sessions)?;
        Ok(recovered? | asked?)
    }
}

/// Returns the time until the next scan. Scans take at most one part in 20 of the time: the more due messages cannot start, the longer a scan
/// takes. Half of the time while lanes live on what scans find. A scan that took long because the process or its database was paused says
/// nothing about the next one, so the pause is limited.
fn pause_after_scan(took: Duration, feeds: bool) -> Duration {
    const SHARE: u32 = 20;
    const MOST: Duration = Duration::from_secs(5);
    (if feeds { took } else { took * SHARE }).min(MOST)
}

/// Runs `work` once a minute until it is dropped. Logs each failure as "failed to `what`" and continues.
pub async fn each_minute<F: Future<Output = Result<()>>>(work: impl Fn() -> F, what: &str) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        if let Err(error) = work().await {
            tracing::warn!(%error, "failed to {what}; will retry");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_scan_delays_the_next_by_a_few_seconds_only() {
        let pause = |millis, feeds| pause_after_scan(Duration::from_millis(millis), feeds).as_millis();
        assert_eq!([pause(10, false), pause(10, true)], [200, 10]);
        // As after a process that was stopped for 19 seconds during the scan.
        assert_eq!([pause(19_000, false), pause(19_000, true)], [5_000, 5_000]);
    }
}
