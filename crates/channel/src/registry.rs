//! Adapter kinds, and the registry of all of them.

use std::fmt;
use std::sync::Arc;

use nuncio_domain::{Channel, FieldError};

use crate::{Account, Adapter, Field, Services};

/// An adapter, or all errors of the account's settings.
pub type Opened = Result<Arc<dyn Adapter>, Vec<FieldError>>;

type Open = dyn Fn(&Account, &Services) -> Opened + Send + Sync;

/// Makes the adapters of one kind.
#[derive(Clone)]
pub struct AdapterFactory {
    kind: &'static str,
    channels: &'static [Channel],
    fields: &'static [Field],
    has_sessions: bool,
    forgets_receipts: bool,
    open: Arc<Open>,
}

impl AdapterFactory {
    /// A factory of adapters without sessions. `fields` are the settings and secrets of an account. `open` makes an adapter without
    /// connecting, or returns all errors of the settings at once.
    pub fn new(
        kind: &'static str,
        channels: &'static [Channel],
        fields: &'static [Field],
        open: impl Fn(&Account, &Services) -> Opened + Send + Sync + 'static,
    ) -> Self {
        Self { kind, channels, fields, has_sessions: false, forgets_receipts: false, open: Arc::new(open) }
    }

    /// The same for adapters that keep sessions, which then open before the first message.
    #[must_use]
    pub fn with_sessions(self) -> Self {
        Self { has_sessions: true, ..self }
    }

    /// The same for a provider that lives in this process, whose receipts are lost when it ends. After a start,
    /// [`Adapter::resend_receipt`] is called for them.
    #[must_use]
    pub fn forgetting_receipts(self) -> Self {
        Self { forgets_receipts: true, ..self }
    }

    /// The name of the kind, such as `smtp`.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// The channels it can carry.
    pub const fn channels(&self) -> &'static [Channel] {
        self.channels
    }

    /// Settings and secrets, for validation, help texts and docs.
    pub const fn fields(&self) -> &'static [Field] {
        self.fields
    }

    /// Whether its adapters keep sessions.
    pub const fn has_sessions(&self) -> bool {
        self.has_sessions
    }

    /// Whether receipts are lost when the process ends.
    pub const fn forgets_receipts(&self) -> bool {
        self.forgets_receipts
    }

    /// Makes an adapter without connecting. Returns all errors of the settings at once.
    pub fn open(&self, account: &Account, services: &Services) -> Opened {
        (self.open)(account, services)
    }
}

impl fmt::Debug for AdapterFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdapterFactory").field(&self.kind).finish()
    }
}

/// The adapter factories, by kind.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    factories: Vec<AdapterFactory>,
}

impl Registry {
    pub const fn new(factories: Vec<AdapterFactory>) -> Self {
        Self { factories }
    }

    /// Returns the factory of `kind`.
    pub fn get(&self, kind: &str) -> Option<&AdapterFactory> {
        self.iter().find(|f| f.kind == kind)
    }

    /// Iterates over all factories.
    pub fn iter(&self) -> impl Iterator<Item = &AdapterFactory> {
        self.factories.iter()
    }

    /// Opens an adapter of `kind`, or returns all errors of the account.
    pub fn open(&self, kind: &str, account: &Account, services: &Services) -> Opened {
        let Some(factory) = self.get(kind) else {
            return Err(vec![FieldError::new(
                "kind",
                format!("{kind:?} is unknown; must be one of {}", self.kinds(account.channel).join(", ")),
            )]);
        };
        if !factory.channels.contains(&account.channel) {
            return Err(vec![FieldError::new("kind", format!("{kind} cannot carry channel {}", account.channel))]);
        }
        factory.open(account, services)
    }

    /// Returns the kinds that carry `channel`.
    pub fn kinds(&self, channel: Channel) -> Vec<&'static str> {
        self.iter().filter(|f| f.channels.contains(&channel)).map(AdapterFactory::kind).collect()
    }
}
