//! Lists the adapter kinds with their settings.

use nuncio_channel::Field;
use nuncio_domain::{Channel, Environment};

use super::Senders;
use crate::base::SIM;

/// An adapter kind.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name, such as `smtp`.
    pub name: &'static str,
    /// Settings and secrets, in the order of their documentation.
    pub fields: &'static [Field],
}

impl Senders<'_> {
    /// Returns the kinds that can carry a channel in an environment. The test environment only has the simulator, the live one only has the
    /// others.
    pub fn kinds(&self, environment: Environment, channel: Channel) -> Vec<Kind> {
        let factories = self.inner.registry.iter().filter(|factory| factory.channels().contains(&channel));
        let allowed = factories.filter(|factory| (factory.kind() == SIM) == (environment == Environment::Test));
        allowed.map(|factory| Kind { name: factory.kind(), fields: factory.fields() }).collect()
    }
}
