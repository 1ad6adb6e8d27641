//! SMS and calls through Twilio, and through providers with a compatible API.
//!
//! A message or a call is one request. The provider has accepted it when it responds with a SID; statuses then come to the URL sent with
//! the request, which names our attempt and which the provider signs. The API does not detect duplicates: a request without a response is
//! [`Outcome::Unknown`].
//!
//! Sources: <https://www.twilio.com/docs/messaging/api/message-resource>, <https://www.twilio.com/docs/voice/api/call-resource>

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, CallError, CallbackRequest, Capabilities, EventSink, Outcome, ParsedCallback, Receipts, ResolvedAttachment,
    SendRequest, Services, sms,
};
use nuncio_channel_http::{HttpFactory, attachment, basic, fetch, unavailable};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, MessageType};
use nuncio_net::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use nuncio_net::{FetchLimits, Method, Network, Response, Url};
use serde_json::Value;

use crate::config::Config;
use crate::map::RequestError;

mod callback;
mod config;
mod map;
mod wire;

const KIND: &str = "twilio";
/// Longest response that is read, in bytes. It describes one message.
const RESPONSE_BYTES: u64 = 256 * 1_024;

/// Message types that a call can carry.
static SPOKEN: &[MessageType] = &[MessageType::Text, MessageType::Audio, MessageType::Location, MessageType::Template];

/// Makes adapters of kind `twilio`.
pub fn factory(net: Network) -> HttpFactory {
    HttpFactory {
        net,
        kind: KIND,
        channels: &[Channel::Sms, Channel::SmsOneway, Channel::Voice],
        fields: config::FIELDS,
        has_sessions: false,
        open,
    }
}

fn open(net: &Network, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    let config = Config::read(net, account, services)?;
    let message_types = if config.is_voice() { SPOKEN } else { sms::MESSAGE_TYPES };
    Ok(Arc::new(Twilio {
        capabilities: Capabilities { message_types, receipts: Receipts::ByAttempt, window: config.endpoint.window },
        events: Arc::clone(&services.events),
        config,
    }))
}

#[derive(Debug)]
struct Twilio {
    capabilities: Capabilities,
    events: Arc<dyn EventSink>,
    config: Config,
}

#[async_trait]
impl Adapter for Twilio {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let (resource, form) = match wire::form(&self.config, request) {
            Ok(ready) => ready,
            Err(failure) => return Outcome::Rejected { failure },
        };
        let outcome = map::sent(self.call(Method::POST, &self.config.url(resource), form).await);
        if let Outcome::Rejected { failure: Failure { code: FailureCode::RecipientSuppressed, .. } } = &outcome {
            self.events.push(self.config.endpoint.origin.opted_out(request.message.to.clone()), Duration::ZERO);
        }
        outcome
    }

    async fn check(&self) -> Result<String, String> {
        let account = self.call(Method::GET, &self.config.url(""), String::new()).await.map_err(|error| map::advice(&error))?;
        let text = |name: &str| account.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        let status = text("status");
        if matches!(status.as_str(), "suspended" | "closed") {
            return Err(format!("the account is {status}. What to do: reactivate it in the provider's console"));
        }
        Ok(format!("the account is {} ({status}); callbacks are expected at {}", text("friendly_name"), self.config.endpoint.callback_url))
    }

    fn callback(&self, request: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        callback::read(&self.config, request)
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let response = self.request(Method::GET, reference, String::new(), most as u64).await.map_err(unavailable)?;
        let header = |name| response.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if response.status.is_redirection() {
            // The file is stored elsewhere, and needs no credentials there.
            let target = header(LOCATION).and_then(|target| Url::parse(reference).ok()?.join(target).ok());
            let target = target.ok_or_else(|| unavailable("the provider does not say where the file is"))?;
            let file = fetch(&self.config.endpoint.guarded, target.as_str(), most, self.config.endpoint.timeout).await?;
            return Ok(attachment(reference, Some(file.content_type), file.bytes));
        }
        if !response.status.is_success() {
            return Err(unavailable(format!("the provider returned status {} instead of the file", response.status.as_u16())));
        }
        if response.truncated {
            return Err(unavailable(format!("the file is larger than {most} bytes")));
        }
        Ok(attachment(reference, header(CONTENT_TYPE).map(str::to_owned), response.body))
    }
}

impl Twilio {
    async fn call(&self, method: Method, url: &str, form: String) -> Result<Value, RequestError> {
        let response = self.request(method, url, form, RESPONSE_BYTES).await?;
        map::read(&response, self.config.auth_token.expose())
    }

    /// Only the API gets the token and the unguarded client, whatever URL a message names.
    async fn request(&self, method: Method, url: &str, form: String, most: u64) -> Result<Response, RequestError> {
        let mut headers = HeaderMap::new();
        let endpoint = &self.config.endpoint;
        let mut client = &endpoint.guarded;
        if url.strip_prefix(&self.config.base_url).is_some_and(|rest| rest.starts_with('/')) {
            headers.insert(AUTHORIZATION, basic(&self.config.account_sid, self.config.auth_token.expose()));
            client = &endpoint.client;
        }
        if !form.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        }
        let limits = FetchLimits { max_bytes: most, timeout: endpoint.timeout };
        Ok(client.request(method, url, headers, form.into_bytes(), limits).await?)
    }
}
