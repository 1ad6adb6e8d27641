//! How messages to the bot come in: asked for, or by calls that Telegram is asked to make.
//! <https://core.telegram.org/bots/api#getting-updates>

use std::time::Duration;

use nuncio_channel::{Answer, Call as Posted, CallError, Told, Unrecorded};
use nuncio_domain::Timestamp;
use serde_json::{Value, json};
use subtle::ConstantTimeEq as _;
use tokio::time::sleep;

use crate::Telegram;
use crate::api::{Call, Fault};
use crate::map::explain;
use crate::wire::{UPDATES, Update, WebhookInfo};

/// How long Telegram keeps a question open when there is nothing to tell.
const LONG_POLL: Duration = Duration::from_secs(25);
/// The pause between answers that come at once and tell nothing, which no Bot API gives.
const IDLE: Duration = Duration::from_secs(1);
/// The first and the longest pause after a fault; it doubles in between.
const PAUSE: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How often the webhook is looked after, and how long an error that Telegram reports of it counts.
const LOOK: Duration = Duration::from_secs(300);

/// The header that bears the secret: <https://core.telegram.org/bots/api#setwebhook>.
const SECRET: &str = "x-telegram-bot-api-secret-token";

/// Why a round of receiving ended.
enum Ended {
    Fault(Fault),
    Unrecorded,
}

impl From<Fault> for Ended {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Unrecorded> for Ended {
    fn from(_: Unrecorded) -> Self {
        Self::Unrecorded
    }
}

impl Ended {
    fn explain(&self) -> String {
        match self {
            Self::Fault(fault) => explain(fault),
            Self::Unrecorded => "a message to the bot could not be written; Telegram keeps it meanwhile".to_owned(),
        }
    }

    /// How long to wait after so many faults in a row.
    fn pause(&self, faults: u32) -> Duration {
        let (first, longest) = PAUSE;
        let own = first.saturating_mul(1 << faults.min(10)).min(longest);
        match self {
            Self::Fault(Fault::Refused(refusal)) => own.max(refusal.retry_after.unwrap_or_default()),
            _ => own,
        }
    }
}

impl Telegram {
    /// Asks for updates, for ever. One is confirmed, by asking for those after it, only when it is on disk: until then Telegram tells
    /// it again, to this node or to the next.
    pub(crate) async fn poll(&self) {
        let (mut faults, mut next, mut alone) = (0, 0, false);
        loop {
            match self.ask(&mut next, &mut alone).await {
                Ok(()) => {
                    faults = 0;
                    self.set_trouble(None);
                }
                Err(ended) => {
                    // Somebody may have set a webhook, which forbids asking.
                    alone = false;
                    self.rest(&ended, &mut faults).await;
                }
            }
        }
    }

    /// Keeps the webhook set, for ever. It stays when this ends: Telegram keeps what it cannot deliver, and the next node goes on.
    pub(crate) async fn keep_webhook(&self) {
        let (mut faults, mut set) = (0, false);
        loop {
            match self.look_after_webhook(&mut set).await {
                Ok(()) => {
                    faults = 0;
                    sleep(LOOK).await;
                }
                Err(ended) => self.rest(&ended, &mut faults).await,
            }
        }
    }

    async fn rest(&self, ended: &Ended, faults: &mut u32) {
        self.set_trouble(Some(format!("messages to the bot do not come in: {}", ended.explain())));
        sleep(ended.pause(*faults)).await;
        *faults = faults.saturating_add(1);
    }

