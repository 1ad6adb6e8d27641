//! What the tests share: accounts, and the API's responses.

use nuncio_channel::scripted::Reply;
use nuncio_channel_http::testing::Accounts;
use nuncio_domain::Channel;
use serde_json::json;

/// The account, as the peer program has it.
pub(crate) const SID: &str = "AC00000000000000000000000000000001";
/// Its token. Occurs nowhere else.
pub(crate) const TOKEN: &str = "0123456789abcdef-auth-token";

pub(crate) const TWILIO: Accounts = Accounts {
    factory: nuncio_channel_twilio::factory,
    channel: Channel::Sms,
    to: "+34600111333",
    settings: |base| json!({"account_sid": SID, "base_url": base}),
    secrets: || json!({"auth_token": TOKEN}),
};

/// The response to a message or call that is accepted.
pub(crate) fn taken() -> Reply {
    Reply::json(201, &json!({"sid": "SM00000000000000000000000000000001", "status": "queued", "price": null, "num_segments": "1"}))
}

/// An error response.
pub(crate) fn refusal(status: u16, code: u32, words: &str) -> Reply {
    let more_info = format!("https://www.twilio.com/docs/errors/{code}");
    Reply::json(status, &json!({"code": code, "message": words, "more_info": more_info, "status": status}))
}
