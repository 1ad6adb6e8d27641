//! A scripted Graph API for the tests of the channels. Panics where a test would.

use std::sync::Arc;

use hmac::{Hmac, Mac as _};
pub use nuncio_channel::testing::{object, services};
use nuncio_channel::{Adapter, CallError, ParsedCallback};
use nuncio_channel_http::testing;
pub use nuncio_channel_http::testing::{Accounts, Case, NOW, NOWHERE, Provider as Api, RETRY_AFTER, Reply, Seen, network};
use serde_json::json;
use sha2::Sha256;

/// An error of the API.
pub fn refusal(status: u16, code: i64, message: &str) -> Reply {
    let error = json!({"message": message, "type": "OAuthException", "code": code, "fbtrace_id": "Az8or2yhqkZfEZ-_4Qn_Bam"});
    Reply::json(status, &json!({"error": error}))
}

/// An access token. Occurs nowhere else.
pub const TOKEN: &str = "EAAGm0PX4ZCpsBO-access-token";
/// An app's secret.
pub const SECRET: &str = "f00dfeedbeefcafe-app-secret";
/// A verify token.
pub const WORD: &str = "a-word-for-meta";

/// `X-Hub-Signature-256` of a body, by [`SECRET`].
pub fn sign(body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(SECRET.as_bytes()).expect("any length");
    mac.update(body);
    format!("sha256={}", hex::encode(mac.finalize().into_bytes()))
}

/// Calls back as Meta does, with this `X-Hub-Signature-256`.
pub fn call(
    adapter: &Arc<dyn Adapter>,
    method: &str,
    query: &str,
    signature: Option<&str>,
    body: &[u8],
) -> Result<ParsedCallback, CallError> {
    let headers: Vec<_> = signature.map(|text| ("x-hub-signature-256", text)).into_iter().collect();
    testing::call(adapter, method, &format!("{}?{query}", testing::CALLBACK), &headers, body)
}
