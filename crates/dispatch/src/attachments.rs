//! Loads the bytes of attachments when they are needed.

use std::sync::Arc;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use nuncio_channel::{Outcome, ResolvedAttachment, Scope};
use nuncio_domain::limits;
use nuncio_domain::message::{Attachment, AttachmentSource, Failure, FailureCode, Message};
use nuncio_net::{FetchError, FetchLimits, Opened};

use crate::{Shared, memory::Held};

/// Attempts after which a server that does not recover counts as one that has no attachment: after 20 to 30 minutes.
const TRIES: usize = 6;
const TIMEOUT: Duration = Duration::from_secs(60);

/// An attachment: loaded, or about to be read.
enum Found {
    Here(Vec<u8>),
    Opened(Opened),
}

impl Shared {
    /// Decodes and fetches attachments, once memory is reserved for what is fetched; the attempt then holds it. A missing attachment fails
    /// the attempt: permanently, unless the server may recover.
    pub(crate) async fn resolve_attachments(&self, message: &mut Message) -> Result<(Vec<ResolvedAttachment>, Option<Held>), Outcome> {
        let tries = message.state.detail.attempts.len();
        let mut found = Vec::with_capacity(message.request.attachments.len());
        for place in 0..message.request.attachments.len() {
            found.push(self.find_attachment(&message.request.attachments[place], tries).await?);
            // The base64 text is not needed after decoding. The response to the client may share it for a moment.
            if let Some(request) = Arc::get_mut(&mut message.request) {
                request.attachments[..=place].iter_mut().for_each(Attachment::drop_content);
            }
        }
        let here: usize = found.iter().map(|found| if let Found::Here(bytes) = found { bytes.len() } else { 0 }).sum();
        let mut left = limits::ATTACHMENT_BYTES.saturating_sub(here);
        // All at once: an attempt that holds some memory and waits for more could wait forever.
        let mut held = match announced(&found, left) {
            Some(bytes) => self.memory.for_fetched(message.tenant, bytes).await,
            None => None,
        };
        let (mut resolved, mut fetched) = (Vec::with_capacity(found.len()), 0);
        for (attachment, found) in message.request.attachments.iter().zip(found) {
            let bytes = match found {
                Found::Here(bytes) => bytes,
                Found::Opened(opened) => {
                    let read = opened.read(FetchLimits { max_bytes: left as u64, timeout: TIMEOUT }).await;
                    let bytes = read.map_err(|error| failed(attachment, &error, tries))?.bytes;
                    left = left.saturating_sub(bytes.len());
                    fetched += bytes.len();
                    bytes
                }
            };
            resolved.push(ResolvedAttachment {
                filename: attachment.filename.clone(),
                content_type: attachment.content_type.clone(),
                content_id: attachment.content_id.clone(),
                bytes,
            });
        }
        if let Some(held) = &mut held {
            held.shrink(fetched);
        }
        Ok((resolved, held))
    }

    async fn find_attachment(&self, attachment: &Attachment, tries: usize) -> Result<Found, Outcome> {
        match &attachment.source {
            AttachmentSource::Base64(text) => {
                STANDARD.decode(text.as_bytes()).map(Found::Here).map_err(|e| unavailable(attachment, &e.to_string()))
            }
            AttachmentSource::Url(url) => {
                let opened = self.net.open(url, TIMEOUT).await;
                opened.map(Found::Opened).map_err(|error| failed(attachment, &error, tries))
            }
            AttachmentSource::Provider(_) => Err(unavailable(attachment, "it is inbound and stored by a provider")),
        }
    }
}

/// Returns how many bytes are still to be read, at most `most`, also if a server does not report a length; `None` if none.
fn announced(found: &[Found], most: usize) -> Option<usize> {
    let lengths = found.iter().filter_map(|found| if let Found::Opened(opened) = found { Some(opened.length()) } else { None });
    let sum = lengths.reduce(|sum, length| Some(sum?.saturating_add(length?)))?;
    Some(sum.map_or(most, |sum| usize::try_from(sum).unwrap_or(most).min(most)))
}

fn failed(attachment: &Attachment, error: &FetchError, tries: usize) -> Outcome {
    match error {
        error if error.is_transient() && tries < TRIES => {
            Outcome::Deferred { retry_after: None, failure: failure(attachment, &error.to_string()), scope: Scope::Message }
        }
        FetchError::TooLarge { .. } => unavailable(attachment, "all attachments together would exceed 40 MB"),
        error => unavailable(attachment, &error.to_string()),
    }
}

fn unavailable(attachment: &Attachment, why: &str) -> Outcome {
    Outcome::Rejected { failure: failure(attachment, why) }
}

fn failure(attachment: &Attachment, why: &str) -> Failure {
    Failure::own(FailureCode::AttachmentUnavailable, format!("attachment {:?}: {why}", attachment.filename))
}
