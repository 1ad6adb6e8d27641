//! What every use case stands on: the store and the caches in front of it, dispatch, and the rules that all resources share.

pub(crate) mod cache;
mod configuration;
mod cursor;
mod faults;
pub(crate) mod known;
pub(crate) mod list;
pub(crate) mod marks;
pub(crate) mod once;
pub(crate) mod patch;
pub mod rate;
pub(crate) mod rights;
pub(crate) mod to_the_end;
mod use_cases;

use std::sync::Arc;

use nuncio_channel::{Registry, Services, Tokens};
use nuncio_dispatch::Dispatch;
use nuncio_domain::config::Connection;
use nuncio_domain::{Environment, Error, Ids, KeyId, Permission, Permissions, Result, TenantId};
use nuncio_secrets::{Row, Sealer};
use nuncio_store::Store;
use serde_json::{Map, Value};

use cache::Cache;
use configuration::Books as PriceBooks;
pub(crate) use configuration::SIM;
pub use cursor::Cursors;
pub(crate) use faults::{Faults, check_metadata};
use known::Known;
pub use list::Listed;
pub use marks::Marks;
pub(crate) use marks::is_mark;
pub(crate) use use_cases::use_cases;

/// Everything a use case needs.
#[derive(Clone, Debug)]
pub struct Core {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) dispatch: Dispatch,
    pub(crate) net: nuncio_net::Client,
    pub(crate) registry: Registry,
    pub(crate) services: Services,
    pub(crate) sealer: Sealer,
    pub(crate) public_url: String,
    pub(crate) cursors: Cursors,
    pub(crate) marks: Marks,
    pub(crate) tokens: Tokens,
    pub(crate) keys: Cache<nuncio_domain::key::KeyHash, Option<Caller>>,
    /// Keys that this node made, or that were good when it last looked them up.
    pub(crate) good_keys: Known<nuncio_domain::key::KeyHash>,
    /// Connections that were there when a provider last called them on this node.
    pub(crate) good_connections: Known<nuncio_domain::ConnectionId>,
    /// Links that were made here and lead nowhere any more, by the hashes of their tokens.
    pub(crate) dead_links: Known<[u8; 32]>,
    pub(crate) worlds: Cache<TenantId, Option<Arc<nuncio_domain::config::World>>>,
    pub(crate) prices: parking_lot::RwLock<PriceBooks>,
    pub(crate) countries: Cache<TenantId, Arc<Vec<nuncio_store::CountryMetrics>>>,
    /// Where codes that prove inbound addresses go out.
    pub(crate) code_relay: Option<CodeRelay>,
    /// Asked about the content of broadcasts beside the built-in review.
    pub(crate) reviewer: Option<crate::broadcasts::Reviewer>,
    /// Whether this node is about to stop, so that streams end.
    pub(crate) closing: std::sync::atomic::AtomicBool,
}

/// A mail server of the operator's that carries codes, reached without TLS and password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeRelay {
    /// Its name or address.
    pub host: String,
    /// Its TCP port.
    pub port: u16,
    /// The address that codes are sent from.
    pub from: String,
}

/// Who makes a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// The world that the key opens.
    pub tenant: TenantId,
    /// Which of the project's two.
    pub environment: Environment,
    /// The key.
    pub key: KeyId,
    /// The key's hash, by which it is looked up again while a long answer goes on.
    pub key_hash: nuncio_domain::key::KeyHash,
    /// The key's name.
    pub key_name: String,
    /// What it may do.
    pub permissions: Permissions,
}

impl Caller {
    /// Fails with `403 forbidden` unless the caller has `permission`.
    pub fn require(&self, permission: Permission) -> Result<()> {
        if self.permissions.allows(permission) {
            return Ok(());
        }
        let message = format!("this API key lacks the permission {}", permission.as_str());
        Err(nuncio_domain::Error::new(nuncio_domain::ErrorCode::Forbidden, message).with("requiredPermission", permission.as_str().into()))
    }
}

/// An identifier in a path; a malformed one is of nothing.
pub(crate) fn parse_id<T: std::str::FromStr>(text: &str, what: &str) -> Result<T> {
    text.parse().map_err(|_| nuncio_domain::Error::not_found(what))
}

/// Makes and reads the signed names that mails carry, whose key follows from the sealer's oldest.
pub fn mail_tokens(sealer: &Sealer) -> Tokens {
    Tokens::new(sealer.derive(b"mail tokens"))
}

/// What a [`Core`] is made of.
#[derive(Debug)]
pub struct Parts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Carries messages out.
    pub dispatch: Dispatch,
    /// Fetches the URLs that callers name.
    pub net: nuncio_net::Client,
    /// The kinds of adapters.
    pub registry: Registry,
    /// What adapters are given, clock and randomness among it.
    pub services: Services,
    /// Opens and closes provider secrets.
    pub sealer: Sealer,
    /// Where clients reach this installation, such as `https://messages.example.org`; what links begin with.
    pub public_url: String,
    /// Sends the codes that prove inbound email addresses.
    pub code_relay: Option<CodeRelay>,
    /// Asked about the content of broadcasts beside the built-in review.
    pub reviewer: Option<crate::broadcasts::Reviewer>,
}

impl Core {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, dispatch, net, registry, services, sealer, public_url, code_relay, reviewer } = parts;
        let cursors = Cursors::new(sealer.derive(b"cursors"));
        let marks = Marks::new(&sealer);
        let tokens = mail_tokens(&sealer);
        let inner = Inner {
            store,
            dispatch,
            net,
            registry,
            services,
            sealer,
            public_url,
            cursors,
            marks,
            tokens,
            keys: Cache::default(),
            good_keys: Known::default(),
            good_connections: Known::default(),
            dead_links: Known::default(),
            worlds: Cache::default(),
            prices: parking_lot::RwLock::default(),
            countries: Cache::default(),
            code_relay,
            reviewer,
            closing: std::sync::atomic::AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The database, for health checks.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Whether this node can accept messages right now: the database answers and dispatch is fit. `503 unavailable` otherwise.
    pub async fn ready(&self) -> Result<()> {
        self.inner.store.ping().await?;
        match self.inner.dispatch.accepting() {
            Some(_) => Ok(()),
            None => Err(nuncio_domain::Error::unavailable("this node is not fit to accept messages right now")),
        }
    }

    /// Where people and providers reach this installation; what links begin with.
    pub fn public_url(&self) -> &str {
        &self.inner.public_url
    }

    /// Clock and randomness.
    pub fn ids(&self) -> &Ids {
        &self.inner.services.ids
    }

    /// The signed names that mails carry.
    pub fn mail_tokens(&self) -> &Tokens {
        &self.inner.tokens
    }

    /// Makes and reads page cursors.
    pub fn cursors(&self) -> &Cursors {
        &self.inner.cursors
    }

    pub(crate) fn open_secrets(&self, tenant: TenantId, connection: &Connection) -> Result<Map<String, Value>> {
        self.inner.sealer.open(Row::Connection(tenant, connection.id), connection.sealed.expose()).map_err(Error::internal)
    }
}
