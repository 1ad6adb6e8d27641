//! Registry of all adapter kinds.

use std::sync::Arc;

use nuncio_domain::{Channel, FieldError};

use crate::{Account, Adapter, AdapterFactory, Services};

/// The adapter factories, by kind.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    factories: Vec<Arc<dyn AdapterFactory>>,
}

impl Registry {
    pub fn new(factories: Vec<Arc<dyn AdapterFactory>>) -> Self {
        Self { factories }
    }

    /// Returns the factory of `kind`.
    pub fn get(&self, kind: &str) -> Option<&dyn AdapterFactory> {
        self.factories.iter().find(|f| f.kind() == kind).map(|f| &**f)
    }

    /// Iterates over all factories.
    pub fn iter(&self) -> impl Iterator<Item = &dyn AdapterFactory> {
        self.factories.iter().map(|f| &**f)
    }

    /// Opens an adapter of `kind`, or returns all errors of the account.
    pub fn open(&self, kind: &str, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let Some(factory) = self.get(kind) else {
            return Err(vec![FieldError::new(
                "kind",
                format!("{kind:?} is unknown; must be one of {}", self.kinds(account.channel).join(", ")),
            )]);
        };
        if !factory.channels().contains(&account.channel) {
            return Err(vec![FieldError::new("kind", format!("{kind} cannot carry channel {}", account.channel))]);
        }
        factory.open(account, services)
    }

    /// Returns the kinds that carry `channel`.
    pub fn kinds(&self, channel: Channel) -> Vec<&'static str> {
        self.iter().filter(|f| f.channels().contains(&channel)).map(AdapterFactory::kind).collect()
    }
}
