//! Runs a node: the use cases, what carries messages out, and the loops above both.
//!
//! Adapters put provider events into a queue, which [`Node`] reads and hands to the use cases. The same node posts webhooks, and looks
//! after broadcasts, templates, phone numbers and invitations that are due.
//!
//! Everything periodic happens in [`Node::tick`]: tests call it with a clock of their own, [`Node::run`] calls it in a loop.

mod events;
mod rounds;
mod webhooks;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nuncio_channel::{EventSink, Registry, Services};
use nuncio_core::broadcasts::Reviewer;
use nuncio_core::{CodeRelay, Core};
use nuncio_dispatch::{Dispatch, DispatchConfig, Gate, Tracker, each_minute};
use nuncio_domain::Ids;
use nuncio_secrets::Sealer;
use nuncio_store::{Result, Store};
use tokio::task::JoinHandle;

use events::Events;
use webhooks::Webhooks;

/// How often to look for something to do.
const EVERY: Duration = Duration::from_millis(100);
/// How long to wait after a round that failed.
const AFTER_TROUBLE: Duration = Duration::from_millis(500);

/// What a [`Node`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// The kinds of adapters.
    pub registry: Registry,
    /// Seals and opens provider secrets.
    pub sealer: Sealer,
    /// Clock and randomness.
    pub ids: Ids,
    /// Where clients reach this installation, such as `https://messages.example.org`, without a slash at its end.
    pub public_url: String,
    /// Sends the codes that prove inbound email addresses; without it they cannot be sent.
    pub code_relay: Option<CodeRelay>,
    /// Asked about the content of broadcasts beside the built-in review.
    pub reviewer: Option<Reviewer>,
}

/// One incarnation of a node. Clones are the same node.
#[derive(Clone, Debug)]
pub struct Node {
    /// Use cases.
    pub core: Core,
    /// What carries messages out.
    pub dispatch: Dispatch,
    shared: Arc<Shared>,
    _events: Arc<Applying>,
}

#[derive(Debug)]
struct Shared {
    core: Core,
    dispatch: Dispatch,
    store: Arc<dyn Store>,
    sealer: Sealer,
    ids: Ids,
    net: nuncio_net::Client,
    tracker: Tracker,
    events: Arc<Events>,
    webhooks: Webhooks,
    /// Whether a round of broadcasts is under way.
    broadcasting: AtomicBool,
    second: Gate,
    templates: Gate,
    runtime: tokio::runtime::Handle,
}

/// The task that applies provider events. It ends with the node.
#[derive(Debug)]
struct Applying(JoinHandle<()>);

impl Drop for Applying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Node {
    /// Puts a node together. Must be called inside a Tokio runtime; nothing is sent before [`Self::start`].
    ///
    /// # Errors
    ///
    /// Fails if the system has no root certificates that can be used.
    pub fn new(parts: Parts, config: DispatchConfig) -> anyhow::Result<Self> {
        let Parts { store, registry, sealer, ids, public_url, code_relay, reviewer } = parts;
        let net = nuncio_net::Client::new(config.guard.clone())?;
        let tracker = Tracker::default();
        let (events, jobs) = events::queue(tracker.clone(), ids.clone());
        let services = Services { events: events.clone(), ids: ids.clone(), public_url: public_url.as_str().into() };
        let dispatch = Dispatch::new(
            nuncio_dispatch::Parts {
                store: Arc::clone(&store),
                registry: registry.clone(),
                services: services.clone(),
                sealer: sealer.clone(),
                net: net.clone(),
                tracker: tracker.clone(),
            },
            config,
        );
        let core = Core::new(nuncio_core::Parts {
            store: Arc::clone(&store),
            dispatch: dispatch.clone(),
            net: net.clone(),
            registry,
            services,
            sealer: sealer.clone(),
            public_url,
            code_relay,
            reviewer,
        });
        let shared = Arc::new(Shared {
            core: core.clone(),
            dispatch: dispatch.clone(),
            store,
            sealer,
            ids,
            net,
            tracker,
            events,
            webhooks: Webhooks::default(),
            broadcasting: AtomicBool::new(false),
            second: Gate::default(),
            templates: Gate::default(),
            runtime: tokio::runtime::Handle::current(),
        });
        let applying = tokio::spawn(events::apply_all(jobs, core.clone(), dispatch.clone()));
        Ok(Self { core, dispatch, shared, _events: Arc::new(Applying(applying)) })
    }

    /// Where provider events go.
    pub fn events(&self) -> Arc<dyn EventSink> {
        self.shared.events.clone()
    }

    /// Registers the node, and takes over what dead ones left. A database that was last used long ago has its unfinished messages held
    /// for a person, since it may be a copy whose messages went out meanwhile.
    pub async fn start(&self) -> Result<()> {
        self.dispatch.start().await
    }

    /// Runs one round of everything periodic; returns whether there was anything to do. Trouble with one part keeps no other from its turn.
    pub async fn tick(&self) -> Result<bool> {
        let dispatched = self.dispatch.tick().await;
        let looked_after = self.shared.look_after().await;
        Ok(dispatched? | looked_after? | self.shared.post_events(true).await?)
    }

    /// Ticks until nothing is due, under way or waiting for a permit. For tests and for a clean shutdown.
    pub async fn drain(&self) -> Result<()> {
        let tracker = &self.shared.tracker;
        loop {
            tracker.idle().await;
            let busy = self.tick().await?;
            let under_way = tracker.busy();
            tracker.idle().await;
            if !busy && !under_way {
                return self.dispatch.flush_metrics().await;
            }
        }
    }

    /// Ticks until [`Self::stop`].
    pub async fn run(&self) {
        let contacts = self.core.contacts();
        let webhooks = tokio::spawn(Arc::clone(&self.shared).run_webhooks());
        // In one task: a fault that ends one of them is seen by the others' silence.
        tokio::select! {
            () = self.dispatch.run() => {}
            () = self.run_rounds() => {}
            () = each_minute(|| contacts.finish_erasures(), "erasures were not finished") => {}
        }
        // It sees the same sign to stop.
        let _ = webhooks.await;
    }

    async fn run_rounds(&self) {
        let mut interval = tokio::time::interval(EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.dispatch.is_stopping() {
            interval.tick().await;
            if let Err(error) = self.shared.look_after().await {
                tracing::warn!(%error, "a round of the node failed; will retry");
                tokio::time::sleep(AFTER_TROUBLE).await;
            }
        }
    }

    /// Removes rows that are no longer needed: idempotency keys whose time is over, chunks of requests that were never accepted, and
    /// traces of erased contacts. [`Self::run`] does so once a minute.
    pub async fn purge(&self) -> Result<()> {
        let purged = self.dispatch.purge().await;
        purged.and(self.core.contacts().finish_erasures().await)
    }

    /// Starts nothing new, waits for what is under way (at most `patience`), and leaves.
    pub async fn stop(&self, patience: Duration) {
        self.dispatch.stop(patience).await;
        let saved = self.shared.leave_logs().await;
        if let Err(error) = saved.and(self.dispatch.leave().await) {
            tracing::warn!(%error, "the node could not sign off");
        }
    }
}
