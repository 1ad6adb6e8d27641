//! `POST /v1/messages/batch`.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::State;
use futures::stream::{self, StreamExt as _};
use nuncio_core::Caller;
use nuncio_core::messages::{MessageView, SendMessage, SendOptions};
use nuncio_domain::{Error, limits};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::sync::OwnedMutexGuard;
use utoipa::ToSchema;

use crate::error_schemas::Code;
use crate::extract::{Auth, Body, IdempotencyKey, Lenient, ServiceSender};
use crate::reply::{Reply, Result};
use crate::state::App;

/// Messages accepted concurrently, so that they share commits.
const AT_ONCE: usize = 64;

/// Bytes of field errors in all results together, above which each result has its first one only: the response is in memory until the
/// client has read it.
const ERROR_BYTES: usize = 1024 * 1024;

/// Messages to send.
#[derive(Deserialize, ToSchema)]
#[schema(as = SendMessages)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "only its schema is used: each message is read separately")]
pub(crate) struct Documented {
    #[schema(min_items = 1, max_items = 1000)]
    messages: Vec<SendMessage>,
}

/// The same as it is read: an error in one message must not reject the others.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = UnreadMessages)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unread {
    #[schema(min_items = 1, max_items = 1000, value_type = Vec<Value>)]
    messages: Vec<Box<RawValue>>,
}

/// The result of each message, in order.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchResults)]
pub(crate) struct Results {
    results: Vec<Outcome>,
}

/// The result of one message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchResult)]
#[serde(untagged)]
pub(crate) enum Outcome {
    Accepted(Box<Accepted>),
    Refused(Refused),
}

/// A message that was accepted.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchAccepted)]
pub(crate) struct Accepted {
    /// 202.
    #[schema(minimum = 202, maximum = 202, example = 202)]
    status: u16,
    message: MessageView,
}

/// A rejected message: the body that `POST /v1/messages` returns, with the status.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BatchRefused)]
pub(crate) struct Refused {
    /// The status that `POST /v1/messages` returns.
    #[schema(minimum = 400, maximum = 599)]
    status: u16,
    #[schema(value_type = Code)]
    code: &'static str,
    /// The error as text; with 409, the original message.
    message: Value,
    #[schema(value_type = Object)]
    details: Value,
    /// `code` and text again, with 403 and 409.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    error: Option<Value>,
}

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        let (code, mut body) = (error.code(), error.to_body());
        let mut take = |name: &str| body.get_mut(name).map(Value::take);
        Self {
            status: code.status(),
            code: code.as_str(),
            message: take("message").unwrap_or_default(),
            details: take("details").unwrap_or_default(),
            error: take("error"),
        }
    }
}

impl Refused {
    /// Drops all field errors but the first one if they do not fit into `room` bytes.
    fn shorten(&mut self, room: &mut usize) {
        let Some(errors) = self.details.get_mut("errors").and_then(Value::as_array_mut) else { return };
        let bytes = serde_json::to_string(errors).map_or(usize::MAX, |json| json.len());
        if bytes <= *room {
            *room -= bytes;
        } else if errors.len() > 1 {
            self.message = format!("{} or more fields are invalid; details.errors lists the first of them", errors.len()).into();
            errors.truncate(1);
        }
    }
}

/// Messages of a batch with the same idempotency key take turns, in their order: the first one is sent.
#[derive(Debug, Default)]
struct Turns(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    async fn of(&self, key: Option<&String>) -> Option<OwnedMutexGuard<()>> {
        let turn = Arc::clone(self.0.lock().entry(key?.clone()).or_default());
        Some(turn.lock_owned().await)
    }
}

async fn send(app: &App, caller: &Caller, message: Box<RawValue>, options: SendOptions, turns: &Turns) -> Outcome {
    let lenient = options.lenient;
    let sent = async {
        let command: SendMessage = app.validators.parse(message.get().as_bytes(), lenient)?;
        drop(message);
        let _turn = turns.of(command.idempotency_key.as_ref()).await;
        app.core.messages().send(caller, command, options).await
    };
    match sent.await {
        Ok(message) => Outcome::Accepted(Box::new(Accepted { status: 202, message })),
        Err(error) => {
            log(app, &error);
            Outcome::Refused(error.into())
        }
    }
}

/// Logs one line for all messages of a batch that failed alike.
fn log(app: &App, error: &Error) {
    if error.code().status() < 500 {
        return;
    }
    if let Some(suppressed) = app.refusals.line(&error.to_string(), app.core.ids().clock.monotonic()) {
        tracing::error!(?error, suppressed, "failed to accept a message of a batch");
    }
}

/// Send several messages
///
/// Each message is accepted or rejected separately, as by `POST /v1/messages`; the results are in the order of the messages. A batch has no
/// idempotency key, but each message can have an `idempotencyKey`; of several with the same one, the first is sent. Once the results have 1 MB of
/// field errors, each further one has its first error only.
#[utoipa::path(
    post, path = "/v1/messages/batch", tag = "Messages", request_body = Documented, params(ServiceSender),
    responses((status = 200, description = "A result for each message.", body = Results)),
)]
pub(crate) async fn send_messages(
    State(app): State<App>,
    Auth(caller): Auth,
    Lenient(lenient): Lenient,
    IdempotencyKey(key): IdempotencyKey,
    ServiceSender(sender): ServiceSender,
    Body { value: Unread { messages }, .. }: Body<Unread, { limits::MESSAGE_BODY_BYTES }, true>,
) -> Result<Reply<Results>> {
    if key.is_some() {
        let message = "is not supported for a batch; set idempotencyKey in each message";
        return Err(Error::field("header.Idempotency-Key", message).into());
    }
    if !(1..=limits::BATCH).contains(&messages.len()) {
        let message = format!("has {} items; must have 1 to {}", messages.len(), limits::BATCH);
        return Err(Error::field("messages", message).into());
    }
    let options = SendOptions { sender, lenient, ..SendOptions::default() };
    let turns = Turns::default();
    let sent = messages.into_iter().map(|message| send(&app, &caller, message, options.clone(), &turns));
    let mut room = ERROR_BYTES;
    let results = stream::iter(sent).buffered(AT_ONCE).map(|mut outcome| {
        if let Outcome::Refused(refused) = &mut outcome {
            refused.shorten(&mut room);
        }
        outcome
    });
    Ok(Reply::ok(Results { results: results.collect().await }))
}
