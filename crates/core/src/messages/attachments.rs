//! `GET /v1/messages/{id}/attachments`, and download links.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use nuncio_domain::message::{Attachment, AttachmentSource, Message};
use nuncio_domain::{AttachmentId, ConnectionId, Error, MessageId, Redacted, Result, TenantId, Timestamp, id::Id as _, limits};
use nuncio_secrets::mac;
use serde::Serialize;
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Messages;
use crate::base::{Caller, UseCase, parse_id};

/// A file of a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageAttachment)]
pub struct AttachmentView {
    /// Its identifier.
    pub id: AttachmentId,
    /// File name.
    pub filename: String,
    /// MIME type.
    pub mime_type: String,
    /// Size in bytes; null for a file that was given by URL, or that the provider stores.
    #[schema(required)]
    pub size: Option<u64>,
    /// `Content-ID` that the HTML body refers to.
    #[schema(required)]
    pub content_id: Option<String>,
    /// Whether it is shown within the message.
    pub is_inline: bool,
    /// Download URL, valid for 15 minutes without an API key; null for a file that was given by URL and is not stored.
    #[schema(required)]
    pub download_url: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
}

/// A file to download.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Download {
    pub filename: String,
    /// MIME type as given by the message's author; not trustworthy.
    pub content_type: String,
    pub bytes: Vec<u8>,
}

/// The target of a download link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Target {
    tenant: TenantId,
    message: MessageId,
    attachment: AttachmentId,
    /// Bytes of all attachments of the message, which are read together.
    weight: u64,
}

/// Makes and verifies the tokens of download links.
#[derive(Clone, Debug)]
struct Links {
    key: Redacted<[u8; 32]>,
}

const TAG: usize = 16;
const PLAIN: usize = 8 + 16 + 16 + 8 + 8;

impl Links {
    const fn new(key: Redacted<[u8; 32]>) -> Self {
        Self { key }
    }

    fn make(&self, target: Target, until: Timestamp) -> String {
        let mut plain = Vec::with_capacity(PLAIN + TAG);
        plain.extend(target.tenant.0.to_be_bytes());
        plain.extend(target.message.uuid().as_bytes());
        plain.extend(target.attachment.uuid().as_bytes());
        plain.extend(target.weight.to_be_bytes());
        plain.extend(until.millis().to_be_bytes());
        let tag = self.tag(&plain);
        plain.extend(tag);
        URL_SAFE_NO_PAD.encode(plain)
    }

    fn read(&self, token: &str, now: Timestamp) -> Option<Target> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok()?;
        let (plain, tag) = bytes.split_at_checked(PLAIN)?;
        if !bool::from(self.tag(plain).ct_eq(tag)) {
            return None;
        }
        let number = |at: usize| plain.get(at..at + 8).and_then(|b| b.try_into().ok()).map(i64::from_be_bytes);
        let id = |at: usize| plain.get(at..at + 16).and_then(|b| Uuid::from_slice(b).ok());
        let target = Target {
            tenant: TenantId(number(0)?),
            message: MessageId::from_uuid(id(8)?),
            attachment: AttachmentId::from_uuid(id(24)?),
            weight: number(40)? as u64,
        };
        (now < Timestamp::from_millis(number(48)?)).then_some(target)
    }

    fn tag(&self, plain: &[u8]) -> [u8; TAG] {
        let full = mac(self.key.expose(), &[plain]);
        let mut tag = [0; TAG];
        tag.copy_from_slice(&full[..TAG]);
        tag
    }
}

