//! Verifies that a callback comes from Meta. Pure.
//!
//! Source: <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>

use hmac::{Hmac, Mac as _};
use nuncio_channel::{CallError, CallbackReply, CallbackRequest, ParsedCallback};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;
use url::form_urlencoded;

use crate::Secrets;

const SIGNATURE: &str = "x-hub-signature-256";

/// Replies to Meta's verification of the callback URL, a GET: its challenge is returned if it knows the verify token. `None` for a POST
/// with a correct signature, which the channel then reads.
pub fn proved(secrets: &Secrets, call: &CallbackRequest<'_>) -> Result<Option<ParsedCallback>, CallError> {
    match call.method {
        "GET" => subscription(secrets, call.query).map(Some),
        "POST" => prove(secrets, call).map(|()| None),
        method => Err(CallError::Malformed(format!("Meta calls with GET and POST, not with {method}"))),
    }
}

fn subscription(secrets: &Secrets, query: &str) -> Result<ParsedCallback, CallError> {
    let parameter = |name: &str| form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value.into_owned());
    let word = parameter("hub.verify_token").unwrap_or_default();
    if !bool::from(word.as_bytes().ct_eq(secrets.verify_token.expose().as_bytes())) {
        return Err(CallError::Unproved("hub.verify_token is not the connection's verify_token".to_owned()));
    }
    match (parameter("hub.mode").as_deref(), parameter("hub.challenge")) {
        (Some("subscribe"), Some(body)) => {
            Ok(ParsedCallback { events: Vec::new(), reply: CallbackReply { content_type: "text/plain", body } })
        }
        _ => Err(CallError::Malformed("this is not a subscription: hub.mode or hub.challenge is missing".to_owned())),
    }
}

/// The signature covers the bytes as received: Meta escapes what it signs in its own way.
fn prove(secrets: &Secrets, call: &CallbackRequest<'_>) -> Result<(), CallError> {
    let unproved = |what: &str| CallError::Unproved(what.to_owned());
    let header = call.headers.get(SIGNATURE).and_then(|value| value.to_str().ok());
    let header = header.ok_or_else(|| unproved("the header X-Hub-Signature-256 is missing"))?;
    let given = header.strip_prefix("sha256=").and_then(|digits| hex::decode(digits).ok());
    let given = given.ok_or_else(|| unproved("X-Hub-Signature-256 is not sha256= and hexadecimal digits"))?;
    let mut mac = Hmac::<Sha256>::new_from_slice(secrets.app_secret.expose().as_bytes()).map_err(|_| unproved("there is no app_secret"))?;
    mac.update(call.body);
    // Compares in constant time.
    mac.verify_slice(&given)
        .map_err(|_| unproved("X-Hub-Signature-256 does not match the body; check that app_secret belongs to the calling app"))
}
