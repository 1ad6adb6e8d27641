//! State shared by handlers, extractors and the middleware.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRef;
use nuncio_core::Core;
use nuncio_core::rate::{Buckets, Quota};
use nuncio_domain::{LogLimit, TenantId, limits};

use crate::budget::Budget;
use crate::json::Validators;
use crate::operations::Operations;
use crate::streams::Streams;
use crate::wire::Pace;

/// Limits of the whole API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiLimits {
    /// Sustained requests per minute and environment. 0 disables the limit and its headers.
    pub per_minute: u32,
    /// Burst of requests per environment, at least 1.
    pub burst: u32,
    /// Wrong keys per minute and client address, before 429. 0 disables the limit.
    pub wrong_keys_per_minute: u32,
    /// Memory for requests and responses in bytes; beyond it `503 unavailable`. Each body byte counts three times.
    pub max_in_flight_bytes: usize,
    /// Minimum upload rate.
    pub pace: Pace,
}

impl Default for ApiLimits {
    fn default() -> Self {
        Self {
            per_minute: 60_000,
            burst: 2_000,
            wrong_keys_per_minute: limits::GUESSES,
            max_in_flight_bytes: 256 * 1024 * 1024,
            pace: Pace::default(),
        }
    }
}

/// Dependencies of a [`router`](crate::router).
#[derive(Clone)]
pub struct ApiState {
    pub core: Core,
    /// Renders the metrics in the Prometheus text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub limits: ApiLimits,
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").field("core", &self.core).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// State of all routes.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) core: Core,
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) operations: Operations,
    /// Remaining requests by environment.
    pub(crate) requests: Buckets<TenantId>,
    /// Remaining failed authentications by client address.
    pub(crate) failures: Buckets<IpAddr>,
    /// Remaining callbacks to unknown connections by client address.
    pub(crate) strays: Buckets<IpAddr>,
    pub(crate) budget: Budget,
    pub(crate) pace: Pace,
    pub(crate) validators: Validators,
    pub(crate) streams: Streams,
    pub(crate) refusals: LogLimit,
}

impl App {
    pub(crate) fn new(state: ApiState, operations: Operations) -> Self {
        let ApiState { core, metrics, limits } = state;
        Self(Arc::new(Shared {
            core,
            metrics,
            operations,
            requests: Buckets::new(Quota::new(limits.per_minute, limits.burst)),
            failures: Buckets::new(Quota::new(limits.wrong_keys_per_minute, limits.wrong_keys_per_minute)),
            strays: Buckets::new(Quota::new(limits::GUESSES, limits::GUESSES)),
            budget: Budget::new(limits.max_in_flight_bytes),
            pace: limits.pace,
            validators: Validators::new(crate::published::schemas),
            streams: Streams::default(),
            refusals: LogLimit::default(),
        }))
    }
}

impl std::ops::Deref for App {
    type Target = Shared;
    fn deref(&self) -> &Shared {
        &self.0
    }
}

impl FromRef<App> for Core {
    fn from_ref(app: &App) -> Self {
        app.core.clone()
    }
}
