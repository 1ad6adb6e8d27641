//! Limits event streams per environment.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::{ErrorCode, TenantId, limits};
use parking_lot::Mutex;

use crate::error::ApiError;
use crate::reply::Result;

/// Number of open streams on this node, by environment.
#[derive(Clone, Debug, Default)]
pub(crate) struct Streams(Arc<Mutex<HashMap<TenantId, usize>>>);

/// An open stream, counted until it is dropped.
pub(crate) struct StreamPermit {
    streams: Streams,
    tenant: TenantId,
}

impl Streams {
    /// Counts a new stream; fails if the environment has reached its limit.
    pub(crate) fn enter(&self, tenant: TenantId) -> Result<StreamPermit> {
        let mut streams = self.0.lock();
        let count = streams.entry(tenant).or_default();
        if *count >= limits::EVENT_STREAMS {
            let message = format!("this environment has {count} open event streams on this node, which is the maximum");
            return Err(ApiError::new(ErrorCode::RateLimitExceeded, message));
        }
        *count += 1;
        Ok(StreamPermit { streams: self.clone(), tenant })
    }
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        let mut streams = self.streams.0.lock();
        if let Some(count) = streams.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                streams.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_follows_a_bounded_number_of_streams() {
        let streams = Streams::default();
        let enter = |tenant| streams.enter(TenantId(tenant)).map_err(|error| error.inner().code());
        let mut places: Vec<_> = (0..limits::EVENT_STREAMS).filter_map(|_| enter(1).ok()).collect();
        assert_eq!(places.len(), limits::EVENT_STREAMS);
        assert_eq!(enter(1).err(), Some(ErrorCode::RateLimitExceeded));
        assert!(enter(2).is_ok(), "another world");
        places.pop();
        assert!(enter(1).is_ok());
        drop(places);
        assert!(streams.0.lock().is_empty());
    }
}
