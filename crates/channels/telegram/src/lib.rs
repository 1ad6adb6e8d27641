//! Telegram bots: <https://core.telegram.org/bots/api>.
//!
//! A message is `accepted` when the Bot API returned its id; there are no receipts. What the Bot API refuses was not sent. A call without
//! a response is [`Outcome::Unknown`]: the API has no idempotency key. Messages to the bot are received by polling or by a webhook.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, CallError, CallbackRequest, Capabilities, EventSink, Opened, Origin, Outcome, ParsedCallback,
    Receipts, ResolvedAttachment, SendRequest, Services, Sessions, Stop,
};
use nuncio_channel_http::{attachment, unavailable};
use nuncio_domain::message::Failure;
use nuncio_domain::{Channel, Ids, LogLimit, MessageType};
use nuncio_net::{Client, FetchError, FetchLimits, Network};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::api::{Api, ApiCall, File, Source};
use crate::config::{Config, Receive};
use crate::inbound::Bot;
use crate::map::RequestError;

mod api;
mod config;
mod inbound;
mod map;
mod outbound;
mod receive;
mod wire;

const KIND: &str = "telegram";

/// The window limits calls in flight. Telegram accepts about 30 messages a second: <https://core.telegram.org/bots/faq#broadcasting-to-users>.
static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::Never, window: 16 };

/// Largest file that is fetched for upload, in bytes. Telegram itself fetches no larger file, nor can a bot download one
/// (<https://core.telegram.org/bots/api#sending-files>).
const FETCHED: u64 = 20 * 1024 * 1024;
/// Most fetched files held in memory at once, by a connection and by all of them. While one is uploaded, it is there twice.
const FETCHES: usize = 2;
const ALL_FETCHES: usize = 6;

/// Makes adapters of kind `telegram`.
pub fn factory(net: Network) -> AdapterFactory {
    let all_fetches = Arc::new(Semaphore::new(ALL_FETCHES));
    let open = move |account: &Account, services: &Services| open(&net, &all_fetches, account, services);
    AdapterFactory::new(KIND, &[Channel::Telegram], config::FIELDS, open).with_sessions()
}

fn open(net: &Network, all_fetches: &Arc<Semaphore>, account: &Account, services: &Services) -> Opened {
    let config = Config::read(account)?;
    Ok(Arc::new(Telegram {
        api: Api::new(&config, net.client(account.trusted).clone()),
        guarded: net.client(false).clone(),
        fetches: Semaphore::new(FETCHES),
        all_fetches: Arc::clone(all_fetches),
        bot: Bot { origin: Origin::of(account), id: config.bot },
        callback_url: services.callback_url(KIND, account.id),
        events: Arc::clone(&services.events),
        ids: services.ids.clone(),
        trouble: Mutex::default(),
        log: LogLimit::default(),
        config,
    }))
}

/// A bot.
#[derive(Debug)]
struct Telegram {
    config: Config,
    api: Api,
    /// To files at URLs that callers name: guarded even for a trusted account.
    guarded: Client,
    fetches: Semaphore,
    all_fetches: Arc<Semaphore>,
    bot: Bot,
    callback_url: String,
    events: Arc<dyn EventSink>,
    ids: Ids,
    trouble: Mutex<Option<String>>,
    /// Of unreadable updates.
    log: LogLimit,
}

#[async_trait]
impl Adapter for Telegram {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let calls = match outbound::calls(request) {
            Ok(calls) => calls,
            Err(failure) => return Outcome::Rejected { failure },
        };
        let chat = &request.message.to;
        let (mut refs, total) = (Vec::new(), calls.len());
        for call in calls {
            // The permit limits the files in memory, so it is held until the call has ended.
            let (call, _permit) = match self.with_file(call).await {
                Ok(ready) => ready,
                Err(error) => return map::no_file(&error, refs, total),
            };
            match self.api.call::<Value>(&call).await {
                Ok(result) => match result["message_id"].as_i64() {
                    Some(id) => refs.push(outbound::reference(chat, id)),
                    // A reaction is not a message and has no id.
                    None if result == Value::Bool(true) => {}
                    None => return map::outcome(&RequestError::Unreadable { status: 200, retry_after: None }, chat, refs, total),
                },
                Err(error) => return map::outcome(&error, chat, refs, total),
            }
        }
        Outcome::Accepted { refs, cost: None }
    }

    async fn check(&self) -> Result<String, String> {
        let me: wire::User = self.api.call(&ApiCall::new("getMe", json!({}))).await.map_err(|error| map::explain(&error))?;
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

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        match self.config.receive {
            Receive::Webhook => self.posted(call),
            Receive::Polling | Receive::Off => Err(CallError::NotCalled),
        }
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let call = ApiCall::new("getFile", json!({"file_id": reference}));
        let file: wire::File = self.api.call(&call).await.map_err(|error| unavailable(map::explain(&error)))?;
        let most = u64::try_from(most).unwrap_or(u64::MAX);
        if let Some(size) = file.file_size.filter(|size| *size > most) {
            return Err(unavailable(format!("the file has {size} bytes; the limit is {most}")));
        }
        let path = file.file_path.ok_or_else(|| unavailable("Telegram does not say where the file is"))?;
        let fetched = self.api.download(&path, most).await.map_err(unavailable)?;
        Ok(attachment(&path, fetched.content_type, fetched.bytes))
    }
}

impl Telegram {
    /// Fetches the file that the call uploads, if it is at a URL.
    async fn with_file<'a>(&self, mut call: ApiCall<'a>) -> Result<(ApiCall<'a>, [Option<SemaphorePermit<'_>>; 2]), FetchError> {
        let Some(File { source: Source::Url(url), .. }) = &call.file else { return Ok((call, [None, None])) };
        let permits = [self.fetches.acquire().await.ok(), self.all_fetches.acquire().await.ok()];
        let limits = FetchLimits { max_bytes: FETCHED, timeout: self.config.timeout };
        let fetched = self.guarded.fetch(url, limits).await?;
        if let Some(file) = &mut call.file {
            if file.content_type.is_empty() {
                file.content_type = Cow::Owned(fetched.content_type.unwrap_or_default());
            }
            file.source = Source::Bytes(Cow::Owned(fetched.bytes));
        }
        Ok((call, permits))
    }

    fn set_trouble(&self, trouble: Option<String>) {
        *self.trouble.lock() = trouble;
    }

    async fn how_it_receives(&self) -> Result<String, String> {
        match self.config.receive {
            Receive::Off => Ok("it receives no messages".to_owned()),
            Receive::Polling => Ok("it polls for messages".to_owned()),
            Receive::Webhook if !self.callback_url.starts_with("https://") => Err(format!(
                "Telegram requires an https webhook, and this server's URL is {}: set server.public_url, or receive=polling",
                self.callback_url
            )),
            Receive::Webhook => {
                let info = self.webhook_info().await.map_err(|error| map::explain(&error))?;
                match receive::recent_error(&info, self.ids.clock.now()) {
                    Some(error) if info.url == self.callback_url => {
                        Err(format!("Telegram cannot deliver to {}: {error}", self.callback_url))
                    }
                    _ if info.url == self.callback_url => Ok(format!("Telegram posts messages to {}", self.callback_url)),
                    _ => Ok(format!("Telegram will be asked to post messages to {}", self.callback_url)),
                }
            }
        }
    }
}
