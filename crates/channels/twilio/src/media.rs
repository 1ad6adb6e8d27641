//! Media: sent as MMS, and received with messages.
//!
//! Sources: <https://www.twilio.com/docs/messaging/guides/webhook-request>, <https://www.twilio.com/docs/messaging/api/media-resource>

use nuncio_channel::{Inbound, Media, ResolvedAttachment};
use nuncio_channel_http::{Parameters, SendError, attachment, fetch, unavailable};
use nuncio_domain::MessageType;
use nuncio_domain::message::{Failure, Message};
use nuncio_net::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use nuncio_net::{FetchLimits, Method, Url};

use crate::config::Config;

/// Most media read of a message; Twilio's limit is ten.
const MEDIA: usize = 16;

/// The URL of media to be sent as MMS.
pub(crate) fn to_send<'a>(config: &Config, message: &'a Message) -> Option<&'a str> {
    use MessageType::{Audio, Document, Image, Video};
    let goes = config.mms && matches!(message.message_type, Image | Video | Audio | Document);
    message.request.content.as_ref().filter(|_| goes)?.media_url.as_deref()
}

/// Adds the media of a callback to its message.
pub(crate) fn read(parameters: &Parameters<'_>, inbound: &mut Inbound) {
    let count = parameters.text("NumMedia").parse().unwrap_or(0).min(MEDIA);
    inbound.media.extend((0..count).filter_map(|number| media(parameters, number)));
    let Some(first) = inbound.media.first() else { return };
    inbound.message_type = match first.content_type.split('/').next() {
        Some("image") => MessageType::Image,
        Some("video") => MessageType::Video,
        Some("audio") => MessageType::Audio,
        _ => MessageType::Document,
    };
}

fn media(parameters: &Parameters<'_>, number: usize) -> Option<Media> {
    let reference = parameters.some(&format!("MediaUrl{number}"))?;
    let content_type = parameters.text(&format!("MediaContentType{number}")).into_owned();
    Some(Media { reference, filename: None, content_type, content_id: None, bytes: None })
}

/// Fetches the media at a URL from a callback; at most `most` bytes. Only the API gets the token and the unguarded client, whatever URL a
/// message names.
pub(crate) async fn get(config: &Config, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
    let endpoint = &config.endpoint;
    let is_api = reference.strip_prefix(&config.base_url).is_some_and(|rest| rest.starts_with('/'));
    let (client, headers) = if is_api { (&endpoint.client, config.login()) } else { (&endpoint.guarded, HeaderMap::new()) };
    let limits = FetchLimits { max_bytes: most as u64, timeout: endpoint.timeout };
    let response = client.request(Method::GET, reference, headers, Vec::new(), limits).await;
    let response = response.map_err(|error| unavailable(SendError::from(error)))?;
    let header = |name| response.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    if response.status.is_redirection() {
        // The file is stored elsewhere, and needs no credentials there.
        let target = header(LOCATION).and_then(|target| Url::parse(reference).ok()?.join(target).ok());
        let target = target.ok_or_else(|| unavailable("the provider does not say where the file is"))?;
        let file = fetch(&endpoint.guarded, target.as_str(), most, endpoint.timeout).await?;
        return Ok(attachment(reference, Some(file.content_type), file.bytes));
    }
    if !response.status.is_success() {
        return Err(unavailable(format!("the provider returned status {} instead of the file", response.status.as_u16())));
    }
    if response.truncated {
        return Err(unavailable(format!("the file is larger than {most} bytes")));
    }
    Ok(attachment(reference, header(CONTENT_TYPE).map(str::to_owned), response.body))
}
