//! What the tests share: accounts, messages, and a Graph API that follows a script.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::testing;
use nuncio_channel::{Account, Adapter, AdapterFactory as _, Outcome};
use nuncio_channel_http::HttpFactory;
use nuncio_channel_meta::scripted::{Api, NOWHERE, Reply, Seen, network};
pub(crate) use nuncio_channel_meta::scripted::{SECRET, TOKEN, WORD, services};
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, FieldError, MessageType};
use serde_json::{Value, json};

/// Meta's id of the phone number.
pub(crate) const NUMBER: &str = "106540352242922";

pub(crate) fn factory() -> HttpFactory {
    nuncio_channel_whatsapp::factory(network())
}

/// An account for an API at `base`, with more settings.
pub(crate) fn account(base: &str, more: Value) -> Account {
    let settings = json!({"phone_number_id": NUMBER, "waba_id": "102290129340398", "app_id": "670843887433847", "base_url": base});
    let secrets = json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD});
    testing::account(Channel::Whatsapp, settings, more, secrets)
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

/// An adapter for a scripted API.
pub(crate) fn open(api: &Api) -> Arc<dyn Adapter> {
    open_with(api, json!({}))
}

pub(crate) fn open_with(api: &Api, more: Value) -> Arc<dyn Adapter> {
    try_open(&account(&api.base(), more)).unwrap()
}

/// An adapter that makes no calls.
pub(crate) fn offline(more: Value) -> Arc<dyn Adapter> {
    try_open(&account(NOWHERE, more)).unwrap()
}

/// A message of a type.
pub(crate) fn message(message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    testing::message(&account(NOWHERE, json!({})), "+34600111222", message_type, text, content)
}

pub(crate) async fn send(adapter: &Arc<dyn Adapter>, message: &Message) -> Outcome {
    adapter.send(&request(message)).await
}

/// Our name of the attempt, which a message carries.
pub(crate) fn identity(seen: &Seen) -> Option<String> {
    seen.path.ends_with("/messages").then(|| seen.json()["biz_opaque_callback_data"].as_str().unwrap().to_owned())
}

/// A Graph API with this script.
pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Api {
    Api::start(identity, script).await
}

/// The response to a message.
pub(crate) fn taken() -> Reply {
    Reply::json(
        200,
        &json!({"messaging_product": "whatsapp", "contacts": [{"input": "34600111222", "wa_id": "34600111222"}], "messages": [{"id": "wamid.HBgL"}]}),
    )
}
