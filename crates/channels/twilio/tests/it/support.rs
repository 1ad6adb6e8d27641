//! What the tests share: accounts, messages and the API's responses.

use std::sync::Arc;

use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::testing::{self, services};
use nuncio_channel::{Account, Adapter, AdapterFactory as _};
use nuncio_channel_http::HttpFactory;
use nuncio_channel_http::testing::{NOWHERE, network};
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, FieldError, MessageType, Timestamp};
use serde_json::{Value, json};
use url::form_urlencoded;

/// The account, as the peer program has it.
pub(crate) const SID: &str = "AC00000000000000000000000000000001";
/// Its token. Occurs nowhere else.
pub(crate) const TOKEN: &str = "0123456789abcdef-auth-token";
/// When callbacks arrive.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_304_700_000);

pub(crate) fn factory() -> HttpFactory {
    nuncio_channel_twilio::factory(network())
}

/// An account for an API at `base`, with more settings.
pub(crate) fn account(channel: Channel, base: &str, more: Value) -> Account {
    testing::account(channel, json!({"account_sid": SID, "base_url": base}), more, json!({"auth_token": TOKEN}))
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

pub(crate) fn open(channel: Channel, api: &Scripted, more: Value) -> Arc<dyn Adapter> {
    try_open(&account(channel, &api.base(), more)).unwrap()
}

/// An adapter that makes no requests.
pub(crate) fn offline(channel: Channel) -> Arc<dyn Adapter> {
    try_open(&account(channel, NOWHERE, json!({}))).unwrap()
}

pub(crate) fn message(channel: Channel, message_type: MessageType, text: Option<&str>, content: Value) -> Message {
    testing::message(&account(channel, NOWHERE, json!({})), "+34600111333", message_type, text, content)
}

/// The fields of a form, sorted.
pub(crate) fn form(seen: &Seen) -> Vec<(String, String)> {
    let mut form: Vec<_> = form_urlencoded::parse(&seen.body).into_owned().collect();
    form.sort();
    form
}

pub(crate) fn said(seen: &Seen, name: &str) -> Option<String> {
    form(seen).into_iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// The response to a message or call that is accepted.
pub(crate) fn taken() -> Reply {
    Reply::json(201, &json!({"sid": "SM00000000000000000000000000000001", "status": "queued", "price": null, "num_segments": "1"}))
}

/// An error response.
pub(crate) fn refusal(status: u16, code: u32, words: &str) -> Reply {
    let more_info = format!("https://www.twilio.com/docs/errors/{code}");
    Reply::json(status, &json!({"code": code, "message": words, "more_info": more_info, "status": status}))
}
