//! SMS over HTTP, as Kannel and gateways of its shape take it.
//!
//! One message is one call of `sendsms`, which the gateway cuts into short messages by itself. It names no id in its answer: the address
//! for receipts that goes along names our attempt, and bears a MAC, so that only who got that address from us can tell what became of it.
//! The gateway does not look for duplicates: a call whose answer was lost is [`Verdict::Unknown`].
//!
//! Source: Kannel 1.4.5 User's Guide, chapters 6 and 7, <https://www.kannel.org/userguide.shtml>

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Call, CallError, Capabilities, Field, Receipts, SendRequest, Services, Told, Verdict, sms,
};
use nuncio_domain::{Channel, FieldError};
use nuncio_net::{Client, FetchLimits, Network};

use crate::config::Config;
use crate::map::Fault;
use crate::wire::Wire;

mod callback;
mod config;
mod map;
mod wire;

/// The name of this kind.
const KIND: &str = "kannel";
/// Answers are a line.
const ANSWER_BYTES: u64 = 16 * 1_024;

/// Makes adapters of kind `kannel`.
#[derive(Clone, Debug)]
pub struct KannelFactory {
    net: Network,
}

impl KannelFactory {
    /// A factory whose adapters leave by `net`.
    pub const fn new(net: Network) -> Self {
        Self { net }
    }
}

impl AdapterFactory for KannelFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::Sms, Channel::SmsOneway]
    }

    fn fields(&self) -> &'static [Field] {
        config::FIELDS
    }

    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let config = Config::read(account, services)?;
        let receipts = if config.dlr_mask == 0 { Receipts::Never } else { Receipts::ByAttempt };
        let capabilities = Capabilities { message_types: sms::MESSAGE_TYPES, receipts, window: config.window };
        Ok(Arc::new(Kannel { client: self.net.client(config.trusted).clone(), capabilities, config }))
    }
}

#[derive(Debug)]
struct Kannel {
    client: Client,
    capabilities: Capabilities,
    config: Config,
}

#[async_trait]
impl Adapter for Kannel {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Verdict {
        let text = match sms::text(request) {
            Ok(text) => text,
            Err(failure) => return Verdict::Rejected { failure },
        };
        match self.call(wire::message(&self.config, request, &text)).await {
            Ok(()) => Verdict::Accepted { refs: Vec::new(), cost: None },
            Err(fault) => map::verdict(&fault),
        }
    }

    /// Without a recipient the gateway looks at the login, and then refuses.
    async fn check(&self) -> Result<String, String> {
        match self.call(wire::login(&self.config)).await {
            Err(Fault::Refused { status: 400 | 422, .. }) => Ok(format!(
                "the gateway takes the login of {}; receipts and messages are expected at {}",
                self.config.username, self.config.callback_url
            )),
            Ok(()) => Err("the gateway accepted a message without recipient. What to do: check url; it must end in sendsms".to_owned()),
            Err(fault) => Err(map::advice(&fault)),
        }
    }

    fn callback(&self, call: &Call<'_>) -> Result<Told, CallError> {
        callback::read(&self.config, call)
    }
}

impl Kannel {
    async fn call(&self, wire: Wire) -> Result<(), Fault> {
        let limits = FetchLimits { max_bytes: ANSWER_BYTES, timeout: self.config.timeout };
        let answer = self.client.request(wire.method, &wire.url, wire.headers, wire.body, limits).await;
        map::judge(answer, self.config.password.expose())
    }
}
