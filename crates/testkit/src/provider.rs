//! Providers of tests.

use std::sync::Arc;

use nuncio_channel::{Account, Adapter, AdapterFactory, Field, Services, Settings};
use nuncio_domain::{Channel, FieldError};

/// A kind of provider without settings, of which all accounts have the same adapter.
#[derive(Debug)]
pub struct Provider<A> {
    pub kind: &'static str,
    pub channels: &'static [Channel],
    pub adapter: A,
}

impl<A: Adapter + Clone + 'static> AdapterFactory for Provider<A> {
    fn kind(&self) -> &'static str {
        self.kind
    }

    fn channels(&self) -> &'static [Channel] {
        self.channels
    }

    fn fields(&self) -> &'static [Field] {
        &[]
    }

    fn open(&self, account: &Account, _: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        Settings::new(self.fields(), account).finish()?;
        Ok(Arc::new(self.adapter.clone()))
    }
}
