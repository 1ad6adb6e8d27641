//! SMS and calls by Twilio, and by providers of its shape.
//!
//! One message, or one call, is one request. The provider took it when it answered with a SID; what becomes of it comes to the address
//! that went along, which names our attempt and which the provider signs. It does not look for duplicates: a request whose answer was lost
//! is [`Verdict::Unknown`].
//!
//! Sources: <https://www.twilio.com/docs/messaging/api/message-resource>, <https://www.twilio.com/docs/voice/api/call-resource>

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Call, CallError, Capabilities, EventSink, Field, ProviderEvent, Receipts, ResolvedAttachment,
    SendRequest, Services, Told, Verdict, sms,
};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, MessageType};
use nuncio_net::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use nuncio_net::{Client, FetchLimits, Method, Network, Response, Url};
use serde_json::Value;

use crate::config::Config;
use crate::map::Fault;

mod callback;
mod config;
mod map;
mod wire;

/// The name of this kind.
const KIND: &str = "twilio";
/// Answers describe one message.
const ANSWER_BYTES: u64 = 256 * 1_024;

/// Message types that a call can carry.
static SPOKEN: &[MessageType] = &[MessageType::Text, MessageType::Audio, MessageType::Location, MessageType::Template];

/// Makes adapters of kind `twilio`.
#[derive(Clone, Debug)]
pub struct TwilioFactory {
    net: Network,
}

impl TwilioFactory {
    /// A factory whose adapters leave by `net`.
    pub const fn new(net: Network) -> Self {
        Self { net }
    }
}

impl AdapterFactory for TwilioFactory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::Sms, Channel::SmsOneway, Channel::Voice]
    }

    fn fields(&self) -> &'static [Field] {
        config::FIELDS
    }

    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let config = Config::read(account, services)?;
        let message_types = if config.channel == Channel::Voice { SPOKEN } else { sms::MESSAGE_TYPES };
        Ok(Arc::new(Twilio {
            client: self.net.client(config.trusted).clone(),
            guarded: self.net.client(false).clone(),
            capabilities: Capabilities { message_types, receipts: Receipts::ByAttempt, window: config.window },
            events: Arc::clone(&services.events),
            config,
        }))
    }
}

struct Twilio {
    /// To the API.
    client: Client,
    /// To wherever messages and redirects say: a trusted account vouches for its API, not for these.
    guarded: Client,
    capabilities: Capabilities,
    events: Arc<dyn EventSink>,
    config: Config,
}

impl fmt::Debug for Twilio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

#[async_trait]
impl Adapter for Twilio {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Verdict {
        let (list, form) = match wire::form(&self.config, request) {
            Ok(ready) => ready,
            Err(failure) => return Verdict::Rejected { failure },
        };
        let verdict = map::sent(self.call(Method::POST, &self.config.list(list), form).await);
        if let Verdict::Rejected { failure: Failure { code: FailureCode::RecipientSuppressed, .. } } = &verdict {
            let opted = callback::opted_out(&self.config, request.message.to.clone());
            self.events.push(ProviderEvent::OptedOut(opted), Duration::ZERO);
        }
        verdict
    }

    async fn check(&self) -> Result<String, String> {
        let url = format!("{}/2010-04-01/Accounts/{}.json", self.config.base_url, self.config.account_sid);
        let account = self.call(Method::GET, &url, String::new()).await.map_err(|fault| map::advice(&fault))?;
        let text = |name: &str| account.get(name).and_then(Value::as_str).unwrap_or("not told").to_owned();
        let status = text("status");
        if matches!(status.as_str(), "suspended" | "closed") {
            return Err(format!("the account is {status}. What to do: open it again in the provider's console"));
        }
        Ok(format!("the account is {} ({status}); messages are expected at {}", text("friendly_name"), self.config.callback_url))
    }

    fn callback(&self, call: &Call<'_>) -> Result<Told, CallError> {
        callback::read(&self.config, call)
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let lost = |why: String| Failure::own(FailureCode::AttachmentUnavailable, why);
        let limits = FetchLimits { max_bytes: most as u64, timeout: self.config.timeout };
        let answer = self.request(Method::GET, reference, String::new(), limits).await.map_err(|fault| lost(fault.to_string()))?;
        let too_large = || lost(format!("the file is larger than the {most} bytes that are taken"));
        let header = |name| answer.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        if answer.status.is_redirection() {
            // To where the file lies, which wants no credentials.
            let target = header(LOCATION).and_then(|target| Url::parse(reference).ok()?.join(target).ok());
            let target = target.ok_or_else(|| lost("the provider does not say where the file is".to_owned()))?;
            let file = self.guarded.fetch(target.as_str(), limits).await.map_err(|error| lost(error.to_string()))?;
            return Ok(attachment(reference, file.content_type.as_deref(), file.bytes));
        }
        if !answer.status.is_success() {
            return Err(lost(format!("the provider answered {} instead of the file", answer.status.as_u16())));
        }
        if answer.truncated {
            return Err(too_large());
        }
        Ok(attachment(reference, header(CONTENT_TYPE), answer.body.clone()))
    }
}

/// A file is named by the end of its address.
fn attachment(reference: &str, content_type: Option<&str>, bytes: Vec<u8>) -> ResolvedAttachment {
    let filename = reference.rsplit('/').next().unwrap_or_default().to_owned();
    let content_type = content_type.unwrap_or("application/octet-stream").to_owned();
    ResolvedAttachment { filename, content_type, content_id: None, bytes }
}

impl Twilio {
    /// Makes one call and reads the JSON that it answers.
    async fn call(&self, method: Method, url: &str, form: String) -> Result<Value, Fault> {
        let limits = FetchLimits { max_bytes: ANSWER_BYTES, timeout: self.config.timeout };
        let answer = self.request(method, url, form, limits).await?;
        map::read(&answer, self.config.auth_token.expose())
    }

    /// The token, and an open way out, are for the API only, whatever address a message names.
    async fn request(&self, method: Method, url: &str, form: String, limits: FetchLimits) -> Result<Response, Fault> {
        let mut headers = HeaderMap::new();
        let mut client = &self.guarded;
        if url.strip_prefix(&self.config.base_url).is_some_and(|rest| rest.starts_with('/')) {
            let login = STANDARD.encode(format!("{}:{}", self.config.account_sid, self.config.auth_token.expose()));
            let mut login = HeaderValue::from_str(&format!("Basic {login}")).unwrap_or_else(|_| unreachable!("base64 is ASCII"));
            login.set_sensitive(true);
            headers.insert(AUTHORIZATION, login);
            client = &self.client;
        }
        if !form.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
        }
        client.request(method, url, headers, form.into_bytes(), limits).await.map_err(|error| map::fault(&error))
    }
}
