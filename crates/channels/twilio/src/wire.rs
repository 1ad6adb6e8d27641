//! Builds the request that sends an SMS. Pure.
//!
//! Source: <https://www.twilio.com/docs/messaging/api/message-resource#create-a-message-resource>

use nuncio_channel::{SendRequest, sms};
use nuncio_domain::message::Failure;
use url::form_urlencoded::Serializer;

use crate::config::Config;
use crate::media;

/// The provider's longest validity period, which is also its default, in seconds.
const VALIDITY: u64 = 36_000;

/// The form that sends a message.
pub(crate) fn form(config: &Config, request: &SendRequest<'_>) -> Result<String, Failure> {
    let message = request.message;
    let mut form = Serializer::new(String::new());
    form.append_pair("To", &message.to);
    form.append_pair("StatusCallback", &config.endpoint.attempt_url("status", message.id, request.attempt));
    match (&config.from, &config.messaging_service_sid) {
        // The service chooses the number, unless `From` names one of its numbers.
        (from, Some(service)) => {
            form.append_pair("MessagingServiceSid", service);
            form.extend_pairs(from.iter().map(|from| ("From", from)));
        }
        (from, None) => {
            form.append_pair("From", from.as_ref().unwrap_or(&message.from));
        }
    }
    match media::to_send(config, message) {
        Some(url) => {
            form.append_pair("MediaUrl", url);
            form.extend_pairs(message.request.text.iter().map(|caption| ("Body", caption)));
        }
        None => {
            form.append_pair("Body", &sms::text(request)?);
        }
    }
    let left = message.state.expires_at.since(request.now).as_secs();
    if left < VALIDITY {
        form.append_pair("ValidityPeriod", &left.max(1).to_string());
    }
    Ok(form.finish())
}
