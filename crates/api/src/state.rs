//! What handlers, extractors and the shell share.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::FromRef;
use nuncio_core::Core;
use nuncio_core::rate::{Buckets, Quota};
use nuncio_domain::{TenantId, limits};
use serde_json::Value;
use utoipa::openapi::OpenApi;

use crate::budget::Budget;
use crate::extract::validators::Validators;
use crate::operations::Operations;
use crate::reads::Reads;
use crate::refusals::Refusals;
use crate::streams::Streams;
use crate::wire::Pace;

/// Limits of the API as a whole.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApiLimits {
    /// Requests of one environment a minute, in the long run. 0 turns the limit off, and the headers that tell of it.
    pub per_minute: u32,
    /// Requests of one environment at once, after a pause. At least 1.
    pub burst: u32,
    /// Wrong keys that an address may try a minute, before it gets 429. 0 turns the limit off.
    pub wrong_keys_per_minute: u32,
    /// Bytes that requests and their answers may take at a time; beyond it `503 unavailable`. Each byte of a body counts three times.
    pub max_in_flight_bytes: usize,
    /// How fast a client must send a body.
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

/// What a [`router`](crate::router) is made of.
#[derive(Clone)]
pub struct ApiState {
    /// The use cases.
    pub core: Core,
    /// Renders the metrics in the Prometheus text format.
    pub metrics: Arc<dyn Fn() -> String + Send + Sync>,
    /// Limits of the API as a whole.
    pub limits: ApiLimits,
}

impl fmt::Debug for ApiState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiState").field("core", &self.core).field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// The state behind every route.
#[derive(Clone)]
pub(crate) struct App(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) core: Core,
    pub(crate) metrics: Arc<dyn Fn() -> String + Send + Sync>,
    pub(crate) operations: Operations,
    /// Requests of environments.
    pub(crate) requests: Buckets<TenantId>,
    /// Failed authentications of addresses.
    pub(crate) failures: Buckets<IpAddr>,
    /// Calls of connections that are not there, by address.
    pub(crate) strays: Buckets<IpAddr>,
    pub(crate) budget: Budget,
    pub(crate) pace: Pace,
    pub(crate) validators: Validators,
    pub(crate) streams: Streams,
    pub(crate) reads: Reads,
    pub(crate) refusals: Refusals,
}

impl App {
    /// `schemas` is `{"components": {"schemas": …}}` of the document.
    pub(crate) fn new(state: ApiState, document: &OpenApi, schemas: &'static Value) -> Self {
        let ApiState { core, metrics, limits } = state;
        Self(Arc::new(Shared {
            core,
            metrics,
            operations: Operations::of(document),
            requests: Buckets::new(Quota::new(limits.per_minute, limits.burst)),
            failures: Buckets::new(Quota::new(limits.wrong_keys_per_minute, limits.wrong_keys_per_minute)),
            strays: Buckets::new(Quota::new(limits::GUESSES, limits::GUESSES)),
            budget: Budget::new(limits.max_in_flight_bytes),
            pace: limits.pace,
            validators: Validators::new(schemas),
            streams: Streams::default(),
            reads: Reads::default(),
            refusals: Refusals::default(),
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
