//! Builds requests to the gateway. Pure.
//!
//! Source: Kannel 1.4.5 User's Guide, tables "SMS Push CGI Variables" and "X-Kannel Headers".

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use nuncio_channel::SendRequest;
use nuncio_channel_http::{Request, mac};
use nuncio_domain::MessageId;
use nuncio_domain::sms::{self, Encoding};
use nuncio_net::Method;
use nuncio_net::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use sha2::Sha256;
use url::form_urlencoded::Serializer;

use crate::config::Config;

/// A request with credentials only.
pub(crate) fn login(config: &Config) -> Request {
    request(config, &credentials(config), "")
}

/// An attempt to send a message with this text.
pub(crate) fn message(config: &Config, send: &SendRequest<'_>, text: &str) -> Request {
    let message = send.message;
    let mut variables = credentials(config);
    let number = |number: &str| match number.strip_prefix('+') {
        Some(digits) if !config.plus => digits.to_owned(),
        _ => number.to_owned(),
    };
    let from = config.from.as_ref().unwrap_or(&message.from);
    if !from.is_empty() {
        variables.push(("from", number(from)));
    }
    variables.push(("to", number(&message.to)));
    let ucs2 = sms::measure(text).encoding == Encoding::Ucs2;
    variables.push(("coding", if ucs2 { "2" } else { "0" }.to_owned()));
    variables.push(("validity", minutes(message.state.expires_at.since(send.now)).to_string()));
    let fixed = [("smsc", &config.smsc), ("account", &config.account)];
    variables.extend(fixed.into_iter().filter_map(|(name, value)| Some((name, value.clone()?))));
    if config.dlr_mask > 0 {
        variables.push(("dlr-mask", config.dlr_mask.to_string()));
        variables.push(("dlr-url", dlr_url(config, message.id, send.attempt)));
    }
    request(config, &variables, text)
}

fn credentials(config: &Config) -> Vec<(&'static str, String)> {
    vec![("username", config.username.clone()), ("password", config.password.expose().clone())]
}

/// How long the gateway may try, in whole minutes; at least 1.
fn minutes(left: Duration) -> u64 {
    (left.as_secs() / 60).max(1)
}

/// The URL for receipts of an attempt. The gateway fills in the escapes that begin with `%`.
fn dlr_url(config: &Config, message: MessageId, attempt: usize) -> String {
    let proof = hex::encode(proof(config, message, attempt).finalize().into_bytes());
    format!("{}&k={proof}&type=%d&answer=%A&time=%T", config.endpoint.attempt_url("dlr", message, attempt))
}

/// Proves that a receipt URL was made by this server for this attempt.
pub(crate) fn proof(config: &Config, message: MessageId, attempt: usize) -> Hmac<Sha256> {
    let proved = format!("dlr {} {message} {attempt}", config.endpoint.origin.connection);
    mac(config.callback_secret.expose(), proved.as_bytes())
}

fn request(config: &Config, variables: &[(&'static str, String)], text: &str) -> Request {
    if config.post {
        return Request { method: Method::POST, url: config.url.clone(), headers: headers(variables), body: text.into() };
    }
    let mut query = Serializer::new(String::new());
    query.extend_pairs(variables);
    if !text.is_empty() {
        query.append_pair("charset", "UTF-8").append_pair("text", text);
    }
    Request::get(format!("{}?{}", config.url, query.finish()), HeaderMap::new())
}

/// In a POST, each variable is a header.
fn headers(variables: &[(&'static str, String)]) -> HeaderMap {
    let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=UTF-8"))]);
    for (variable, value) in variables {
        let name = HeaderName::try_from(format!("x-kannel-{variable}"));
        if let (Ok(name), Ok(mut value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            value.set_sensitive(matches!(*variable, "password" | "dlr-url"));
            headers.insert(name, value);
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn validity_is_in_minutes() {
        for (seconds, wanted) in [(0, 1), (59, 1), (119, 1), (120, 2), (86_400, 1_440)] {
            assert_eq!(minutes(Duration::from_secs(seconds)), wanted);
        }
    }
}
