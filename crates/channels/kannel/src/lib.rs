//! SMS through the HTTP interface of Kannel and compatible gateways.
//!
//! A message is one request to `sendsms`; the gateway splits it into segments. Its response has no id: the receipt URL in the request
//! names our attempt and carries a MAC, so that only the gateway can send receipts for it. The gateway does not detect duplicates: a
//! request without a response is [`Outcome::Unknown`].
//!
//! Source: Kannel 1.4.5 User's Guide, chapters 6 and 7, <https://www.kannel.org/userguide.shtml>

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, CallError, CallbackRequest, Capabilities, Outcome, ParsedCallback, Receipts, SendRequest, Services, sms,
};
use nuncio_channel_http::{HttpFactory, Refusal, RequestError};
use nuncio_domain::{Channel, FieldError};
use nuncio_net::Network;

use crate::config::Config;
use crate::wire::HttpRequest;

mod callback;
mod config;
mod map;
mod wire;

const KIND: &str = "kannel";
/// Longest response that is read, in bytes. It is one line.
const RESPONSE_BYTES: u64 = 16 * 1_024;

/// Makes adapters of kind `kannel`.
pub fn factory(net: Network) -> HttpFactory {
    HttpFactory { net, kind: KIND, channels: &[Channel::Sms, Channel::SmsOneway], fields: config::FIELDS, has_sessions: false, open }
}

fn open(net: &Network, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    let config = Config::read(net, account, services)?;
    let receipts = if config.dlr_mask == 0 { Receipts::Never } else { Receipts::ByAttempt };
    let capabilities = Capabilities { message_types: sms::MESSAGE_TYPES, receipts, window: config.endpoint.window };
    Ok(Arc::new(Kannel { capabilities, config }))
}

#[derive(Debug)]
struct Kannel {
    capabilities: Capabilities,
    config: Config,
}

#[async_trait]
impl Adapter for Kannel {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let text = match sms::text(request) {
            Ok(text) => text,
            Err(failure) => return Outcome::Rejected { failure },
        };
        match self.call(wire::message(&self.config, request, &text)).await {
            Ok(()) => Outcome::Accepted { refs: Vec::new(), cost: None },
            Err(error) => map::outcome(&error),
        }
    }

    /// Without a recipient, the gateway checks the login and then refuses the request.
    async fn check(&self) -> Result<String, String> {
        match self.call(wire::login(&self.config)).await {
            Err(RequestError::Refused(Refusal { status: 400 | 422, .. })) => Ok(format!(
                "the gateway accepts the login of {}; callbacks are expected at {}",
                self.config.username, self.config.endpoint.callback_url
            )),
            Ok(()) => Err("the gateway accepted a message without a recipient. What to do: check url; it must end in sendsms".to_owned()),
            Err(error) => Err(map::advice(&error)),
        }
    }

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        callback::read(&self.config, call)
    }
}

impl Kannel {
    async fn call(&self, HttpRequest { method, url, headers, body }: HttpRequest) -> Result<(), RequestError> {
        let response = self.config.endpoint.call(method, &url, headers, body, RESPONSE_BYTES).await?;
        map::read(&response, self.config.password.expose())
    }
}
