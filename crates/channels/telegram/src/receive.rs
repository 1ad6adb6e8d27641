//! Receives messages to the bot, by polling or by a webhook.
//! <https://core.telegram.org/bots/api#getting-updates>

use std::time::Duration;

use nuncio_channel::{CallError, CallbackReply, CallbackRequest, ParsedCallback, Unrecorded};
use nuncio_channel_http::is_secret;
use nuncio_domain::Timestamp;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::Telegram;
use crate::api::ApiCall;
use crate::inbound::Received;
use crate::map::{RequestError, explain};
use crate::wire::{UPDATES, Update, WebhookInfo};

/// How long Telegram keeps a poll open without updates.
const LONG_POLL: Duration = Duration::from_secs(25);
/// Pause after a response that came at once and had nothing new; a Bot API would have waited.
const IDLE: Duration = Duration::from_secs(1);
/// First and longest pause after an error; it doubles in between.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often the webhook is checked, and how long an error that Telegram reports about it counts.
const LOOK: Duration = Duration::from_secs(300);

/// The header with the secret: <https://core.telegram.org/bots/api#setwebhook>.
const SECRET: &str = "x-telegram-bot-api-secret-token";

/// Why receiving failed.
enum ReceiveError {
    Request(RequestError),
    Unrecorded,
}

impl From<RequestError> for ReceiveError {
    fn from(error: RequestError) -> Self {
        Self::Request(error)
    }
}

impl From<Unrecorded> for ReceiveError {
    fn from(_: Unrecorded) -> Self {
        Self::Unrecorded
    }
}

impl ReceiveError {
    fn explain(&self) -> String {
        match self {
            Self::Request(error) => explain(error),
            Self::Unrecorded => "a message to the bot could not be stored; Telegram will send it again".to_owned(),
        }
    }

    /// How long to wait after so many consecutive errors.
    fn pause(&self, errors: u32) -> Duration {
        let (first, longest) = PAUSE;
        let own = first.saturating_mul(1 << errors.min(10)).min(longest);
        match self {
            Self::Request(RequestError::Refused(refusal)) => own.max(refusal.retry_after.unwrap_or_default()),
            _ => own,
        }
    }
}

impl Telegram {
    /// Polls until cancelled. An update is confirmed, by asking for those after it, only when it is stored: until then, Telegram sends it
    /// again, to this node or to the next.
    pub(crate) async fn poll(&self) {
        let (mut errors, mut next, mut alone) = (0, 0, false);
        loop {
            match self.poll_once(&mut next, &mut alone).await {
                Ok(()) => {
                    errors = 0;
                    self.set_trouble(None);
                }
                Err(error) => {
                    // A webhook may have been set, which prevents polling.
                    alone = false;
                    self.back_off(&error, &mut errors).await;
                }
            }
        }
    }

    /// Keeps the webhook set until cancelled. It stays set afterwards: Telegram keeps what it cannot deliver, and the next node takes over.
    pub(crate) async fn keep_webhook(&self) {
        let (mut errors, mut set) = (0, false);
        loop {
            match self.check_webhook(&mut set).await {
                Ok(()) => {
                    errors = 0;
                    sleep(LOOK).await;
                }
                Err(error) => self.back_off(&error, &mut errors).await,
            }
        }
    }

    async fn back_off(&self, error: &ReceiveError, errors: &mut u32) {
        self.set_trouble(Some(format!("messages to the bot are not received: {}", error.explain())));
        sleep(error.pause(*errors)).await;
        *errors = errors.saturating_add(1);
    }

