//! Reaching for URLs that callers name.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_core::{Fetched, Web};
use nuncio_net::FetchLimits;

use crate::Dispatch;

#[async_trait]
impl Web for Dispatch {
    fn check(&self, url: &str) -> Result<(), String> {
        let parsed = url.parse().map_err(|_| "is no URL; must be like https://example.com/path".to_owned())?;
        self.shared.config.guard.check_url(&parsed).map_err(|refused| refused.to_string())
    }

    async fn fetch(&self, url: &str, most: usize, patience: Duration) -> Result<Fetched, String> {
        let limits = FetchLimits { max_bytes: most as u64, timeout: patience };
        let fetched = self.shared.net.fetch(url, limits).await.map_err(|error| error.to_string())?;
        Ok(Fetched { bytes: fetched.bytes, content_type: fetched.content_type })
    }
}
