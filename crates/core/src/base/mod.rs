//! The basis of all use cases: the store with its caches, dispatch, and rules shared by all resources.

pub(crate) mod audit;
pub(crate) mod cache;
mod configuration;
pub(crate) mod csv;
mod cursor;
mod field_errors;
pub(crate) mod idempotency;
pub(crate) mod identifier_hasher;
pub(crate) mod list;
pub(crate) mod oidc;
mod operations;
pub(crate) mod patch;
pub(crate) mod positive_cache;
pub mod rate;
pub(crate) mod rights;
pub(crate) mod run_to_completion;
pub(crate) mod spending;
mod use_cases;

use std::collections::BTreeMap;
use std::sync::Arc;

use nuncio_channel::{Registry, Services, Tokens};
use nuncio_dispatch::Dispatch;
use nuncio_domain::config::{Sender, TenantConfig};
use nuncio_domain::{Environment, Error, ErrorCode, Ids, KeyId, Permission, Permissions, Result, TenantId, Timestamp};
use nuncio_secrets::Sealer;
use nuncio_store::Store;

pub use audit::Act;
pub(crate) use audit::Change;
use cache::Cache;
use configuration::Books as PriceBooks;
pub(crate) use configuration::SIM;
pub use cursor::Cursors;
pub(crate) use field_errors::{BLANK, FieldErrors, check_metadata, has_nul, is_blank};
pub use identifier_hasher::IdentifierHasher;
pub(crate) use identifier_hasher::is_mark;
pub use list::Listed;
pub use oidc::{Oidc, OidcSettings};
pub use operations::UseCase;
use positive_cache::PositiveCache;
pub(crate) use use_cases::use_cases;

/// Entry point of all use cases. Clones share their state.
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
    pub(crate) marks: IdentifierHasher,
    pub(crate) tokens: Tokens,
    /// Callers of keys that were valid when they were read.
    pub(crate) keys: Cache<nuncio_domain::key::KeyHash, Option<Caller>>,
    /// Uses of keys that are not stored yet, by key.
    pub(crate) key_uses: parking_lot::Mutex<BTreeMap<(TenantId, KeyId), Timestamp>>,
    /// Keys created on this node, or valid at their last look-up.
    pub(crate) good_keys: PositiveCache<nuncio_domain::key::KeyHash>,
    /// Connections that existed at a provider's last call on this node.
    pub(crate) good_connections: PositiveCache<nuncio_domain::ConnectionId>,
    /// Links that no longer lead anywhere, by the hashes of their tokens.
    pub(crate) dead_links: PositiveCache<[u8; 32]>,
    pub(crate) tenant_configs: Cache<TenantId, Option<Arc<nuncio_domain::config::TenantConfig>>>,
    pub(crate) prices: parking_lot::RwLock<PriceBooks>,
    pub(crate) countries: Cache<TenantId, Arc<Vec<nuncio_store::CountryMetrics>>>,
    /// Of senders with a daily limit.
    pub(crate) spending: spending::Spending,
    /// Relay for the codes that verify inbound addresses.
    pub(crate) code_relay: Option<CodeRelay>,
    /// Verifies users who sign in through an OpenID provider.
    pub(crate) oidc: Option<Oidc>,
    /// External reviewer of broadcasts, in addition to the built-in review.
    pub(crate) reviewer: Option<crate::review::Reviewer>,
    /// Whether this node is stopping, so that streams end.
    pub(crate) closing: std::sync::atomic::AtomicBool,
}

/// The operator's mail server for sending codes, reached without TLS and password.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodeRelay {
    /// Host name or address.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// The address that codes are sent from.
    pub from: String,
}

/// The authenticated caller of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    pub tenant: TenantId,
    pub environment: Environment,
    pub key: KeyId,
    /// To look the key up again during a long response.
    pub key_hash: nuncio_domain::key::KeyHash,
    pub key_name: String,
    pub permissions: Permissions,
    /// When the key expires.
    pub expires_at: Option<Timestamp>,
}

impl Caller {
    /// Fails with `403 forbidden` unless the caller has the permission.
    pub fn require(&self, permission: impl Into<Permission>) -> Result<()> {
        let permission = permission.into();
        if self.permissions.allows(permission) {
            return Ok(());
        }
        let message = format!("this API key lacks the permission {}", permission.as_str());
        Err(Error::new(ErrorCode::Forbidden, message).with("requiredPermission", permission.as_str().into()))
    }
}