    async fn poll_once(&self, next: &mut i64, alone: &mut bool) -> Result<(), ReceiveError> {
        if !*alone {
            let _: bool = self.api.call(&ApiCall::new("deleteWebhook", json!({}))).await?;
            *alone = true;
        }
        let started = self.ids.clock.monotonic();
        let parameters = json!({"offset": *next, "timeout": LONG_POLL.as_secs(), "allowed_updates": UPDATES});
        let updates: Vec<Value> = self.api.call_waiting(&ApiCall::new("getUpdates", parameters), LONG_POLL).await?;
        let (none, before) = (updates.is_empty(), *next);
        for update in updates {
            let Some(id) = update["update_id"].as_i64() else { continue };
            self.take(update).await?;
            *next = id.saturating_add(1);
        }
        if none {
            // All are confirmed. After a quiet week, ids start again at a random number, which can be lower.
            *next = 0;
        }
        let has_news = !none && *next != before;
        if !has_news && self.ids.clock.monotonic().saturating_sub(started) < IDLE {
            sleep(IDLE).await;
        }
        Ok(())
    }

    /// Reads an update. An unreadable one is skipped: it would be sent again and again.
    fn read(&self, update: Value, now: Timestamp) -> Received {
        // The error's own text would quote the message.
        let Ok(update) = serde_json::from_value::<Update>(update) else {
            if let Some(suppressed) = self.log.line("", self.ids.clock.monotonic()) {
                tracing::warn!(connection = %self.bot.origin.connection, suppressed, "failed to read an update of Telegram; skipped it");
            }
            return Received::default();
        };
        self.bot.read(update, now)
    }

    /// Stores the event of an update.
    async fn take(&self, update: Value) -> Result<(), Unrecorded> {
        let received = self.read(update, self.ids.clock.now());
        if let Some(event) = received.event {
            self.events.record(event).await?;
        }
        if let Some(id) = received.pressed {
            // This only ends the button's progress indicator; Telegram ends it after a while.
            let _: Result<bool, RequestError> = self.api.call(&ApiCall::new("answerCallbackQuery", json!({"callback_query_id": id}))).await;
        }
        Ok(())
    }

    async fn check_webhook(&self, set: &mut bool) -> Result<(), ReceiveError> {
        let info = self.webhook_info().await?;
        if !*set || info.url != self.callback_url {
            // Also set it at the start: Telegram does not return the secret, which may have changed.
            let wanted = json!({"url": self.callback_url, "secret_token": self.config.webhook_secret.expose(), "allowed_updates": UPDATES});
            let _: bool = self.api.call(&ApiCall::new("setWebhook", wanted)).await?;
            *set = true;
        }
        self.set_trouble(recent_error(&info, self.ids.clock.now()).map(|e| format!("Telegram could not deliver to the webhook: {e}")));
        Ok(())
    }

    pub(crate) async fn webhook_info(&self) -> Result<WebhookInfo, RequestError> {
        self.api.call(&ApiCall::new("getWebhookInfo", json!({}))).await
    }

    /// Reads a callback. The secret given to Telegram with the URL proves who posts.
    pub(crate) fn posted(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        let given = call.header(SECRET).unwrap_or_default();
        if !is_secret(given.as_bytes(), &self.config.webhook_secret) {
            return Err(CallError::Unproved(format!("the header {SECRET} is missing or wrong")));
        }
        let update: Value = serde_json::from_slice(call.body)
            .map_err(|e| CallError::Malformed(format!("not an update of the Bot API (line {}, column {})", e.line(), e.column())))?;
        let received = self.read(update, call.now);
        let reply = received.pressed.map(|id| answer_pressed(&id)).unwrap_or_default();
        Ok(ParsedCallback { events: received.event.into_iter().collect(), reply })
    }
}

/// Telegram's last delivery error, if it is recent.
pub(crate) fn recent_error(info: &WebhookInfo, now: Timestamp) -> Option<String> {
    let at = Timestamp::from_millis(info.last_error_date?.saturating_mul(1_000));
    if now.since(at) > LOOK {
        return None;
    }
    let waiting = info.pending_update_count;
    Some(format!("{} ({waiting} waiting)", info.last_error_message.as_deref().unwrap_or("no reason given")))
}

/// A method in the reply to a webhook: <https://core.telegram.org/bots/api#making-requests-when-getting-updates>.
fn answer_pressed(id: &str) -> CallbackReply {
    let body = json!({"method": "answerCallbackQuery", "callback_query_id": id}).to_string();
    CallbackReply { content_type: "application/json", body }
}
