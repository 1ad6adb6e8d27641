//! The loops that carry messages out.
//!
//! A [`Dispatch`] is one incarnation of a node. Per connection it has a [lane](lane): a window of permits and a short list of
//! messages that wait for one. An attempt is durably started before the provider is called, and its result is written before
//! its permit is given back, so that what a crash leaves unknown is at most what had a permit.
//!
//! Everything periodic happens in [`Dispatch::tick`]: tests call it with a clock of their own, [`Dispatch::run`] calls it in a loop.

mod attachments;
mod attempt;
mod broadcasts;
mod events;
mod house;
mod lane;
mod memory;
mod nodes;
mod outbound;
mod owed;
mod retention;
mod retry;
mod scanner;
mod sessions;
mod tally;
mod track;
mod under_way;
mod web;
mod webhooks;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use nuncio_channel::{Registry, Services};
use nuncio_core::{Core, Marks, Sealer, WeakCore};
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::{ConnectionId, Ids, MessageId, TenantId, Timestamp, limits};
use nuncio_store::{DueMessage, Result, Store};
use parking_lot::{Mutex, RwLock};

use lane::Lane;
use memory::Memory;
use tally::Tally;
use track::{Gate, Tracker};
use under_way::UnderWay;

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
    /// Where this server is reached from outside, without a slash at its end.
    pub public_url: Arc<str>,
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
            public_url: Arc::from("http://localhost"),
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
    sealer: Sealer,
    marks: Marks,
    ids: Ids,
    config: DispatchConfig,
    net: nuncio_net::Client,
    events: Arc<events::Events>,
    node: AtomicI64,
    lanes: RwLock<HashMap<ConnectionId, Arc<Lane>>>,
    /// Of the worlds of lanes, as of which configuration they were looked at last.
    epochs: Mutex<HashMap<TenantId, i64>>,
    /// Messages that could not be seen to, and until when they are left alone.
    troubled: Mutex<HashMap<MessageId, Duration>>,
    tracker: Tracker,
    memory: Memory,
    under_way: UnderWay,
    second: Gate,
    forgotten: Gate,
    templates: Gate,
    /// Up to when chunks that no message uses were purged.
    purged: Mutex<Option<Timestamp>>,
    /// When this node looked through the ids of providers last.
    references: Mutex<Option<Timestamp>>,
    tally: Tally,
    running: sessions::Running,
    webhooks: webhooks::Webhooks,
    health: nodes::Health,
    peers: Mutex<HashMap<NodeId, nodes::Sighting>>,
    stopping: AtomicBool,
    /// Whether the node signed off. Held while its row is written.
    left: tokio::sync::Mutex<bool>,
    /// How far messages were looked through whose receipts this node has to ask for again.
    owed: owed::Owed,
    /// What looks after broadcasts and templates. It holds dispatch, and must not be held by it.
    core: OnceLock<WeakCore>,
    /// Whether a round of broadcasts is under way.
    broadcasting: AtomicBool,
    runtime: tokio::runtime::Handle,
}

impl Dispatch {
    /// Prepares a node. Must be called inside a Tokio runtime; nothing happens before [`Self::start`].
    pub fn new(store: Arc<dyn Store>, registry: Registry, sealer: Sealer, ids: Ids, config: DispatchConfig) -> anyhow::Result<Self> {
        let net = nuncio_net::Client::new(config.guard.clone())?;
        let tracker = Tracker::default();
        let shared = Arc::new_cyclic(|this| Shared {
            events: Arc::new(events::Events::new(this.clone(), ids.clone())),
            store,
            registry,
            marks: Marks::new(&sealer),
            sealer,
            ids,
            memory: Memory::new(config.max_in_flight_bytes),
            config,
            net,
            node: AtomicI64::new(0),
            lanes: RwLock::default(),
            epochs: Mutex::default(),
            troubled: Mutex::default(),
            tracker,
            under_way: UnderWay::default(),
            second: Gate::default(),
            forgotten: Gate::default(),
            templates: Gate::default(),
            purged: Mutex::default(),
            references: Mutex::default(),
            tally: Tally::default(),
            running: sessions::Running::default(),
            webhooks: webhooks::Webhooks::default(),
            health: nodes::Health::default(),
            peers: Mutex::default(),
            stopping: AtomicBool::new(false),
            left: tokio::sync::Mutex::default(),
            owed: owed::Owed::default(),
            core: OnceLock::new(),
            broadcasting: AtomicBool::new(false),
            runtime: tokio::runtime::Handle::current(),
        });
        Ok(Self { shared })
    }

