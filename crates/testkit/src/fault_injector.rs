//! Injects database errors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use async_trait::async_trait;
use nuncio_domain::lifecycle::Step;
use nuncio_store::{Accept, Accepted, DeliveryLog, MetricRow, Result, Store, StoreError, Transition, Transitioned, Tx};

/// Faults to inject, none by default, and a count of transactions.
#[derive(Debug)]
pub struct FaultInjector {
    /// Number of accepts that store their message but return an unknown outcome.
    pub lost_accepts: AtomicU32,
    /// Number of message steps before all further ones fail.
    pub steps_left: AtomicU32,
    /// While it is locked for writing, no result of an attempt reaches the database.
    pub results: tokio::sync::RwLock<()>,
    /// Whether storing results of webhook deliveries panics.
    pub log_panics: AtomicBool,
    /// Number of transactions begun, read and write.
    pub asked: AtomicU32,
    /// Number of write transactions begun.
    pub begun: AtomicU32,
}

impl Default for FaultInjector {
    fn default() -> Self {
        Self {
            lost_accepts: AtomicU32::new(0),
            steps_left: AtomicU32::new(u32::MAX),
            results: tokio::sync::RwLock::default(),
            log_panics: AtomicBool::new(false),
            asked: AtomicU32::new(0),
            begun: AtomicU32::new(0),
        }
    }
}

/// Counts down; returns `false` at zero.
fn one_less(count: &AtomicU32) -> bool {
    count.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok()
}

pub(crate) fn with(faults: Arc<FaultInjector>, store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(Faulty { faults, store })
}

#[derive(Debug)]
struct Faulty {
    faults: Arc<FaultInjector>,
    store: Arc<dyn Store>,
}

#[async_trait]
impl Store for Faulty {
    async fn accept(&self, item: Accept) -> Result<Accepted> {
        let accepted = self.store.accept(item).await?;
        if one_less(&self.faults.lost_accepts) {
            return Err(StoreError::InDoubt("a test lost the answer".to_owned()));
        }
        Ok(accepted)
    }

    async fn transition(&self, item: Transition) -> Result<Transitioned> {
        if !one_less(&self.faults.steps_left) {
            return Err(StoreError::Unavailable("a test lets no further step through".to_owned()));
        }
        if matches!(item.step, Step::Settle { .. }) {
            drop(self.faults.results.read().await);
        }
        self.store.transition(item).await
    }

    async fn add_metrics(&self, deltas: Vec<MetricRow>) -> Result<()> {
        self.store.add_metrics(deltas).await
    }

    async fn log_deliveries(&self, log: DeliveryLog) -> Result<bool> {
        assert!(!self.faults.log_panics.load(Ordering::Acquire), "a test lets this panic");
        self.store.log_deliveries(log).await
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        self.faults.asked.fetch_add(1, Ordering::AcqRel);
        self.faults.begun.fetch_add(1, Ordering::AcqRel);
        self.store.begin().await
    }

    async fn read(&self) -> Result<Box<dyn Tx>> {
        self.faults.asked.fetch_add(1, Ordering::AcqRel);
        self.store.read().await
    }

    async fn ping(&self) -> Result<()> {
        self.store.ping().await
    }

    async fn close(&self) {
        self.store.close().await;
    }

    async fn advice(&self) -> Result<Vec<String>> {
        self.store.advice().await
    }
}
