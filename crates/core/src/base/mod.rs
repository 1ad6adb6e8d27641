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
pub mod rate;
mod reads;
pub(crate) mod rights;
pub(crate) mod spending;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, atomic::AtomicBool};

use nuncio_channel::{Registry, Services, Tokens};
use nuncio_dispatch::Dispatch;
use nuncio_domain::config::{Sender, TenantConfig};
use nuncio_domain::key::KeyHash;
use nuncio_domain::{
    ConnectionId, Environment, Error, ErrorCode, Ids, KeyId, LogLimit, Permission, Permissions, Result, TenantId, Timestamp,
};
use nuncio_secrets::Sealer;
use nuncio_store::{BroadcastClick, CountryMetrics, Store};
use parking_lot::{Mutex, RwLock};

pub use audit::Act;
pub(crate) use audit::Change;
use cache::{Cache, PositiveCache};
use configuration::Books as PriceBooks;
pub(crate) use configuration::SIM;
pub use cursor::Cursors;
pub(crate) use field_errors::{BLANK, FieldErrors, check_metadata, has_nul, is_blank, project_name};
pub use identifier_hasher::IdentifierHasher;
pub(crate) use identifier_hasher::is_mark;
pub use list::Listed;
pub use oidc::{Oidc, OidcSettings};
pub use operations::UseCase;
pub use reads::ReadPermit;
use reads::Reads;
use spending::Spending;

/// Declares the use cases of a resource: a view of the [`Core`] with its own methods, reached by a method of the core.
macro_rules! use_cases {
    ($(#[$doc:meta])* $accessor:ident => $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name<'a>(&'a $crate::base::Core);

        impl std::ops::Deref for $name<'_> {
            type Target = $crate::base::Core;

            fn deref(&self) -> &Self::Target {
                self.0
            }
        }

        impl $crate::base::Core {
            $(#[$doc])*
            pub const fn $accessor(&self) -> $name<'_> {
                $name(self)
            }
        }
    };
}
pub(crate) use use_cases;

/// Member of the details of an error about a form that shows another version than the stored one.
const CHANGED: &str = "changedMeanwhile";

/// Entry point of all use cases. Clones share their state.
#[derive(Clone, Debug)]
pub struct Core {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    deps: CoreDeps,
    pub(crate) cursors: Cursors,
    pub(crate) marks: IdentifierHasher,
    pub(crate) tokens: Tokens,
    /// Callers of keys that were valid when they were read.
    pub(crate) keys: Cache<KeyHash, Option<Caller>>,
    /// Uses of keys that are not stored yet, by key.
    pub(crate) key_uses: Mutex<BTreeMap<(TenantId, KeyId), Timestamp>>,
    /// Clicks on links of broadcasts that are not stored yet, each with their number and the time of the first one.
    pub(crate) clicks: Mutex<BTreeMap<BroadcastClick, (u64, Timestamp)>>,
    /// Keys created on this node, or valid at their last look-up.
    pub(crate) good_keys: PositiveCache<KeyHash>,
    /// Connections that existed at a provider's last call on this node.
    pub(crate) good_connections: PositiveCache<ConnectionId>,
    /// Links that no longer lead anywhere, by the hashes of their tokens.
    pub(crate) dead_links: PositiveCache<[u8; 32]>,
    pub(crate) tenant_configs: Cache<TenantId, Option<Arc<TenantConfig>>>,
    pub(crate) prices: RwLock<PriceBooks>,
    pub(crate) countries: Cache<TenantId, Arc<Vec<CountryMetrics>>>,
    /// Of senders with a daily limit.
    pub(crate) spending: Spending,
    /// Of the API and the pages together.
    pub(crate) reads: Reads,
    /// Inbound messages that were dropped, and callbacks that were rejected.
    pub(crate) dropped: LogLimit,
    /// Whether this node is stopping, so that streams end.
    pub(crate) closing: AtomicBool,
}

