//! `GET /v1/messages/{id}/attachments`, and its download links.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse as _, Response};
use nuncio_core::Core;
use nuncio_core::messages::AttachmentView;
use nuncio_domain::MessageId;
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::{Lease, no_room};
use crate::extract::{Call, Path};
use crate::reply::{Reply, Result};

/// All attachments of a message.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AttachmentList {
    items: Vec<AttachmentView>,
}

/// List the attachments of a message
///
/// `downloadUrl` works without an API key for 15 minutes. Attachments given by URL are not stored.
#[utoipa::path(
    get, path = "/v1/messages/{id}/attachments", tag = "Messages",
    params(("id" = MessageId, Path, description = "The message.")),
    responses((status = 200, description = "The attachments, in their order.", body = AttachmentList)),
)]
pub(crate) async fn list_message_attachments(Call(core, caller): Call, Path(id): Path<String>) -> Result<Reply<AttachmentList>> {
    Ok(Reply::ok(AttachmentList { items: core.messages().list_attachments(&caller, &id).await? }))
}

/// `GET /attachments/{token}`. The content is untrusted: it is never displayed inline.
pub(crate) async fn download(State(core): State<Core>, Path(token): Path<String>, lease: Lease) -> Result<Response> {
    if !lease.grow_to_read(core.messages().attachment_weight(&token)?) {
        return Err(no_room().into());
    }
    let download = core.messages().download_attachment(&token).await?;
    let content_type = HeaderValue::from_str(&download.content_type);
    let disposition = HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{}", percent_encoded(&download.filename)));
    let headers: [(HeaderName, HeaderValue); 4] = [
        (CONTENT_TYPE, content_type.unwrap_or(HeaderValue::from_static("application/octet-stream"))),
        (CONTENT_DISPOSITION, disposition.unwrap_or(HeaderValue::from_static("attachment"))),
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox")),
        (CACHE_CONTROL, HeaderValue::from_static("private, no-store")),
    ];
    Ok((headers, Body::from(download.bytes)).into_response())
}

/// Percent-encodes by RFC 8187.
fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}
