//! Receives requests from providers.

use http::HeaderMap;
pub use nuncio_channel::CallbackReply as ProviderAnswer;
use std::sync::Arc;

use nuncio_channel::{Adapter, CallError, CallbackRequest};
use nuncio_domain::{ConnectionId, Error, ErrorCode, Result};

use super::ProviderEvents;

/// A request from a provider.
#[derive(Clone, Copy, Debug)]
pub struct Called<'a> {
    /// The method, in capitals.
    pub method: &'a str,
    /// The path after the connection.
    pub rest: &'a str,
    /// Path and query, from the first slash.
    pub path_and_query: &'a str,
    pub headers: &'a HeaderMap,
    /// The body as it came.
    pub body: &'a [u8],
}

/// A connection that has callbacks.
#[derive(Clone, Debug)]
pub struct CallbackTarget {
    id: ConnectionId,
    adapter: Arc<dyn Adapter>,
}

fn unknown() -> Error {
    Error::not_found("connection")
}

impl ProviderEvents<'_> {
    /// Returns the target of `/providers/{kind}/{connection}`. `404 not_found` if there is no such connection of this kind.
    pub async fn find_callback(&self, kind: &str, connection: &str) -> Result<CallbackTarget> {
        let id: ConnectionId = connection.parse().map_err(|_| unknown())?;
        let found = self.inner.store.read().await?.find_connection(id).await?;
        self.inner.good_connections.note(id, found.is_some());
        let (tenant, connection) = found.filter(|(_, connection)| connection.kind == kind).ok_or_else(unknown)?;
        let adapter = self.inner.dispatch.adapter(tenant, &connection).map_err(|_| unknown())?;
        Ok(CallbackTarget { id, adapter })
    }

    /// Returns whether the connection existed at its last look-up on this node, without a database access.
    pub fn knows_connection(&self, connection: &str) -> bool {
        connection.parse().is_ok_and(|id| self.inner.good_connections.contains(&id))
    }

    /// `/providers/{kind}/{connectionId}`: returns once the events are stored. The adapter verifies the provider; there is no API caller.
    pub async fn provider_called(&self, target: &CallbackTarget, called: Called<'_>) -> Result<ProviderAnswer> {
        let CallbackTarget { id, adapter } = target;
        let url = format!("{}{}", self.inner.services.public_url, called.path_and_query);
        let Called { method, rest, headers, body, .. } = called;
        let query = called.path_and_query.split_once('?').map_or("", |(_, query)| query);
        let call = CallbackRequest { method, url: &url, rest, query, headers, body, now: self.ids().clock.now() };
        let told = adapter.callback(&call).map_err(|error| {
            // Anybody who knows the URL can call.
            if let Some(suppressed) = self.inner.dropped.line(&format!("callback of {id}"), self.ids().clock.monotonic()) {
                tracing::warn!(connection = %id, %error, suppressed, "provider callback rejected");
            }
            match error {
                CallError::NotCalled => unknown(),
                CallError::Unproved(why) => Error::new(ErrorCode::Unauthorized, why),
                CallError::Malformed(why) => Error::new(ErrorCode::InvalidRequest, why),
            }
        })?;
        for event in told.events {
            let recorded = self.inner.services.events.record(event).await;
            recorded.map_err(|_| Error::unavailable("the event could not be stored; send it again"))?;
        }
        Ok(told.reply)
    }
}
