//! Verifies that a callback comes from Meta. Pure.
//!
//! Source: <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>

use hmac::{Hmac, Mac as _};
use nuncio_channel::{CallError, CallbackReply, CallbackRequest, ParsedCallback};
use nuncio_channel_http::{Parameters, mac};
use sha2::Sha256;

use crate::Secrets;

const SIGNATURE: &str = "x-hub-signature-256";

/// Replies to Meta's verification of the callback URL, a GET: its challenge is returned if it knows the verify token. `None` for a POST
/// with a correct signature, which the channel then reads.
pub fn proved(secrets: &Secrets, call: &CallbackRequest<'_>) -> Result<Option<ParsedCallback>, CallError> {
    match call.method {
        "GET" => subscription(secrets, call.query).map(Some),
        "POST" => prove(secrets, call).map(|()| None),
        method => Err(CallError::malformed(format!("Meta calls with GET and POST, not with {method}"))),
    }
}

fn subscription(secrets: &Secrets, query: &str) -> Result<ParsedCallback, CallError> {
    let parameters = Parameters::parse(query.as_bytes());
    if !parameters.is_secret("hub.verify_token", &secrets.verify_token) {
        return Err(CallError::unproved("hub.verify_token is not the connection's verify_token"));
    }
    match (&*parameters.text("hub.mode"), parameters.get("hub.challenge")) {
        ("subscribe", Some(challenge)) => {
            let body = String::from_utf8_lossy(challenge).into_owned();
            Ok(ParsedCallback { events: Vec::new(), reply: CallbackReply { content_type: "text/plain", body } })
        }
        _ => Err(CallError::malformed("this is not a subscription: hub.mode or hub.challenge is missing")),
    }
}

/// The signature covers the bytes as received: Meta escapes what it signs in its own way.
fn prove(secrets: &Secrets, call: &CallbackRequest<'_>) -> Result<(), CallError> {
    let unproved = |why: &str| CallError::unproved(why);
    let header = call.header(SIGNATURE).ok_or_else(|| unproved("the header X-Hub-Signature-256 is missing"))?;
    let given = header.strip_prefix("sha256=").and_then(|digits| hex::decode(digits).ok());
    let given = given.ok_or_else(|| unproved("X-Hub-Signature-256 is not sha256= and hexadecimal digits"))?;
    mac::<Hmac<Sha256>>(secrets.app_secret.expose(), call.body)
        .verify_slice(&given)
        .map_err(|_| unproved("X-Hub-Signature-256 does not match the body; check that app_secret belongs to the calling app"))
}
