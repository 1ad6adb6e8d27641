//! SMS through the HTTP interface of Kannel and compatible gateways.
//!
//! A message is one request to `sendsms`; the gateway splits it into segments. Its response has no id: the receipt URL in the request
//! names our attempt and carries a MAC, so that only the gateway can send receipts for it. The gateway does not detect duplicates: a
//! request without a response is [`Outcome::Unknown`](nuncio_channel::Outcome::Unknown).
//!
//! Source: Kannel 1.4.5 User's Guide, chapters 6 and 7, <https://www.kannel.org/userguide.shtml>

use async_trait::async_trait;
use nuncio_channel::{AdapterFactory, CallError, CallbackRequest, ParsedCallback, Receipts, SendRequest, sms};
use nuncio_channel_http::{Endpoint, MessageApi, Refusal, Request, RequestError, SendError, adapter};
use nuncio_domain::Channel;
use nuncio_domain::message::Failure;
use nuncio_net::{Network, Response};

use crate::config::Config;

mod callback;
mod config;
mod map;
mod wire;

const KIND: &str = "kannel";

/// Makes adapters of kind `kannel`.
pub fn factory(net: Network) -> AdapterFactory {
    AdapterFactory::new(KIND, &[Channel::Sms, Channel::SmsOneway], config::FIELDS, move |account, services| {
        Ok(adapter(Config::read(&net, account, services)?, services))
    })
}

#[async_trait]
impl MessageApi for Config {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn receipts(&self) -> Receipts {
        if self.dlr_mask == 0 { Receipts::Never } else { Receipts::ByAttempt }
    }

    fn message(&self, request: &SendRequest<'_>) -> Result<Request, Failure> {
        Ok(wire::message(self, request, &sms::text(request)?))
    }

    fn sent(&self, response: &Response) -> Result<Vec<String>, SendError> {
        map::read(response, self.password.expose()).map(|()| Vec::new())
    }

    /// Without a recipient, the gateway checks the login and then refuses the request.
    async fn check(&self) -> Result<String, String> {
        match self.endpoint.send(wire::login(self), |response| self.sent(response)).await {
            Err(RequestError::Refused(Refusal { status: 400 | 422, .. })) => {
                Ok(format!("the gateway accepts the login of {}; callbacks are expected at {}", self.username, self.endpoint.callback_url))
            }
            Ok(_) => Err("the gateway accepted a message without a recipient. What to do: check url; it must end in sendsms".to_owned()),
            Err(error) => Err(map::advice(&error)),
        }
    }

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        callback::read(self, call)
    }
}
