//! Files: to Meta as media or as examples, and from Meta.
//!
//! Sources: <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media>,
//! <https://developers.facebook.com/docs/graph-api/guides/upload>

use nuncio_channel::ResolvedAttachment;
use nuncio_channel_meta::{Body, Fault};
use nuncio_domain::Entropy;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::Method;
use nuncio_net::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::form_urlencoded;

use crate::cloud::Cloud;
use crate::map;

/// A name that stands in a quoted string of a multipart header (WHATWG HTML, multipart/form-data).
fn quoted(name: &str) -> String {
    name.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}

/// A MIME type as it may stand in a header.
fn mime(content_type: &str) -> &str {
    let clean = content_type.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
    if clean && content_type.contains('/') { content_type } else { "application/octet-stream" }
}

/// A form of one file, as `multipart/form-data` (RFC 7578).
fn form(file: &ResolvedAttachment, boundary: &str) -> Vec<u8> {
    let (name, content_type) = (quoted(&file.filename), mime(&file.content_type));
    let field = |name: &str, value: &str| format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
    let mut out = Vec::with_capacity(file.bytes.len() + 1_024);
    out.extend(field("messaging_product", "whatsapp").bytes());
    out.extend(field("type", content_type).bytes());
    let head = format!("Content-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: {content_type}");
    out.extend(format!("--{boundary}\r\n{head}\r\n\r\n").bytes());
    out.extend(&file.bytes);
    out.extend(format!("\r\n--{boundary}--\r\n").bytes());
    out
}

/// The text field `name` of an answer.
fn text(answer: &Value, name: &str) -> Result<String, Fault> {
    let text = answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or(Fault::Garbled { status: 200, retry_after: None })
}

impl Cloud {
    /// Uploads a file for a message, and answers its id. Nobody sees it.
    pub(crate) async fn upload_media(&self, file: &ResolvedAttachment, entropy: &dyn Entropy) -> Result<String, Fault> {
        let mut random = [0; 16];
        entropy.fill(&mut random);
        let boundary = format!("nuncio-{}", hex::encode(random));
        let body = Body::Bytes(format!("multipart/form-data; boundary={boundary}"), form(file, &boundary));
        let path = format!("{}/media", self.config.phone_number_id);
        text(&self.graph.call(Method::POST, &path, HeaderMap::new(), body).await?, "id")
    }

    /// Uploads a file for the app, such as a picture, and answers its handle.
    pub(crate) async fn upload_handle(&self, app: &str, name: &str, content_type: &str, bytes: Vec<u8>) -> Result<String, Fault> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("file_name", name)
            .append_pair("file_length", &bytes.len().to_string())
            .append_pair("file_type", content_type)
            .finish();
        let session = self.graph.call(Method::POST, &format!("{app}/uploads?{query}"), HeaderMap::new(), Body::Empty).await?;
        let session = text(&session, "id")?;
        let headers = HeaderMap::from_iter([(nuncio_net::header::HeaderName::from_static("file_offset"), HeaderValue::from_static("0"))]);
        let body = Body::Bytes(mime(content_type).to_owned(), bytes);
        text(&self.graph.call(Method::POST, &session, headers, body).await?, "h")
    }

    /// Fetches media of an inbound message; at most `most` bytes.
    pub(crate) async fn fetch_media(&self, id: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        let lost = |why: String| Failure::own(FailureCode::AttachmentUnavailable, why);
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err(lost("this is no id of WhatsApp media".to_owned()));
        }
        let path = format!("{id}?phone_number_id={}", self.config.phone_number_id);
        let about = self.graph.get(&path).await.map_err(|fault| map::failure(&fault))?;
        // A number in some versions of the API, a text in others.
        let size = about.get("file_size").and_then(|size| size.as_u64().or_else(|| size.as_str()?.parse().ok()));
        let too_large = || lost(format!("the file is larger than the {most} bytes that are taken"));
        if size.is_some_and(|size| size > most as u64) {
            return Err(too_large());
        }
        let url = text(&about, "url").map_err(|fault| map::failure(&fault))?;
        let answer = self.graph.download(&url, most as u64).await.map_err(|fault| map::failure(&fault))?;
        if answer.truncated {
            return Err(too_large());
        }
        let content_type = about.get("mime_type").and_then(Value::as_str).unwrap_or("application/octet-stream").to_owned();
        Ok(ResolvedAttachment { filename: id.to_owned(), content_type, content_id: None, bytes: answer.body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_leave_its_header() {
        let file = ResolvedAttachment {
            filename: "a\"\r\nX: y\r\n.png".into(),
            content_type: "image/png\r\nX: z".into(),
            content_id: None,
            bytes: b"\x00\r\n--x".to_vec(),
        };
        let wanted = b"--x1\r\nContent-Disposition: form-data; name=\"messaging_product\"\r\n\r\nwhatsapp\r\n\
            --x1\r\nContent-Disposition: form-data; name=\"type\"\r\n\r\napplication/octet-stream\r\n\
            --x1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a%22%0D%0AX: y%0D%0A.png\"\r\n\
            Content-Type: application/octet-stream\r\n\r\n\x00\r\n--x\r\n--x1--\r\n";
        assert_eq!(String::from_utf8_lossy(&form(&file, "x1")), String::from_utf8_lossy(wanted));
    }
}
