//! What the tests share: accounts, messages, and a Graph API that follows a script.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::{Adapter, Outcome};
use nuncio_channel_meta::scripted::{Accounts, Api, Reply, Seen};
pub(crate) use nuncio_channel_meta::scripted::{SECRET, TOKEN, WORD};
use nuncio_domain::Channel;
use nuncio_domain::message::Message;
use serde_json::json;

/// Meta's id of the phone number.
pub(crate) const NUMBER: &str = "106540352242922";

/// Accounts of the Cloud API.
pub(crate) const CLOUD: Accounts = Accounts {
    factory: nuncio_channel_whatsapp::factory,
    channel: Channel::Whatsapp,
    to: "+34600111222",
    settings: |base| json!({"phone_number_id": NUMBER, "waba_id": "102290129340398", "app_id": "670843887433847", "base_url": base}),
    secrets: || json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD}),
};

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
