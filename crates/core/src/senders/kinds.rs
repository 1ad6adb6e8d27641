//! The kinds of providers that can be connected, with what each needs to know.

use nuncio_channel::Field;
use nuncio_domain::{Channel, Environment};

use super::Senders;
use crate::base::SIM;

/// A kind of provider.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Its name, such as `smtp`.
    pub name: &'static str,
    /// Its settings and secrets, in the order of their documentation.
    pub fields: &'static [Field],
}

impl Senders<'_> {
    /// The kinds that can carry a channel in an environment. In the test environment everything is simulated, and elsewhere nothing is.
    pub fn kinds(&self, environment: Environment, channel: Channel) -> Vec<Kind> {
        let factories = self.inner.registry.iter().filter(|factory| factory.channels().contains(&channel));
        let allowed = factories.filter(|factory| (factory.kind() == SIM) == (environment == Environment::Test));
        allowed.map(|factory| Kind { name: factory.kind(), fields: factory.fields() }).collect()
    }
}
