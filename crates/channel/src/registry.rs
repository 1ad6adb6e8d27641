//! All kinds of adapters of this server.

use std::sync::Arc;

use nuncio_domain::{Channel, FieldError};

use crate::{Account, Adapter, AdapterFactory, Services};

/// The adapter factories, by kind.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    factories: Vec<Arc<dyn AdapterFactory>>,
}

impl Registry {
    /// A registry of these factories.
    pub fn new(factories: Vec<Arc<dyn AdapterFactory>>) -> Self {
        Self { factories }
    }

    /// The factory of `kind`.
    pub fn get(&self, kind: &str) -> Option<&dyn AdapterFactory> {
        self.factories.iter().find(|f| f.kind() == kind).map(|f| &**f)
    }

    /// All factories.
    pub fn iter(&self) -> impl Iterator<Item = &dyn AdapterFactory> {
        self.factories.iter().map(|f| &**f)
    }

    /// Opens an adapter of `kind`, or tells every fault of the account.
    pub fn open(&self, kind: &str, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let Some(factory) = self.get(kind) else {
            return Err(vec![FieldError::new(
                "kind",
                format!("{kind:?} is not known; known are {}", self.kinds(account.channel).join(", ")),
            )]);
        };
        if !factory.channels().contains(&account.channel) {
            return Err(vec![FieldError::new("kind", format!("{kind} cannot carry channel {}", account.channel))]);
        }
        factory.open(account, services)
    }

    /// The kinds that carry `channel`.
    pub fn kinds(&self, channel: Channel) -> Vec<&'static str> {
        self.iter().filter(|f| f.channels().contains(&channel)).map(AdapterFactory::kind).collect()
    }
}
