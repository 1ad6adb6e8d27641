//! What the tests share: accounts, messages, and a Graph API that follows a script.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::testing;
use nuncio_channel::{Account, Adapter, AdapterFactory as _, Outcome};
use nuncio_channel_http::HttpFactory;
use nuncio_channel_meta::scripted::{Api, NOWHERE, Reply, SECRET, Seen, TOKEN, WORD, network, services};
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, FieldError, MessageType};
use serde_json::{Value, json};

/// Meta's id of the account.
pub(crate) const ACCOUNT: &str = "17841405309211844";
/// Ada's id, as the account sees her.
pub(crate) const ADA: &str = "1254459154682919";

pub(crate) fn factory() -> HttpFactory {
    nuncio_channel_instagram::factory(network())
}

/// An account for an API at `base`, with more settings.
pub(crate) fn account(base: &str, more: Value) -> Account {
    let settings = json!({"account_id": ACCOUNT, "base_url": base});
    let secrets = json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD});
    testing::account(Channel::Instagram, settings, more, secrets)
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

/// An adapter for a scripted API.
pub(crate) fn open(api: &Api) -> Arc<dyn Adapter> {
    try_open(&account(&api.base(), json!({}))).unwrap()
}

/// An adapter that makes no calls.
pub(crate) fn offline() -> Arc<dyn Adapter> {
    try_open(&account(NOWHERE, json!({}))).unwrap()
}

/// A message of a type to Ada.
pub(crate) fn message(message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    testing::message(&account(NOWHERE, json!({})), ADA, message_type, text, content)
}

pub(crate) async fn send(adapter: &Arc<dyn Adapter>, message: &Message) -> Outcome {
    adapter.send(&request(message)).await
}

/// The API has no key for messages: two are one if they have the same content.
pub(crate) fn identity(seen: &Seen) -> Option<String> {
    seen.path.ends_with("/messages").then(|| seen.json().to_string())
}

/// A Graph API with this script.
pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Api {
    Api::start(identity, script).await
}

/// The response to a message.
pub(crate) fn taken(id: &str) -> Reply {
    Reply::json(200, &json!({"recipient_id": ADA, "message_id": id}))
}
