//! The loops that carry messages out.
//!
//! A [`Dispatch`] is one incarnation of a node. Per connection it has a [lane](lane): a window of permits and a short list of
//! messages that wait for one. An attempt is durably started before the provider is called, and its result is written before
//! its permit is given back, so that what a crash leaves unknown is at most what had a permit.
//!
//! Everything periodic happens in [`Dispatch::tick`]: tests call it with a clock of their own, [`Dispatch::run`] calls it in a loop.

mod attachments;
mod attempt;
mod channel_metrics;
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
mod track;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::{Duration, Instant};

use nuncio_channel::{Registry, Services};
use nuncio_domain::lifecycle::{Applied, NodeId};
use nuncio_domain::{ConnectionId, Ids, MessageId, TenantId, Timestamp, limits};
use nuncio_secrets::Sealer;
use nuncio_store::{DueMessage, Result, Store, Transitioned};
use parking_lot::{Mutex, RwLock};

use channel_metrics::MetricBuffer;
use in_flight::InFlight;
use lane::Lane;
pub use log_signals::{LogFlags, LogSignals};
use memory::Memory;
pub use nodes::is_in;
pub use outbound::{Hint, Permit};
pub use track::{Gate, Tracker, Working};

/// How often to look for something to do.
const EVERY: Duration = Duration::from_millis(100);
/// How long to wait after a round that failed.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

const SECOND: Duration = Duration::from_secs(1);
/// How often to look for messages that this node owns and forgot.
const FORGOTTEN: Duration = Duration::from_secs(10);

/// How dispatch behaves.
#[derive(Clone, Debug)]
pub struct DispatchConfig {
    /// Whether nobody else can work on the database (SQLite): all earlier incarnations are dead at once.
    pub sole: bool,
    /// Whether the database has a clock of its own to compare with (PostgreSQL).
    pub compare_clocks: bool,
    /// How long `sent` waits for a receipt.
    pub receipt_wait: Duration,
    /// How long finished messages, the event log and deliveries are kept. They are kept for ever if this is absent.
    pub retention: Option<Duration>,
    /// Bytes of large requests and of attachments that attempts may hold in memory together.
    pub max_in_flight_bytes: usize,
    /// What the URLs of attachments may lead to.
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
            guard: nuncio_net::GuardPolicy::default(),
        }
    }
}

/// One incarnation of a node.
#[derive(Clone, Debug)]
pub struct Dispatch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    store: Arc<dyn Store>,
    registry: Registry,
    services: Services,
    sealer: Sealer,
    ids: Ids,
    config: DispatchConfig,
    net: nuncio_net::Client,
    node: AtomicI64,
    lanes: RwLock<HashMap<ConnectionId, Arc<Lane>>>,
    /// Of the worlds of lanes, as of which configuration they were looked at last.
    epochs: Mutex<HashMap<TenantId, i64>>,
    /// Messages that could not be seen to, and until when they are left alone.
    troubled: Mutex<HashMap<MessageId, Duration>>,
    tracker: Tracker,
    memory: Memory,
    in_flight: InFlight,
    second: Gate,
    forgotten: Gate,
    /// Up to when chunks that no message uses were purged.
    purged: Mutex<Option<Timestamp>>,
    /// When this node looked through the ids of providers last.
    references: Mutex<Option<Timestamp>>,
    metric_buffer: MetricBuffer,
    running: sessions::Running,
    logs: LogSignals,
    health: nodes::Health,
    peers: Mutex<HashMap<NodeId, nodes::Sighting>>,
    stopping: AtomicBool,
    /// Whether the node signed off. Held while its row is written.
    left: tokio::sync::Mutex<bool>,
    /// How far messages were looked through whose receipts this node has to ask for again.
    receipt_recovery: receipt_recovery::ReceiptRecovery,
    runtime: tokio::runtime::Handle,
}

