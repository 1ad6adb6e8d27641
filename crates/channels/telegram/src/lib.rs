//! Telegram, by a bot: <https://core.telegram.org/bots/api>.
//!
//! A message is `accepted` when the Bot API answered it with its id; nothing more is ever told of it. What the Bot API refuses was not
//! sent, and an answer that was lost after the call was written is [`Verdict::Unknown`]: the API has no key by which it would recognise
//! a second call as the same. Messages to the bot come in by polling or by a webhook.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Call as Posted, CallError, Capabilities, EventSink, Field, Receipts, ResolvedAttachment, SendRequest,
    Services, Sessions, Stop, Told, Verdict,
};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, Ids, MessageType};
use nuncio_net::{Client, FetchError, FetchLimits, Network};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::api::{Api, Call, Fault, File, Source};
use crate::config::{Config, Receive};
use crate::inbound::Place;

mod api;
mod config;
mod inbound;
mod map;
mod outbound;
mod receive;
mod wire;

/// Calls that are under way at once. Telegram takes about 30 messages a second: <https://core.telegram.org/bots/faq#broadcasting-to-users>.
static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::Never, window: 16 };

/// The largest file that is fetched to be uploaded, in bytes. Telegram itself fetches no larger one, and a bot may download no larger one
/// (<https://core.telegram.org/bots/api#sending-files>).
const FETCHED: u64 = 20 * 1024 * 1024;
/// Files that are held at once to be uploaded after they were fetched.
const FETCHES: usize = 2;

/// Makes adapters of kind `telegram`.
#[derive(Clone, Debug)]
pub struct TelegramFactory {
    net: Network,
}

impl TelegramFactory {
    /// A factory whose adapters leave by `net`.
    pub const fn new(net: Network) -> Self {
        Self { net }
    }
}

impl AdapterFactory for TelegramFactory {
    fn kind(&self) -> &'static str {
        "telegram"
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::Telegram]
    }

    fn fields(&self) -> &'static [Field] {
        config::FIELDS
    }

    fn has_sessions(&self) -> bool {
        true
    }

    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let config = Config::read(account)?;
        Ok(Arc::new(Telegram {
            api: Api::new(&config, self.net.client(account.trusted).clone()),
            guarded: self.net.client(false).clone(),
            fetches: Semaphore::new(FETCHES),
            place: Place { tenant: account.tenant, connection: account.id, bot: config.bot },
            callback_url: services.callback_url(self.kind(), account.id),
            events: Arc::clone(&services.events),
            ids: services.ids.clone(),
            trouble: Mutex::default(),
            config,
        }))
    }
}

/// A bot.
#[derive(Debug)]
struct Telegram {
    config: Config,
    api: Api,
    /// The way to files of callers, whoever set the connection up.
    guarded: Client,
    fetches: Semaphore,
    place: Place,
    callback_url: String,
    events: Arc<dyn EventSink>,
    ids: Ids,
    trouble: Mutex<Option<String>>,
}

#[async_trait]
impl Adapter for Telegram {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Verdict {
        let calls = match outbound::calls(request) {
            Ok(calls) => calls,
            Err(failure) => return Verdict::Rejected { failure },
        };
        let chat = &request.message.to;
        let mut refs = Vec::new();
        for call in &calls {
            match self.deliver(call).await {
                Ok(answer) => match answer["message_id"].as_i64() {
                    Some(id) => refs.push(outbound::reference(chat, id)),
                    // A reaction is no message and has no id.
                    None if answer == Value::Bool(true) => {}
                    None => return map::verdict(&Fault::Garbled { status: 200 }, chat, refs, calls.len()),
                },
                Err(fault) => return map::verdict(&fault, chat, refs, calls.len()),
            }
        }
        Verdict::Accepted { refs, cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        let me: wire::User = self.api.call(&Call::new("getMe", json!({}))).await.map_err(|fault| map::explain(&fault))?;
        let name = me.username.map_or(me.first_name, |name| format!("@{name}"));
        Ok(format!("logged in as {name} (bot {}); {}", me.id, self.how_it_receives().await?))
    }

    fn sessions(&self) -> Sessions {
        match self.config.receive {
            Receive::Polling | Receive::Webhook => Sessions::OneNode,
            Receive::Off => Sessions::None,
        }
    }

    async fn run(&self, mut stop: Stop) {
        match self.config.receive {
            Receive::Polling => stop.or(self.poll()).await,
            Receive::Webhook => stop.or(self.keep_webhook()).await,
            Receive::Off => None,
        };
        self.set_trouble(None);
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }

    fn callback(&self, call: &Posted<'_>) -> Result<Told, CallError> {
        match self.config.receive {
            Receive::Webhook => self.posted(call),
            Receive::Polling | Receive::Off => Err(CallError::NotCalled),
        }
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let unavailable = |why: String| Failure::own(FailureCode::AttachmentUnavailable, why);
        let call = Call::new("getFile", json!({"file_id": reference}));
        let file: wire::File = self.api.call(&call).await.map_err(|fault| unavailable(map::explain(&fault)))?;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        if let Some(size) = file.file_size.filter(|size| *size > most) {
            return Err(unavailable(format!("the file has {size} bytes; at most {most} are taken")));
        }
        let Some(path) = file.file_path else { return Err(unavailable("Telegram does not say where the file is".to_owned())) };
        let fetched = self.api.download(&path, most).await.map_err(|error| unavailable(error.to_string()))?;
        Ok(ResolvedAttachment {
            filename: path.rsplit('/').next().unwrap_or_default().to_owned(),
            content_type: fetched.content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            content_id: None,
            bytes: fetched.bytes,
        })
    }
}

impl Telegram {
    /// Makes a call after fetching what it uploads.
    async fn deliver(&self, call: &Call<'_>) -> Result<Value, Fault> {
        let Some(File { source: Source::Url(url), .. }) = &call.file else { return self.api.call(call).await };
        let _held = self.fetches.acquire().await;
        let limits = FetchLimits { max_bytes: FETCHED, timeout: self.config.timeout };
        let fetched = self
            .guarded
            .fetch(url, limits)
            .await
            .map_err(|error: FetchError| Fault::NoFile { why: error.to_string(), later: error.is_transient() })?;
        let mut call = call.clone();
        if let Some(file) = &mut call.file {
            if file.content_type.is_empty() {
                file.content_type = Cow::Owned(fetched.content_type.unwrap_or_default());
            }
            file.source = Source::Bytes(Cow::Owned(fetched.bytes));
        }
        self.api.call(&call).await
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    async fn how_it_receives(&self) -> Result<String, String> {
        match self.config.receive {
            Receive::Off => Ok("it only sends".to_owned()),
            Receive::Polling => Ok("it asks for messages".to_owned()),
            Receive::Webhook if !self.callback_url.starts_with("https://") => Err(format!(
                "Telegram calls https addresses only, and this server's is {}: set server.public_url, or receive=polling",
                self.callback_url
            )),
            Receive::Webhook => {
                let info = self.webhook_info().await.map_err(|fault| map::explain(&fault))?;
                match receive::recent_error(&info, self.ids.clock.now()) {
                    Some(error) if info.url == self.callback_url => {
                        Err(format!("Telegram cannot deliver to {}: {error}", self.callback_url))
                    }
                    _ if info.url == self.callback_url => Ok(format!("Telegram calls {}", self.callback_url)),
                    _ => Ok(format!("Telegram will be asked to call {}", self.callback_url)),
                }
            }
        }
    }
}