/// Parses an id in a path; a malformed one is a 404.
pub(crate) fn parse_id<T: std::str::FromStr>(text: &str, what: &str) -> Result<T> {
    text.parse().map_err(|_| Error::not_found(what))
}

/// Returns the sender that a request names. An unknown one is a 404 that names the field, `path`.
pub(crate) fn named_sender<'a>(config: &'a TenantConfig, path: &str, id: &str) -> Result<&'a Sender> {
    id.parse().ok().and_then(|id| config.sender(id)).ok_or_else(|| {
        let shown: String = id.chars().take(64).collect();
        Error::not_found("sender").at(path, format!("{shown:?} is not a sender of this environment"))
    })
}

/// Returns the sender that the body names as `senderId`, or else the header. They must not differ.
pub(crate) fn body_sender<'a>(config: &'a TenantConfig, body: Option<&str>, header: Option<&str>) -> Result<&'a Sender> {
    let Some(id) = body else { return requested_sender(config, header) };
    if header.is_some_and(|header| header != id) {
        return Err(Error::field("senderId", "differs from the header Service-Sender; set one of them, or the same in both"));
    }
    named_sender(config, "senderId", id)
}

/// Returns the sender that the header `Service-Sender` names, or the default sender.
pub(crate) fn requested_sender<'a>(config: &'a TenantConfig, header: Option<&str>) -> Result<&'a Sender> {
    match header {
        Some(id) => named_sender(config, "header.Service-Sender", id),
        None => config.default_sender().ok_or_else(|| {
            Error::new(ErrorCode::SenderNotConfigured, "this environment has no default sender; name one in Service-Sender")
        }),
    }
}

/// Returns the signer of email tokens; its key is derived from the sealer's oldest key.
pub fn mail_tokens(sealer: &Sealer) -> Tokens {
    Tokens::new(sealer.derive(b"mail tokens"))
}

/// Dependencies of a [`Core`].
#[derive(Debug)]
pub struct CoreDeps {
    pub store: Arc<dyn Store>,
    /// Sends messages.
    pub dispatch: Dispatch,
    /// Fetches URLs given by callers.
    pub net: nuncio_net::Client,
    /// Adapter kinds.
    pub registry: Registry,
    /// Services for adapters, including clock and randomness.
    pub services: Services,
    /// Encrypts and decrypts provider secrets.
    pub sealer: Sealer,
    /// Public URL of this installation, such as `https://messages.example.org`; the base of links.
    pub public_url: String,
    /// Sends the codes that verify inbound email addresses.
    pub code_relay: Option<CodeRelay>,
    /// Verifies users who sign in through an OpenID provider.
    pub oidc: Option<Oidc>,
    /// External reviewer of broadcasts, in addition to the built-in review.
    pub reviewer: Option<crate::review::Reviewer>,
}

impl Core {
    pub fn new(parts: CoreDeps) -> Self {
        let CoreDeps { store, dispatch, net, registry, services, sealer, public_url, code_relay, oidc, reviewer } = parts;
        let cursors = Cursors::new(sealer.derive(b"cursors"));
        let marks = IdentifierHasher::new(&sealer);
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
            key_uses: parking_lot::Mutex::default(),
            good_keys: PositiveCache::default(),
            good_connections: PositiveCache::default(),
            dead_links: PositiveCache::default(),
            tenant_configs: Cache::default(),
            prices: parking_lot::RwLock::default(),
            countries: Cache::default(),
            spending: spending::Spending::default(),
            code_relay,
            oidc,
            reviewer,
            closing: std::sync::atomic::AtomicBool::new(false),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the database, for health checks.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Checks that this node can accept messages: the database responds and dispatch is healthy. Otherwise returns `503 unavailable`.
    pub async fn ready(&self) -> Result<()> {
        self.inner.store.ping().await?;
        match self.inner.dispatch.accepting() {
            Some(_) => Ok(()),
            None => Err(Error::unavailable("this node cannot accept messages now")),
        }
    }

    /// Returns the public URL of this installation; the base of links.
    pub fn public_url(&self) -> &str {
        &self.inner.public_url
    }

    /// Returns clock and randomness.
    pub fn ids(&self) -> &Ids {
        &self.inner.services.ids
    }

    /// Returns the signer of email tokens.
    pub fn mail_tokens(&self) -> &Tokens {
        &self.inner.tokens
    }

    /// Returns the maker of page cursors.
    pub fn cursors(&self) -> &Cursors {
        &self.inner.cursors
    }
}
