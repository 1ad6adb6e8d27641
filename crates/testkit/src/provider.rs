//! Providers of tests.

use std::sync::Arc;

use nuncio_channel::{Adapter, AdapterFactory, Settings};
use nuncio_domain::Channel;

/// A kind of provider without settings, of which all accounts have the same adapter.
pub fn provider<A: Adapter + Clone + 'static>(kind: &'static str, channels: &'static [Channel], adapter: A) -> AdapterFactory {
    AdapterFactory::new(kind, channels, &[], move |account, _| {
        Settings::new(&[], account).finish()?;
        Ok(Arc::new(adapter.clone()))
    })
}