    async fn ask(&self, next: &mut i64, alone: &mut bool) -> Result<(), Ended> {
        if !*alone {
            let _: bool = self.api.call(&Call::new("deleteWebhook", json!({}))).await?;
            *alone = true;
        }
        let asked = self.ids.clock.monotonic();
        let question = json!({"offset": *next, "timeout": LONG_POLL.as_secs(), "allowed_updates": UPDATES});
        let updates: Vec<Value> = self.api.call_waiting(&Call::new("getUpdates", question), LONG_POLL).await?;
        let nothing = updates.is_empty();
        for update in updates {
            let Some(id) = update["update_id"].as_i64() else { continue };
            self.take(update).await?;
            *next = id.saturating_add(1).max(*next);
        }
        if nothing && self.ids.clock.monotonic().saturating_sub(asked) < IDLE {
            sleep(IDLE).await;
        }
        Ok(())
    }

    /// Writes what an update tells. One that cannot be read is passed over: it would come for ever.
    async fn take(&self, update: Value) -> Result<(), Unrecorded> {
        let heard = match serde_json::from_value::<Update>(update) {
            Ok(update) => self.place.hear(update, self.ids.clock.now()),
            Err(_) => {
                tracing::warn!(connection = %self.place.connection, "an update of Telegram cannot be read; it was passed over");
                return Ok(());
            }
        };
        if let Some(event) = heard.event {
            self.events.record(event).await?;
        }
        if let Some(id) = heard.pressed {
            // It only ends the turning of a wheel on the button; Telegram ends it itself after a while.
            let _: Result<bool, Fault> = self.api.call(&Call::new("answerCallbackQuery", json!({"callback_query_id": id}))).await;
        }
        Ok(())
    }

    async fn look_after_webhook(&self, set: &mut bool) -> Result<(), Ended> {
        let info = self.webhook_info().await?;
        if !*set || info.url != self.callback_url {
            // Set anew at the start, too: the secret is not told, and may be another one.
            let wanted = json!({"url": self.callback_url, "secret_token": self.config.webhook_secret.expose(), "allowed_updates": UPDATES});
            let _: bool = self.api.call(&Call::new("setWebhook", wanted)).await?;
            *set = true;
        }
        self.set_trouble(recent_error(&info, self.ids.clock.now()).map(|e| format!("Telegram could not deliver to the webhook: {e}")));
        Ok(())
    }

    pub(crate) async fn webhook_info(&self) -> Result<WebhookInfo, Fault> {
        self.api.call(&Call::new("getWebhookInfo", json!({}))).await
    }

    /// Reads what Telegram posted. It proves itself by the secret that it was given with the address.
    pub(crate) fn posted(&self, call: &Posted<'_>) -> Result<Told, CallError> {
        let given = call.headers.get(SECRET).map(|value| value.as_bytes()).unwrap_or_default();
        if !bool::from(given.ct_eq(self.config.webhook_secret.expose().as_bytes())) {
            return Err(CallError::Unproved(format!("the header {SECRET} is missing or wrong")));
        }
        // The text of the error would repeat what was written.
        let update: Update = serde_json::from_slice(call.body)
            .map_err(|e| CallError::Malformed(format!("not an update of the Bot API (line {}, column {})", e.line(), e.column())))?;
        let heard = self.place.hear(update, call.now);
        let answer = heard.pressed.map(|id| answer_pressed(&id)).unwrap_or_default();
        Ok(Told { events: heard.event.into_iter().collect(), answer })
    }
}

/// What Telegram last could not deliver, and why, if that is not long ago.
pub(crate) fn recent_error(info: &WebhookInfo, now: Timestamp) -> Option<String> {
    let at = Timestamp::from_millis(info.last_error_date?.saturating_mul(1_000));
    if now.since(at) > LOOK {
        return None;
    }
    let waiting = info.pending_update_count;
    Some(format!("{} ({waiting} waiting)", info.last_error_message.as_deref().unwrap_or("it does not say why")))
}

/// A method in the answer to a webhook: <https://core.telegram.org/bots/api#making-requests-when-getting-updates>.
fn answer_pressed(id: &str) -> Answer {
    let body = json!({"method": "answerCallbackQuery", "callback_query_id": id}).to_string();
    Answer { content_type: "application/json", body }
}
