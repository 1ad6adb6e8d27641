//! What the tests share: accounts, messages, and a Graph API that follows a script.

use std::sync::Arc;

use nuncio_channel::contract::{message as contract_message, request};
use nuncio_channel::{Account, Adapter, AdapterFactory as _, Verdict};
use nuncio_channel_instagram::InstagramFactory;
use nuncio_channel_meta::scripted::{Api, Reply, SECRET, Seen, TOKEN, WORD, network, services};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Content, Message};
use nuncio_domain::{Channel, ConnectionId, FieldError, MessageType, Redacted, TenantId, Timestamp};
use serde_json::{Map, Value, json};

/// Meta's id of the account.
pub(crate) const ACCOUNT: &str = "17841405309211844";
/// Ada's id, as the account sees her.
pub(crate) const ADA: &str = "1254459154682919";

pub(crate) fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

pub(crate) fn factory() -> InstagramFactory {
    InstagramFactory::new(network())
}

/// An account for an API at `base`, with more settings.
pub(crate) fn account(base: &str, more: Value) -> Account {
    let mut settings = object(json!({"account_id": ACCOUNT, "base_url": base}));
    settings.extend(object(more));
    Account {
        id: ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10])),
        tenant: TenantId(3),
        channel: Channel::Instagram,
        settings,
        secrets: Redacted::new(object(json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD}))),
        trusted: true,
    }
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
    try_open(&account("http://127.0.0.1:9", json!({}))).unwrap()
}

/// A message of a type to Ada.
pub(crate) fn message(message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    let mut message = contract_message(&account("http://127.0.0.1:9", json!({})), ADA, 0);
    message.message_type = message_type;
    message.request_mut().text = text.map(str::to_owned);
    message.request_mut().content = Some(Box::new(serde_json::from_value::<Content>(content).unwrap()));
    message
}

pub(crate) async fn send(adapter: &Arc<dyn Adapter>, message: &Message) -> Verdict {
    adapter.send(&request(message)).await
}

/// A Graph API with this script. Two messages are one if they say the same: there is no key.
pub(crate) async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Api {
    Api::start(Value::to_string, script).await
}

/// How the API takes a message.
pub(crate) fn taken(id: &str) -> Reply {
    Reply::json(200, &json!({"recipient_id": ADA, "message_id": id}))
}
