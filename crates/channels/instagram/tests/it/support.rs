//! What the tests share: accounts, messages, and a Graph API that follows a script.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::{Adapter, Outcome};
use nuncio_channel_meta::scripted::{Accounts, Api, Reply, SECRET, Seen, TOKEN, WORD};
use nuncio_domain::Channel;
use nuncio_domain::message::Message;
use serde_json::json;

/// Meta's id of the account.
pub(crate) const ACCOUNT: &str = "17841405309211844";
/// Ada's id, as the account sees her.
pub(crate) const ADA: &str = "1254459154682919";

pub(crate) const INSTAGRAM: Accounts = Accounts {
    factory: nuncio_channel_instagram::factory,
    channel: Channel::Instagram,
    to: ADA,
    settings: |base| json!({"account_id": ACCOUNT, "base_url": base}),
    secrets: || json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD}),
};

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
