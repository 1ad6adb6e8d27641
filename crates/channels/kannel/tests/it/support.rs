//! What the tests share: accounts, messages and the gateway's requests.

use std::sync::Arc;

use nuncio_channel::scripted::{Scripted, Seen};
use nuncio_channel::testing::{self, services};
use nuncio_channel::{Account, Adapter, AdapterFactory as _, CallError, CallbackRequest, ParsedCallback, Services};
use nuncio_channel_http::HttpFactory;
use nuncio_channel_http::testing::{NOWHERE, network};
use nuncio_domain::message::Message;
use nuncio_domain::{Channel, FieldError, MessageType, Timestamp};
use serde_json::{Value, json};
use url::form_urlencoded;

/// The gateway's password. Occurs nowhere else.
pub(crate) const PASSWORD: &str = "foo&bar of sendsms-user";
/// The secret of callbacks.
pub(crate) const SECRET: &str = "a-word-of-our-own+16";
/// When callbacks arrive.
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_795_304_700_000);

pub(crate) fn services_at(public_url: &str) -> Services {
    Services { public_url: public_url.into(), ..services() }
}

pub(crate) fn factory() -> HttpFactory {
    nuncio_channel_kannel::factory(network())
}

/// An account of a gateway at `base`, with more settings.
pub(crate) fn account(base: &str, more: Value) -> Account {
    let settings = json!({"url": format!("{base}/cgi-bin/sendsms"), "username": "tester"});
    testing::account(Channel::Sms, settings, more, json!({"password": PASSWORD, "callback_secret": SECRET}))
}

pub(crate) fn try_open(account: &Account) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
    factory().open(account, &services())
}

pub(crate) fn open(gateway: &Scripted, more: Value) -> Arc<dyn Adapter> {
    try_open(&account(&gateway.base(), more)).unwrap()
}

/// An adapter that makes no requests.
pub(crate) fn offline() -> Arc<dyn Adapter> {
    try_open(&account(NOWHERE, json!({}))).unwrap()
}

/// A text.
pub(crate) fn draft(text: &str) -> Message {
    testing::message(&account(NOWHERE, json!({})), "+34600111222", MessageType::Text, Some(text), json!({}))
}

/// A variable of the query of a call.
pub(crate) fn variable(query: &str, name: &str) -> Option<String> {
    form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned())
}

/// The query of a call, or of an address.
pub(crate) fn query(path: &str) -> &str {
    path.split_once('?').map_or("", |(_, query)| query)
}

/// What the gateway would look for duplicates by: the address for receipts.
pub(crate) fn identity(seen: &Seen) -> Option<String> {
    seen.header("x-kannel-dlr-url").map(str::to_owned).or_else(|| variable(query(&seen.path), "dlr-url"))
}

/// The address for receipts of the first attempt of a message, as the gateway was given it.
pub(crate) async fn dlr_url(message: &Message) -> String {
    let gateway = Scripted::start(|_| nuncio_channel::scripted::Reply::text(202, "0: Accepted for delivery")).await;
    let adapter = open(&gateway, json!({}));
    let _ = adapter.send(&nuncio_channel::contract::request(message)).await;
    identity(&gateway.seen()[0]).unwrap()
}

/// Calls back, as the gateway would with GET.
pub(crate) fn get(adapter: &Arc<dyn Adapter>, rest: &str, query: &str) -> Result<ParsedCallback, CallError> {
    let headers = http::HeaderMap::new();
    adapter.callback(&CallbackRequest {
        method: "GET",
        url: "https://nuncio.example/",
        rest,
        query,
        headers: &headers,
        body: b"",
        now: NOW,
    })
}
