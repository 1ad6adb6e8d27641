//! Uploads files to Meta and downloads media from it.
//!
//! Sources: <https://developers.facebook.com/docs/whatsapp/cloud-api/reference/media>,
//! <https://developers.facebook.com/docs/graph-api/guides/upload>

use nuncio_channel::ResolvedAttachment;
use nuncio_channel_http::{FilePart, multipart, unavailable};
use nuncio_channel_meta::{Body, RequestError};
use nuncio_domain::message::Failure;
use nuncio_net::Method;
use nuncio_net::header::{HeaderMap, HeaderValue};
use serde_json::Value;
use url::form_urlencoded;

use crate::config::Cloud;
use crate::map::{self, NO_ID};

/// The text field `name` of a response.
fn text(answer: &Value, name: &str) -> Result<String, RequestError> {
    let text = answer.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.map(str::to_owned).ok_or(NO_ID)
}

impl Cloud {
    /// Uploads a file for a message and returns its id. The recipient does not see it yet.
    pub(crate) async fn upload_media(&self, file: &ResolvedAttachment) -> Result<String, RequestError> {
        let ResolvedAttachment { filename, content_type, bytes, .. } = file;
        let file = FilePart { field: "file", filename, content_type, bytes };
        let (content_type, form) = multipart(&[("messaging_product", "whatsapp".into()), ("type", file.mime().into())], file);
        let path = format!("{}/media", self.phone_number_id);
        text(&self.graph.call(Method::POST, &path, HeaderMap::new(), Body::Bytes(content_type, form)).await?, "id")
    }

    /// Uploads a file for the app, such as a picture, and returns its handle.
    pub(crate) async fn upload_handle(&self, app: &str, name: &str, content_type: &str, bytes: Vec<u8>) -> Result<String, RequestError> {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("file_name", name)
            .append_pair("file_length", &bytes.len().to_string())
            .append_pair("file_type", content_type)
            .finish();
        let content_type = FilePart { field: "", filename: name, content_type, bytes: &bytes }.mime().to_owned();
        let session = self.graph.call(Method::POST, &format!("{app}/uploads?{query}"), HeaderMap::new(), Body::Empty).await?;
        let session = text(&session, "id")?;
        let headers = HeaderMap::from_iter([(nuncio_net::header::HeaderName::from_static("file_offset"), HeaderValue::from_static("0"))]);
        let body = Body::Bytes(content_type, bytes);
        text(&self.graph.call(Method::POST, &session, headers, body).await?, "h")
    }

    /// Fetches media of an inbound message; at most `most` bytes.
    pub(crate) async fn fetch_media(&self, id: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        if id.is_empty() || !id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-') {
            return Err(unavailable("it is not an id of WhatsApp media"));
        }
        let path = format!("{id}?phone_number_id={}", self.phone_number_id);
        let about = self.graph.get(&path).await.map_err(|error| map::failure(&error))?;
        // A number in some versions of the API, a text in others.
        let size = about.get("file_size").and_then(|size| size.as_u64().or_else(|| size.as_str()?.parse().ok()));
        let too_large = || unavailable(format!("the file is larger than {most} bytes"));
        if size.is_some_and(|size| size > most as u64) {
            return Err(too_large());
        }
        let url = text(&about, "url").map_err(|error| map::failure(&error))?;
        let answer = self.graph.download(&url, most as u64).await.map_err(|error| map::failure(&error))?;
        if answer.truncated {
            return Err(too_large());
        }
        let content_type = about.get("mime_type").and_then(Value::as_str).unwrap_or("application/octet-stream").to_owned();
        Ok(ResolvedAttachment { filename: id.to_owned(), content_type, content_id: None, bytes: answer.body })
    }
}
