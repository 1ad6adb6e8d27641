//! Runs a node: use cases, dispatch, and the loops above both.
//!
//! Adapters put provider events into a queue, which [`Node`] applies. The node also posts webhooks, and processes due broadcasts,
//! templates, phone numbers and invitations.
//!
//! All periodic work is in [`Node::tick`]: tests call it with a manual clock, [`Node::run`] calls it in a loop.

mod provider_events;
mod rounds;
mod webhooks;

use std::collections::HashMap;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use nuncio_channel::{EventSink, Registry, Services};
use nuncio_core::broadcasts::{Reviewer, Slots};
use nuncio_core::{CodeRelay, Core, users::Oidc};
use nuncio_dispatch::{Dispatch, DispatchConfig, Gate, Tracker, each_minute};
use nuncio_domain::{BroadcastId, Ids, TenantId};
use nuncio_secrets::Sealer;
use nuncio_store::{Result, Store};
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use provider_events::EventQueue;
use webhooks::Webhooks;

/// Interval of [`Node::tick`].
const EVERY: Duration = Duration::from_millis(100);
/// Pause after a failed round.
const AFTER_ERROR: Duration = Duration::from_millis(500);

/// Dependencies of a [`Node`].
#[derive(Debug)]
pub struct NodeDeps {
    pub store: Arc<dyn Store>,
    /// The kinds of adapters.
    pub registry: Registry,
    /// Encrypts and decrypts provider secrets.
    pub sealer: Sealer,
    /// Clock and randomness.
    pub ids: Ids,
    /// Public URL of this installation without a trailing slash, such as `https://messages.example.org`.
    pub public_url: String,
    /// Sends the codes that verify inbound email addresses; without it, codes cannot be sent.
    pub code_relay: Option<CodeRelay>,
    /// Whether servers of this installation listen for email.
    pub receives_email: bool,
    /// Verifies users who sign in through an OpenID provider.
    pub oidc: Option<Oidc>,
    /// External reviewer of broadcasts, in addition to the built-in review.
    pub reviewer: Option<Reviewer>,
}

/// A running node. Clones share it.
#[derive(Clone, Debug)]
pub struct Node {
    /// Use cases.
    pub core: Core,
    /// Sends messages.
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
    events: Arc<EventQueue>,
    webhooks: Webhooks,
    /// Broadcasts in flight, those that wait for a slot included.
    in_flight: Mutex<HashMap<BroadcastId, TenantId>>,
    slots: Slots,
    /// Whether polls of templates are in flight.
    polling: AtomicBool,
    second: Gate,
    templates: Gate,
    runtime: tokio::runtime::Handle,
}

/// The task that applies provider events. Aborted with the node.
#[derive(Debug)]
struct Applying(JoinHandle<()>);

impl Drop for Applying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Node {
    /// Makes a node. Must be called inside a Tokio runtime; sends nothing before [`Self::start`].
    ///
    /// # Errors
    ///
    /// If the system has no usable root certificates.
    pub fn new(parts: NodeDeps, config: DispatchConfig) -> anyhow::Result<Self> {
        let NodeDeps { store, registry, sealer, ids, public_url, code_relay, receives_email, oidc, reviewer } = parts;
        let net = nuncio_net::Client::new(config.guard.clone())?;
        let tracker = Tracker::default();
        let (events, jobs) = provider_events::queue(tracker.clone(), ids.clone());
        let services = Services { events: events.clone(), ids: ids.clone(), public_url: public_url.as_str().into() };
        let dispatch = Dispatch::new(
            nuncio_dispatch::DispatchDeps {
                store: Arc::clone(&store),
                registry: registry.clone(),
                services: services.clone(),
                sealer: sealer.clone(),
                net: net.clone(),
                tracker: tracker.clone(),
            },
            config,
        );
        let core = Core::new(nuncio_core::CoreDeps {
            store: Arc::clone(&store),
            dispatch: dispatch.clone(),
            net: net.clone(),
            registry,
            services,
            sealer: sealer.clone(),
            public_url,
            code_relay,
            receives_email,
            oidc,
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
            in_flight: Mutex::default(),
            slots: Slots::default(),
            polling: AtomicBool::new(false),
            second: Gate::default(),
            templates: Gate::default(),
            runtime: tokio::runtime::Handle::current(),
        });
        let applying = tokio::spawn(provider_events::apply_all(jobs, core.clone(), dispatch.clone()));
        Ok(Self { core, dispatch, shared, _events: Arc::new(Applying(applying)) })
    }