/// What a [`Dispatch`] is made of.
#[derive(Debug)]
pub struct DispatchDeps {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The kinds of adapters.
    pub registry: Registry,
    /// What adapters are given, clock and randomness among it.
    pub services: Services,
    /// Opens provider secrets.
    pub sealer: Sealer,
    /// Fetches attachments.
    pub net: nuncio_net::Client,
    /// Counts the work under way, this node's other work too.
    pub tracker: Tracker,
}

impl Dispatch {
    /// Prepares a node. Must be called inside a Tokio runtime; nothing happens before [`Self::start`].
    pub fn new(parts: DispatchDeps, config: DispatchConfig) -> Self {
        let DispatchDeps { store, registry, services, sealer, net, tracker } = parts;
        let shared = Arc::new(Shared {
            store,
            registry,
            ids: services.ids.clone(),
            services,
            sealer,
            memory: Memory::new(config.max_in_flight_bytes),
            config,
            net,
            node: AtomicI64::new(0),
            lanes: RwLock::default(),
            epochs: Mutex::default(),
            troubled: Mutex::default(),
            tracker,
            in_flight: InFlight::default(),
            second: Gate::default(),
            forgotten: Gate::default(),
            purged: Mutex::default(),
            references: Mutex::default(),
            metric_buffer: MetricBuffer::default(),
            running: sessions::Running::default(),
            logs: LogSignals::default(),
            health: nodes::Health::default(),
            peers: Mutex::default(),
            stopping: AtomicBool::new(false),
            left: tokio::sync::Mutex::default(),
            receipt_recovery: receipt_recovery::ReceiptRecovery::default(),
            runtime: tokio::runtime::Handle::current(),
        });
        Self { shared }
    }

    /// Enters the node, and takes over what dead ones left. A database that was last used long ago has its unfinished messages
    /// held for a person, since it may be a copy whose messages went out meanwhile.
    pub async fn start(&self) -> Result<()> {
        self.shared.enter().await
    }

    /// Runs one round of everything periodic: shows that the node lives, starts what is due, recovers from dead nodes, writes metrics.
    /// Returns whether there was anything to do.
    pub async fn tick(&self) -> Result<bool> {
        self.shared.show_life().await?;
        let due = self.shared.find_due().await;
        self.carry_out(due).await
    }

    /// A round with what is due. Trouble with one part of it keeps no other from its turn.
    async fn carry_out(&self, due: Result<Vec<DueMessage>>) -> Result<bool> {
        let seen_to = match due {
            Ok(due) => self.shared.see_to(due).await,
            Err(error) => Err(error),
        };
        let looked_after = self.look_after().await;
        Ok(seen_to? | looked_after?)
    }

    /// A round without the look for due messages.
    async fn look_after(&self) -> Result<bool> {
        let shared = &self.shared;
        shared.pump_all();
        let now = shared.ids.clock.monotonic();
        if shared.second.opens(now, SECOND) { shared.look_around(now).await } else { Ok(false) }
    }

    /// Writes the metrics that were summed in memory.
    pub async fn flush_metrics(&self) -> Result<()> {
        self.shared.flush_metric_buffer().await.map(drop)
    }

    /// Ticks until [`Self::stop`].
    pub async fn run(&self) {
        // In one task: a fault that ends one of them is seen by the others' silence.
        tokio::select! {
            () = self.run_messages() => {}
            () = self.beat() => {}
            () = each_minute(|| self.purge(), "old rows were not purged") => {}
            () = each_minute(|| self.forget_old(), "what is older than retention.days was not deleted") => {}
        }
    }

    /// Shows that this node lives, for ever, however long a round takes.
    async fn beat(&self) {
        loop {
            let shown = self.shared.show_life().await;
            if let Err(error) = &shown {
                tracing::warn!(%error, "the node could not show that it lives; it is tried again");
            }
            tokio::time::sleep(if shown.is_ok() { EVERY } else { AFTER_TROUBLE }).await;
        }
    }