impl Messages<'_> {
    /// Returns the attachments of a message, each with a temporary download link.
    pub async fn list_attachments(&self, caller: &Caller, id: &str) -> Result<Vec<AttachmentView>> {
        caller.require(UseCase::ListMessageAttachments)?;
        let id = parse_id(id, "message")?;
        let mut tx = self.inner.store.read().await?;
        let message = tx.lookup_messages(caller.tenant, &[id]).await?.pop().ok_or_else(|| Error::not_found("message"))?;
        let until = self.ids().clock.now().plus(limits::DOWNLOAD_LINK);
        Ok(message.request.attachments.iter().map(|attachment| self.attachment(&message, attachment, until)).collect())
    }

    fn attachment(&self, message: &Message, attachment: &Attachment, until: Timestamp) -> AttachmentView {
        // Fetched bytes are in memory once; bytes stored as base64 take four times their size.
        let fetched = if matches!(attachment.source, AttachmentSource::Provider(_)) { limits::ATTACHMENT_BYTES as u64 / 4 } else { 0 };
        let weight = message.request.attachment_bytes() + fetched;
        let target = Target { tenant: message.tenant, message: message.id, attachment: attachment.id, weight };
        let kept = !matches!(attachment.source, AttachmentSource::Url(_));
        AttachmentView {
            id: attachment.id,
            filename: attachment.filename.clone(),
            mime_type: attachment.content_type.clone(),
            size: attachment.size,
            content_id: attachment.content_id.clone(),
            is_inline: attachment.content_id.is_some(),
            download_url: kept.then(|| format!("{}/attachments/{}", self.inner.public_url, self.links().make(target, until))),
            created_at: attachment.id.created_at(),
        }
    }

    /// Returns how many bytes a download must read; a 404 for an invalid link.
    pub fn attachment_weight(&self, token: &str) -> Result<u64> {
        Ok(self.open_link(token)?.weight)
    }

    /// Returns the file of a download link. Needs no caller: the link is the permission.
    pub async fn download_attachment(&self, token: &str) -> Result<Download> {
        let target = self.open_link(token)?;
        let mut tx = self.inner.store.read().await?;
        let message = tx.lookup_message(target.tenant, target.message).await?.ok_or_else(|| Error::not_found("attachment"))?;
        drop(tx);
        let attachments = Arc::unwrap_or_clone(message.request).attachments;
        let found = attachments.into_iter().find(|a| a.id == target.attachment).ok_or_else(|| Error::not_found("attachment"))?;
        let bytes = match &found.source {
            AttachmentSource::Base64(text) => STANDARD.decode(text.as_bytes()).map_err(Error::internal)?,
            AttachmentSource::Provider(reference) => self.fetch_media(target.tenant, message.state.route.connection, reference).await?,
            AttachmentSource::Url(_) => return Err(Error::not_found("attachment")),
        };
        Ok(Download { filename: found.filename, content_type: found.content_type, bytes })
    }

    /// Fetches media of an inbound message from the provider that stores it.
    async fn fetch_media(&self, tenant: TenantId, connection: ConnectionId, reference: &str) -> Result<Vec<u8>> {
        let config = self.tenant_config(tenant).await?;
        let gone = || Error::not_found("attachment");
        let connection = config.connections.iter().find(|c| c.id == connection).ok_or_else(gone)?;
        let adapter = self.inner.dispatch.adapter(tenant, connection).map_err(|why| Error::unavailable(&why))?;
        let fetched = adapter.fetch_media(reference, limits::ATTACHMENT_BYTES).await;
        Ok(fetched.map_err(|failure| Error::unavailable(&failure.message))?.bytes)
    }

    fn links(&self) -> Links {
        Links::new(self.inner.sealer.derive(b"attachments"))
    }

    fn open_link(&self, token: &str) -> Result<Target> {
        self.links().read(token, self.ids().clock.now()).ok_or_else(|| Error::not_found("attachment"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_opens_one_file_for_a_while() {
        let links = Links::new(Redacted::new([7; 32]));
        let target = Target {
            tenant: TenantId(5),
            message: MessageId::from_uuid(Uuid::from_u128(1)),
            attachment: AttachmentId::from_uuid(Uuid::from_u128(2)),
            weight: 9,
        };
        let token = links.make(target, Timestamp::from_millis(100));
        assert_eq!(links.read(&token, Timestamp::from_millis(99)), Some(target));
        assert_eq!(links.read(&token, Timestamp::from_millis(100)), None, "its time is over");
        for at in 0..token.len() {
            let mut changed = token.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            assert_eq!(links.read(&String::from_utf8(changed).unwrap_or_default(), Timestamp::from_millis(99)), None, "{at}");
        }
        assert_eq!(Links::new(Redacted::new([8; 32])).read(&token, Timestamp::from_millis(99)), None);
    }
}
