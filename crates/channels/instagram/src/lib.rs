//! Instagram, by Meta's messaging API for professional accounts.
//!
//! A message is `accepted` when the API answered each of its calls with an id; that it was read comes by callback under that id, and
//! there is no word of delivery. The API does not look for duplicates: a call whose answer was lost is [`Verdict::Unknown`], and so is a
//! message of which only some parts went out.
//!
//! Source: <https://developers.facebook.com/docs/instagram-platform/instagram-api-with-instagram-login/messaging-api>

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Call, CallError, Capabilities, Field, Receipts, ResolvedAttachment, SendRequest, Services, Told,
    Verdict,
};
use nuncio_channel_meta::{Fault, Graph};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, MessageType};
use nuncio_net::{Client, FetchLimits, Network};
use serde_json::Value;

use crate::config::{Config, Login};

mod callback;
mod config;
mod map;
mod wire;

/// Where messages are posted; the token says whose they are.
const MESSAGES: &str = "me/messages";

/// Makes adapters of kind `instagram`.
#[derive(Clone, Debug)]
pub struct InstagramFactory {
    net: Network,
}

impl InstagramFactory {
    /// A factory whose adapters leave by `net`.
    pub const fn new(net: Network) -> Self {
        Self { net }
    }
}

impl AdapterFactory for InstagramFactory {
    fn kind(&self) -> &'static str {
        "instagram"
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::Instagram]
    }

    fn fields(&self) -> &'static [Field] {
        config::FIELDS
    }

    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let config = Config::read(account)?;
        Ok(Arc::new(Instagram {
            capabilities: Capabilities { message_types: MessageType::ALL, receipts: Receipts::ByReference, window: config.window },
            callback_url: services.callback_url(self.kind(), account.id),
            graph: Graph::new(&self.net, config.access.clone()),
            guarded: self.net.client(false).clone(),
            config,
        }))
    }
}

#[derive(Debug)]
struct Instagram {
    config: Config,
    graph: Graph,
    /// The way to media, which lie where a callback says.
    guarded: Client,
    capabilities: Capabilities,
    callback_url: String,
}

#[async_trait]
impl Adapter for Instagram {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Verdict {
        let calls = match wire::calls(request) {
            Ok(calls) => calls,
            Err(failure) => return Verdict::Rejected { failure },
        };
        let (mut refs, parts) = (Vec::new(), calls.len());
        for call in calls {
            let is_action = wire::is_action(&call);
            let answer = match self.graph.post(MESSAGES, call).await {
                Ok(answer) => answer,
                Err(fault) => return map::stopped(&fault, refs, parts),
            };
            match map::reference(&answer) {
                Some(id) => refs.push(id.to_owned()),
                None if is_action => {}
                None => return map::stopped(&Fault::Garbled { status: 200, retry_after: None }, refs, parts),
            }
        }
        Verdict::Accepted { refs, cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        let (fields, id, name) = match self.config.login {
            Login::Instagram => ("user_id,username", "/user_id", "/username"),
            Login::Page => {
                ("name,instagram_business_account{id,username}", "/instagram_business_account/id", "/instagram_business_account/username")
            }
        };
        let me = self.graph.get(&format!("me?fields={fields}")).await.map_err(|fault| map::advice(&fault))?;
        let text = |place: &str| me.pointer(place).and_then(Value::as_str);
        let Some(found) = text(id) else {
            return Err("the token belongs to no Instagram professional account. What to do: link the account to the Page, or make the \
                token for the account itself and set login=instagram"
                .to_owned());
        };
        let name = text(name).unwrap_or("not told");
        if found != self.config.account_id {
            return Err(format!(
                "the token is that of @{name} ({found}), but account_id is {}, so that callbacks would be passed over. What to do: set \
                 account_id={found}, or make a token for the other account",
                self.config.account_id
            ));
        }
        Ok(format!("the account is @{name}; messages and read receipts are expected at {}", self.callback_url))
    }

    fn callback(&self, call: &Call<'_>) -> Result<Told, CallError> {
        callback::read(&self.config, call)
    }

    /// The address is public and good for a few days only; the token is not shown there.
    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let limits = FetchLimits { max_bytes: u64::try_from(most).unwrap_or(u64::MAX), timeout: self.config.access.timeout };
        let file = self.guarded.fetch(reference, limits).await;
        let file = file.map_err(|error| Failure::own(FailureCode::AttachmentUnavailable, error.to_string()))?;
        Ok(ResolvedAttachment {
            filename: "media".to_owned(),
            content_type: file.content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            content_id: None,
            bytes: file.bytes,
        })
    }
}
