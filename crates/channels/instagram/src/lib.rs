//! Instagram through Meta's messaging API for professional accounts.
//!
//! A message is `accepted` when the API returned an id for each of its requests. Callbacks report by that id that it was read; delivery is
//! not reported. The API does not detect duplicates: a request without a response is [`Outcome::Unknown`], and so is a message of which
//! only some parts were sent.
//!
//! Source: <https://developers.facebook.com/docs/instagram-platform/instagram-api-with-instagram-login/messaging-api>

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, CallError, CallbackRequest, Capabilities, Opened, Outcome, ParsedCallback, Receipts,
    ResolvedAttachment, SendRequest, Services,
};
use nuncio_channel_http::fetch;
use nuncio_channel_meta::RequestError;
use nuncio_domain::message::Failure;
use nuncio_domain::{Channel, MessageType};
use nuncio_net::Network;
use serde_json::Value;

use crate::config::{Config, Login};

mod callback;
mod config;
mod map;
mod wire;

const KIND: &str = "instagram";

/// Path of messages; the token identifies the account.
const MESSAGES: &str = "me/messages";

/// Makes adapters of kind `instagram`.
pub fn factory(net: Network) -> AdapterFactory {
    let open = move |account: &Account, services: &Services| open(&net, account, services);
    AdapterFactory::new(KIND, &[Channel::Instagram], config::FIELDS, open)
}

fn open(net: &Network, account: &Account, services: &Services) -> Opened {
    let config = Config::read(net, account, services)?;
    let window = config.graph.endpoint.window;
    let capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::ByReference, window };
    Ok(Arc::new(Instagram { capabilities, config }))
}

#[derive(Debug)]
struct Instagram {
    config: Config,
    capabilities: Capabilities,
}

#[async_trait]
impl Adapter for Instagram {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let calls = match wire::calls(request) {
            Ok(calls) => calls,
            Err(failure) => return Outcome::Rejected { failure },
        };
        let (mut refs, parts) = (Vec::new(), calls.len());
        for call in calls {
            let is_action = wire::is_action(&call);
            let answer = match self.config.graph.post(MESSAGES, call).await {
                Ok(answer) => answer,
                Err(error) => return map::stopped(&error, refs, parts),
            };
            match map::reference(&answer) {
                Some(id) => refs.push(id.to_owned()),
                None if is_action => {}
                None => return map::stopped(&RequestError::Unreadable { status: 200, retry_after: None }, refs, parts),
            }
        }
        Outcome::Accepted { refs, cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        let (fields, id, name) = match self.config.login {
            Login::Instagram => ("user_id,username", "/user_id", "/username"),
            Login::Page => {
                ("name,instagram_business_account{id,username}", "/instagram_business_account/id", "/instagram_business_account/username")
            }
        };
        let me = self.config.graph.get(&format!("me?fields={fields}")).await.map_err(|error| map::advice(&error))?;
        let text = |place: &str| me.pointer(place).and_then(Value::as_str);
        let Some(found) = text(id) else {
            return Err("the token belongs to no Instagram professional account. What to do: link the account to the Page, or create the \
                token for the account itself and set login=instagram"
                .to_owned());
        };
        let name = text(name).unwrap_or("unknown");
        if found != self.config.account_id {
            return Err(format!(
                "the token belongs to @{name} ({found}), but account_id is {}, so callbacks would be ignored. What to do: set \
                 account_id={found}, or create a token for the other account",
                self.config.account_id
            ));
        }
        Ok(format!("the account is @{name}; callbacks are expected at {}", self.config.graph.endpoint.callback_url))
    }

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        callback::read(&self.config, call)
    }

    /// The URL is public and expires after a few days; it is fetched without the token.
    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let endpoint = &self.config.graph.endpoint;
        let file = fetch(&endpoint.guarded, reference, most, endpoint.timeout).await?;
        Ok(ResolvedAttachment { filename: "media".to_owned(), ..file })
    }
}
