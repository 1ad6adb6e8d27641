//! What the API, the dashboard and the command line may do.
//!
//! A [`Core`] holds the store, the caches in front of it and dispatch. Each use case is a method on it, in a file
//! named after the resource; callers parse and render, and decide nothing.

pub mod billing;
pub mod broadcasts;
mod cache;
mod callbacks;
mod claims;
mod compliance;
mod connections;
pub mod contacts;
mod cursor;
mod directory;
pub mod events;
mod inbound;
pub mod introspect;
pub mod invitations;
mod keys;
mod known;
mod list;
mod mail_codes;
mod mailboxes;
mod marks;
pub mod messages;
pub mod numbers;
mod once;
mod patch;
mod prices;
mod quota;
pub mod rate;
mod reassembly;
mod receipts;
mod review;
mod rights;
pub mod sandbox;
pub mod senders;
mod store_error;
pub mod suppressions;
pub mod templates;
mod to_the_end;
pub mod unsubscribe;
pub mod webhooks;

use std::sync::Arc;

use nuncio_channel::{Registry, Services, Tokens};
use nuncio_dispatch::Dispatch;
use nuncio_domain::{Environment, Ids, KeyId, Permission, Permissions, Result, TenantId};
use nuncio_store::Store;

pub use callbacks::{CallbackTarget, Called, ProviderAnswer};
pub use claims::InboundAddressView;
pub use connections::PutConnection;
pub use cursor::Cursors;
pub use keys::NewKey;
pub use list::Listed;
pub use mail_codes::{CodeRelay, EnterCode, SentCodeView};
pub use marks::Marks;
pub use nuncio_secrets::{Row, Sealer, SealerError};
pub use store_error::StoreResultExt;

/// Everything a use case needs.
#[derive(Clone, Debug)]
pub struct Core {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Arc<dyn Store>,
    dispatch: Dispatch,
    net: nuncio_net::Client,
    registry: Registry,
    services: Services,
    sealer: Sealer,
    public_url: String,
    cursors: Cursors,
    marks: Marks,
    links: messages::Links,
    tokens: Tokens,
    keys: cache::Cache<nuncio_domain::key::KeyHash, Option<Caller>>,
    /// Keys that this node made, or that were good when it last looked them up.
    good_keys: known::Known<nuncio_domain::key::KeyHash>,
    /// Connections that were there when a provider last called them on this node.
    good_connections: known::Known<nuncio_domain::ConnectionId>,
    /// Links that were made here and lead nowhere any more, by the hashes of their tokens.
    dead_links: known::Known<[u8; 32]>,
    worlds: cache::Cache<TenantId, Option<Arc<nuncio_domain::config::World>>>,
    prices: parking_lot::RwLock<prices::Books>,
    countries: cache::Cache<TenantId, Arc<Vec<nuncio_store::CountryMetrics>>>,
    /// Where codes that prove inbound addresses go out.
    code_relay: Option<CodeRelay>,
    /// Whether this node is about to stop, so that streams end.
    closing: std::sync::atomic::AtomicBool,
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
}

impl Core {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Self {
        let Parts { store, dispatch, net, registry, services, sealer, public_url, code_relay } = parts;
        let cursors = Cursors::new(sealer.derive(b"cursors"));
        let marks = Marks::new(&sealer);
        let links = messages::Links::new(sealer.derive(b"attachments"));
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
            links,
            tokens,
            keys: cache::Cache::default(),
            good_keys: known::Known::default(),
            good_connections: known::Known::default(),
            dead_links: known::Known::default(),
            worlds: cache::Cache::default(),
            prices: parking_lot::RwLock::default(),
            countries: cache::Cache::default(),
            code_relay,
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
        self.inner.store.ping().await.or_fail()?;
        match self.inner.dispatch.accepting() {
            Some(_) => Ok(()),
            None => Err(nuncio_domain::Error::unavailable("this node is not fit to accept messages right now")),
        }
    }

    /// Clock and randomness.
    pub fn ids(&self) -> &Ids {
        &self.inner.services.ids
    }

    /// Makes and reads page cursors.
    pub fn cursors(&self) -> &Cursors {
        &self.inner.cursors
    }
}
