//! SMS and calls through Twilio, and through providers with a compatible API.
//!
//! A message or a call is one request. The provider has accepted it when it responds with a SID; statuses then come to the URL sent with
//! the request, which names our attempt and which the provider signs. The API does not detect duplicates: a request without a response is
//! [`Outcome::Unknown`](nuncio_channel::Outcome::Unknown).
//!
//! Sources: <https://www.twilio.com/docs/messaging/api/message-resource>, <https://www.twilio.com/docs/voice/api/call-resource>

use async_trait::async_trait;
use nuncio_channel::{AdapterFactory, CallError, CallbackRequest, ParsedCallback, Receipts, ResolvedAttachment, SendRequest, sms};
use nuncio_channel_http::{Endpoint, MessageApi, Request, SendError, adapter};
use nuncio_domain::message::Failure;
use nuncio_domain::{Channel, MessageType};
use nuncio_net::{Network, Response};
use serde_json::Value;

use crate::config::Config;

mod callback;
mod config;
mod map;
mod media;
mod voice;
mod wire;

const KIND: &str = "twilio";

/// Makes adapters of kind `twilio`.
pub fn factory(net: Network) -> AdapterFactory {
    AdapterFactory::new(KIND, &[Channel::Sms, Channel::SmsOneway, Channel::Voice], config::FIELDS, move |account, services| {
        Ok(adapter(Config::read(&net, account, services)?, services))
    })
}

#[async_trait]
impl MessageApi for Config {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn receipts(&self) -> Receipts {
        Receipts::ByAttempt
    }

    fn message_types(&self) -> &'static [MessageType] {
        if self.voice.is_some() { voice::SPOKEN } else { sms::MESSAGE_TYPES }
    }

    fn message(&self, request: &SendRequest<'_>) -> Result<Request, Failure> {
        let (resource, form) = match &self.voice {
            Some(voice) => ("/Calls", voice.form(&self.endpoint, self.from.as_deref(), request)?),
            None => ("/Messages", wire::form(self, request)?),
        };
        Ok(Request::post_form(self.url(resource), self.login(), form))
    }

    fn sent(&self, response: &Response) -> Result<Vec<String>, SendError> {
        map::sent(response, self.auth_token.expose())
    }

    async fn check(&self) -> Result<String, String> {
        let request = Request::get(self.url(""), self.login());
        let account = self.endpoint.send(request, |response| map::read(response, self.auth_token.expose())).await;
        let account = account.map_err(|error| map::advice(&error))?;
        let text = |name: &str| account.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        let status = text("status");
        if matches!(status.as_str(), "suspended" | "closed") {
            return Err(format!("the account is {status}. What to do: reactivate it in the provider's console"));
        }
        Ok(format!("the account is {} ({status}); callbacks are expected at {}", text("friendly_name"), self.endpoint.callback_url))
    }

    fn callback(&self, request: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        callback::read(self, request)
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        media::get(self, reference, most).await
    }
}
