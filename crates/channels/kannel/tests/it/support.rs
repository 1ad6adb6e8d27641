//! What the tests share: accounts of a gateway, and what its requests name.

use nuncio_channel::scripted::Seen;
use nuncio_channel_http::testing::Accounts;
use nuncio_domain::Channel;
use serde_json::json;

/// The gateway's password. Occurs nowhere else.
pub(crate) const PASSWORD: &str = "foo&bar of sendsms-user";
/// The secret of callbacks.
pub(crate) const SECRET: &str = "a-word-of-our-own+16";

pub(crate) const GATEWAY: Accounts = Accounts {
    factory: nuncio_channel_kannel::factory,
    channel: Channel::Sms,
    to: "+34600111222",
    settings: |base| json!({"url": format!("{base}/cgi-bin/sendsms"), "username": "tester"}),
    secrets: || json!({"password": PASSWORD, "callback_secret": SECRET}),
};

/// What the gateway would look for duplicates by: the URL for receipts.
pub(crate) fn identity(seen: &Seen) -> Option<String> {
    seen.header("x-kannel-dlr-url").map(str::to_owned).or_else(|| seen.parameter("dlr-url"))
}
