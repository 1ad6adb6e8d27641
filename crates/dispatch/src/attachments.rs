//! The bytes of attachments, at the moment they are needed.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_channel::{ResolvedAttachment, Scope, Verdict};
use nuncio_domain::limits;
use nuncio_domain::message::{Attachment, AttachmentSource, Failure, FailureCode, Message};
use nuncio_net::{FetchError, FetchLimits};

use crate::Shared;

const TIMEOUT: Duration = Duration::from_secs(60);

impl Shared {
    /// Decodes and fetches. What cannot be had fails the attempt: for good, unless the other side may yet recover.
    pub(crate) async fn resolve_attachments(&self, message: &Message) -> Result<Vec<ResolvedAttachment>, Verdict> {
        let mut left = limits::ATTACHMENT_BYTES;
        let mut resolved = Vec::with_capacity(message.request.attachments.len());
        for attachment in &message.request.attachments {
            let bytes = self.resolve_attachment(attachment, left).await?;
            left = left.saturating_sub(bytes.len());
            resolved.push(ResolvedAttachment {
                filename: attachment.filename.clone(),
                content_type: attachment.content_type.clone(),
                content_id: attachment.content_id.clone(),
                bytes,
            });
        }
        Ok(resolved)
    }

    async fn resolve_attachment(&self, attachment: &Attachment, left: usize) -> Result<Vec<u8>, Verdict> {
        let url = match &attachment.source {
            AttachmentSource::Base64(text) => return STANDARD.decode(text).map_err(|e| unavailable(attachment, &e.to_string())),
            AttachmentSource::Url(url) => url,
            AttachmentSource::Provider(_) => return Err(unavailable(attachment, "it came from outside, and is kept by a provider")),
        };
        match self.net.fetch(url, FetchLimits { max_bytes: left as u64, timeout: TIMEOUT }).await {
            Ok(fetched) => Ok(fetched.bytes),
            Err(error) if error.is_transient() => {
                Err(Verdict::Deferred { retry_after: None, failure: failure(attachment, &error.to_string()), scope: Scope::Message })
            }
            Err(FetchError::TooLarge { .. }) => Err(unavailable(attachment, "all attachments together would exceed 40 MB")),
            Err(error) => Err(unavailable(attachment, &error.to_string())),
        }
    }
}

fn unavailable(attachment: &Attachment, why: &str) -> Verdict {
    Verdict::Rejected { failure: failure(attachment, why) }
}

fn failure(attachment: &Attachment, why: &str) -> Failure {
    Failure::own(FailureCode::AttachmentUnavailable, format!("attachment {:?}: {why}", attachment.filename))
}
