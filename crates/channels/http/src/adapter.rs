//! The adapter of a provider that takes a message in one HTTP request.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Adapter, CallError, CallbackRequest, Capabilities, EventSink, Outcome, ParsedCallback, Receipts, ResolvedAttachment, SendRequest,
    Services, sms,
};
use nuncio_domain::MessageType;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::Response;

use crate::{Disposition, Endpoint, Request, RequestError, unavailable};

/// Why a message was not sent. A refusal has the meaning of the provider's own code; without one, it goes by the HTTP status.
pub type SendError = RequestError<Option<Disposition>>;

/// An account of a provider that takes a message in one HTTP request. [`adapter`] makes the adapter.
#[async_trait]
pub trait MessageApi: Debug + Send + Sync + 'static {
    fn endpoint(&self) -> &Endpoint;

    /// How the provider reports delivery.
    fn receipts(&self) -> Receipts;

    /// The message types that it can carry; by default those of an SMS.
    fn message_types(&self) -> &'static [MessageType] {
        sms::MESSAGE_TYPES
    }

    /// The request that sends a message, or why it cannot be sent.
    fn message(&self, request: &SendRequest<'_>) -> Result<Request, Failure>;

    /// Reads the response to a message: the provider's ids of it, if it has any.
    fn sent(&self, response: &Response) -> Result<Vec<String>, SendError>;

    /// As [`Adapter::check`].
    async fn check(&self) -> Result<String, String>;

    /// As [`Adapter::callback`].
    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError>;

    /// As [`Adapter::fetch_media`].
    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let _ = (reference, most);
        Err(unavailable("this provider stores no media"))
    }
}

/// Makes the adapter of an account.
pub fn adapter(api: impl MessageApi, services: &Services) -> Arc<dyn Adapter> {
    let capabilities = Capabilities { message_types: api.message_types(), receipts: api.receipts(), window: api.endpoint().window };
    Arc::new(MessageAdapter { capabilities, events: Arc::clone(&services.events), api })
}

#[derive(Debug)]
struct MessageAdapter<A> {
    capabilities: Capabilities,
    events: Arc<dyn EventSink>,
    api: A,
}

#[async_trait]
impl<A: MessageApi> Adapter for MessageAdapter<A> {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    /// A recipient that the provider refuses because they opted out there has opted out.
    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let message = match self.api.message(request) {
            Ok(message) => message,
            Err(failure) => return Outcome::Rejected { failure },
        };
        let endpoint = self.api.endpoint();
        let outcome = match endpoint.send(message, |response| self.api.sent(response)).await {
            Ok(refs) => return Outcome::Accepted { refs, cost: None },
            Err(error) => error.outcome(|refusal| refusal.details),
        };
        if let Outcome::Rejected { failure: Failure { code: FailureCode::RecipientSuppressed, .. } } = &outcome {
            self.events.push(endpoint.origin.opted_out(request.message.to.clone(), None), Duration::ZERO);
        }
        outcome
    }

    async fn check(&self) -> Result<String, String> {
        self.api.check().await
    }

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        self.api.callback(call)
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        self.api.fetch_media(reference, most).await
    }
}