impl Deref for Inner {
    type Target = CoreDeps;

    fn deref(&self) -> &CoreDeps {
        &self.deps
    }
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
    pub key_hash: KeyHash,
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

/// Parses an id in a body; a malformed one is a 404 that names the field, `path`.
pub(crate) fn parse_id_at<T: std::str::FromStr>(path: &str, text: &str, what: &str) -> Result<T> {
    text.parse().map_err(|_| unknown(what, path, text))
}

/// Fails with 409 if a form shows another version of a resource than the stored one.
pub(crate) fn check_version<T: PartialEq>(shown: Option<T>, stored: T, what: &str) -> Result<()> {
    if shown.is_none_or(|shown| shown == stored) {
        return Ok(());
    }
    Err(Error::new(ErrorCode::Conflict, format!("the {what} was changed meanwhile")).with(CHANGED, true.into()))
}

/// Returns whether an action failed because its form showed another version than the stored one.
pub fn is_changed_meanwhile(error: &Error) -> bool {
    error.details().contains_key(CHANGED)
}

/// Returns a 404 about the id in the field `path` of a body.
pub(crate) fn unknown(what: &str, path: &str, id: impl std::fmt::Display) -> Error {
    let shown: String = id.to_string().chars().take(64).collect();
    Error::not_found(what).at(path, format!("{shown:?} is not a {what} of this environment"))
}

/// Returns the sender that a request names. An unknown one is a 404 that names the field, `path`.
pub(crate) fn named_sender<'a>(config: &'a TenantConfig, path: &str, id: &str) -> Result<&'a Sender> {
    id.parse().ok().and_then(|id| config.sender(id)).ok_or_else(|| unknown("sender", path, id))
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
    /// Whether servers of this installation listen for email.
    pub receives_email: bool,
    /// Verifies users who sign in through an OpenID provider.
    pub oidc: Option<Oidc>,
    /// External reviewer of broadcasts, in addition to the built-in review.
    pub reviewer: Option<crate::review::Reviewer>,
}

impl Core {
    pub fn new(deps: CoreDeps) -> Self {
        let inner = Inner {
            cursors: Cursors::new(deps.sealer.derive(b"cursors")),
            marks: IdentifierHasher::new(&deps.sealer),
            tokens: mail_tokens(&deps.sealer),
            keys: Cache::default(),
            key_uses: Mutex::default(),
            clicks: Mutex::default(),
            good_keys: PositiveCache::default(),
            good_connections: PositiveCache::default(),
            dead_links: PositiveCache::default(),
            tenant_configs: Cache::default(),
            prices: RwLock::default(),
            countries: Cache::default(),
            spending: Spending::default(),
            reads: Reads::default(),
            dropped: LogLimit::default(),
            closing: AtomicBool::new(false),
            deps,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Returns the database, for health checks.
    pub fn store(&self) -> &dyn Store {
        &*self.inner.store
    }

    /// Checks that this node can accept messages: dispatch is healthy and the database responds. Otherwise returns `503 unavailable`.
    pub async fn ready(&self) -> Result<()> {
        // First what is known: a database that does not respond takes seconds to time out.
        if self.inner.dispatch.accepting().is_none() {
            let why = self.trouble().unwrap_or("it is stopping");
            return Err(Error::unavailable(format!("this node cannot accept messages now: {why}")));
        }
        Ok(self.inner.store.ping().await?)
    }

    /// Returns why this node accepts no messages although it runs; `None` if it accepts them.
    pub fn trouble(&self) -> Option<&'static str> {
        self.inner.dispatch.trouble()
    }

    /// Returns the public URL of this installation; the base of links.
    pub fn public_url(&self) -> &str {
        &self.inner.public_url
    }

    /// Returns the limit of concurrent reads, which callers respect before they read for a person or a key.
    pub fn reads(&self) -> &Reads {
        &self.inner.reads
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