    async fn run_messages(&self) {
        /// The more is due that cannot be started, the longer a look takes: looking may take one part in so many of the time.
        const SCAN_SHARE: u32 = 20;
        let mut interval = tokio::time::interval(EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut scan_at = Instant::now();
        loop {
            interval.tick().await;
            if self.shared.stopping.load(Ordering::Acquire) {
                return;
            }
            let outcome = if Instant::now() < scan_at {
                self.look_after().await
            } else {
                let began = Instant::now();
                let due = self.shared.find_due().await;
                scan_at = Instant::now() + began.elapsed() * SCAN_SHARE;
                self.carry_out(due).await
            };
            if let Err(error) = outcome {
                tracing::warn!(%error, "a round of dispatch failed; it is tried again");
                tokio::time::sleep(AFTER_TROUBLE).await;
            }
        }
    }

    /// Removes idempotency keys whose time is over and chunks of requests that were never accepted. [`Self::run`] does so once a minute.
    pub async fn purge(&self) -> Result<()> {
        self.shared.purge().await
    }

    /// Deletes what is older than [`DispatchConfig::retention`]. [`Self::run`] does so once a minute.
    pub async fn forget_old(&self) -> Result<()> {
        self.shared.forget_old().await
    }

    /// Starts nothing new, waits for what is under way (at most `patience`), and ends the sessions with providers.
    pub async fn stop(&self, patience: Duration) {
        self.shared.stopping.store(true, Ordering::Release);
        let idle = tokio::time::timeout(patience, self.shared.tracker.idle());
        // Who fell silent now would be believed dead before its attempts are over.
        let finished = tokio::select! {
            finished = idle => finished.is_ok(),
            () = self.beat() => false,
        };
        if !finished {
            tracing::warn!("attempts are still under way at shutdown; their outcome will be unknown to the next start");
        }
        if tokio::time::timeout(patience, self.shared.end_sessions()).await.is_err() {
            tracing::warn!("sessions with providers did not end in time; they are cut off");
        }
    }

    /// Writes what is left in memory, and signs off. Nothing may follow.
    pub async fn leave(&self) -> Result<()> {
        let flushed = self.flush_metrics().await;
        flushed.and(self.shared.leave().await)
    }

    /// Returns whether [`Self::stop`] was called.
    pub fn is_stopping(&self) -> bool {
        self.shared.is_stopping()
    }

    /// This incarnation.
    pub fn node(&self) -> NodeId {
        self.shared.node()
    }

    /// Returns whether an incarnation is this one or may be alive elsewhere.
    pub fn is_alive(&self, node: NodeId) -> bool {
        node == self.node() || (!self.shared.config.sole && self.shared.peers.lock().contains_key(&node))
    }

    /// Returns the shards that this node looks after; see [`is_in`].
    pub fn shards(&self) -> Vec<i16> {
        self.shared.shards()
    }

    /// Signals that readers of event logs wait for.
    pub fn logs(&self) -> &LogSignals {
        &self.shared.logs
    }

    /// Counts what a person's decision made of a message.
    pub fn count_decision(&self, tenant: TenantId, transitioned: &Transitioned) {
        self.shared.count(transitioned.changes());
        self.shared.metric_buffer.add_traffic(tenant, transitioned);
    }

    /// Counts what a receipt made of its message.
    pub fn count_receipt(&self, tenant: TenantId, transitioned: &Transitioned) {
        let Transitioned::Found { applied, state, changes, address, .. } = transitioned else { return };
        self.count_decision(tenant, transitioned);
        if *applied == Applied::Yes {
            self.shared.metric_buffer.add(tenant, *address, state, changes);
        }
    }
}

impl Shared {
    /// What is done once a second.
    async fn look_around(self: &Arc<Self>, now: Duration) -> Result<bool> {
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

    fn node(&self) -> NodeId {
        NodeId(self.node.load(Ordering::Acquire))
    }
}

/// Runs `work` once a minute until it is dropped. A failure is logged, and `work` runs again a minute later.
pub async fn each_minute<F: Future<Output = Result<()>>>(work: impl Fn() -> F, trouble: &str) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        if let Err(error) = work().await {
            tracing::warn!(%error, "{trouble}; it is tried again");
        }
    }
}