    /// What adapters are given.
    pub fn services(&self) -> Services {
        self.shared.services()
    }

    /// Names the use cases of this node, once: they look after broadcasts and templates that are due.
    pub fn serve(&self, core: &Core) {
        self.shared.core.get_or_init(|| core.downgrade());
    }

    /// Enters the node, and takes over what dead ones left. A database that was last used long ago has its unfinished messages
    /// held for a person, since it may be a copy whose messages went out meanwhile.
    pub async fn start(&self) -> Result<()> {
        self.shared.enter().await
    }

    /// One round of everything periodic: shows that the node lives, starts what is due, recovers from dead nodes, applies delayed events,
    /// writes metrics. Answers whether there was anything to do.
    pub async fn tick(&self) -> Result<bool> {
        self.shared.show_life().await?;
        let due = self.shared.find_due().await;
        let busy = self.carry_out(due).await?;
        Ok(self.shared.post_events(true).await? | busy)
    }

    /// A round without webhooks, with what is due. Trouble with one part of it keeps no other from its turn.
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
        let released = shared.events.release_due();
        shared.pump_all();
        let looked_after = self.look_after_broadcasts().await;
        let now = shared.ids.clock.monotonic();
        let kept = if shared.second.opens(now, SECOND) { shared.look_around(now).await } else { Ok(false) };
        Ok(released | looked_after? | kept?)
    }

    /// Ticks until nothing is due, under way or waiting for a permit. For tests and for a clean shutdown.
    pub async fn drain(&self) -> Result<()> {
        loop {
            self.shared.tracker.idle().await;
            let busy = self.tick().await?;
            let under_way = self.shared.tracker.busy();
            self.shared.tracker.idle().await;
            if !busy && !under_way {
                return self.shared.flush_tally().await.map(drop);
            }
        }
    }

    /// Ticks for ever, until [`Self::stop`].
    pub async fn run(&self) {
        let webhooks = tokio::spawn(Arc::clone(&self.shared).run_webhooks());
        // In one task: a fault that ends one of them is seen by the others' silence.
        tokio::select! {
            () = self.run_messages() => {}
            () = self.beat() => {}
            () = each_minute(|| self.purge(), "old rows were not purged") => {}
            () = each_minute(|| self.forget_old(), "what is older than retention.days was not deleted") => {}
        }
        // It sees the same sign to stop.
        let _ = webhooks.await;
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

    /// Removes idempotency keys whose time is over, chunks of requests that were never accepted, and traces of erased contacts.
    /// [`Self::run`] does so once a minute.
    pub async fn purge(&self) -> Result<()> {
        self.shared.purge().await
    }

    /// Deletes what is older than [`DispatchConfig::retention`]. [`Self::run`] does so once a minute.
    pub async fn forget_old(&self) -> Result<()> {
        self.shared.forget_old().await
    }

    /// Starts nothing new, waits for what is under way (at most `patience`), and leaves.
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
        let flushed = self.shared.flush_tally().await.and(self.shared.leave_logs().await);
        if let Err(error) = flushed.and(self.shared.leave().await) {
            tracing::warn!(%error, "the node could not sign off");
        }
    }

    /// This incarnation.
    pub fn node(&self) -> NodeId {
        self.shared.node()
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
        let asked = self.ask_for_owed().await;
        let strays = self.look_for_strays().await;
        let parts = self.look_for_late_parts().await;
        self.begin_flush();
        let kept = self.keep_house().await;
        forgotten.and(refreshed).and(sessions)?;
        Ok(recovered? | asked? | strays? | parts? | kept)
    }

    pub(crate) fn services(&self) -> Services {
        Services { events: self.events.clone(), ids: self.ids.clone(), public_url: Arc::clone(&self.config.public_url) }
    }

    fn node(&self) -> NodeId {
        NodeId(self.node.load(Ordering::Acquire))
    }
}

/// Runs `work` once a minute until it is dropped. A failure is logged, and `work` runs again a minute later.
async fn each_minute<F: Future<Output = Result<()>>>(work: impl Fn() -> F, trouble: &str) {
    loop {
        tokio::time::sleep(Duration::from_secs(60)).await;
        if let Err(error) = work().await {
            tracing::warn!(%error, "{trouble}; it is tried again");
        }
    }
}