    /// Returns the sink for provider events.
    pub fn events(&self) -> Arc<dyn EventSink> {
        self.shared.events.clone()
    }

    /// Registers the node and recovers dead nodes. If the database was last used long ago, holds its unfinished messages for a human
    /// decision: it may be a copy whose messages were sent since.
    pub async fn start(&self) -> Result<()> {
        self.dispatch.start().await
    }

    /// Runs one round of all periodic work; returns whether there was anything to do. A failure of one part does not prevent the others.
    pub async fn tick(&self) -> Result<bool> {
        let dispatched = self.dispatch.tick().await;
        let looked_after = self.shared.process_due().await;
        Ok(dispatched? | looked_after? | self.shared.post_events(true).await?)
    }

    /// Ticks until nothing is due, in flight or waiting for a permit. For tests and clean shutdown.
    pub async fn drain(&self) -> Result<()> {
        let tracker = &self.shared.tracker;
        loop {
            tracker.idle().await;
            let busy = self.tick().await?;
            let under_way = tracker.busy();
            tracker.idle().await;
            if !busy && !under_way {
                rounds::store_notes(&self.core).await?;
                return self.dispatch.flush_metrics().await;
            }
        }
    }

    /// Ticks until [`Self::stop`].
    pub async fn run(&self) {
        let mut webhooks = tokio::spawn(Arc::clone(&self.shared).run_webhooks());
        // Together: if one loop panics, the others stop too, which is noticed.
        let ended = tokio::select! {
            () = self.dispatch.run() => None,
            () = self.run_rounds() => None,
            () = each_minute(|| self.finish_erasures(), "finish erasures") => None,
            ended = &mut webhooks => Some(ended),
        };
        // It gets the same stop signal.
        let ended = match ended {
            Some(ended) => ended,
            None => webhooks.await,
        };
        if let Err(error) = ended
            && let Ok(panic) = error.try_into_panic()
        {
            resume_unwind(panic);
        }
    }

    async fn run_rounds(&self) {
        let mut interval = tokio::time::interval(EVERY);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while !self.dispatch.is_stopping() {
            interval.tick().await;
            if let Err(error) = self.shared.process_due().await {
                tracing::warn!(%error, "failed to run a round of the node; will retry");
                tokio::time::sleep(AFTER_ERROR).await;
            }
        }
    }

    /// Deletes expired idempotency keys, spool chunks of requests that were never accepted, and records of erasures. [`Self::run`] calls it
    /// once a minute.
    pub async fn purge(&self) -> Result<()> {
        let purged = self.dispatch.purge().await;
        purged.and(self.finish_erasures().await)
    }

    /// Deletes records of erasures to which nothing more can be added; by a wrong clock, that would be too early.
    async fn finish_erasures(&self) -> Result<()> {
        if self.dispatch.accepting().is_none() {
            return Ok(());
        }
        self.core.contacts().finish_erasures().await
    }

    /// Starts nothing new, waits at most `patience` for work in flight, and unregisters the node.
    pub async fn stop(&self, patience: Duration) {
        self.dispatch.stop(patience).await;
        let noted = rounds::store_notes(&self.core).await;
        let saved = self.shared.stop_posting().await;
        if let Err(error) = noted.and(saved).and(self.dispatch.leave().await) {
            tracing::warn!(%error, "failed to unregister node");
        }
    }
}
