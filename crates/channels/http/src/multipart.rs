//! Writes `multipart/form-data` (RFC 7578).

use std::borrow::Cow;

use sha2::{Digest as _, Sha256};

/// A file in a form.
#[derive(Clone, Copy, Debug)]
pub struct FilePart<'a> {
    /// Name of the form field.
    pub field: &'a str,
    /// File name; characters that would end it or its header are replaced.
    pub filename: &'a str,
    /// MIME type; anything else becomes `application/octet-stream`.
    pub content_type: &'a str,
    /// The content.
    pub bytes: &'a [u8],
}

impl<'a> FilePart<'a> {
    /// The MIME type as a header can carry it.
    pub fn mime(&self) -> &'a str {
        let clean = self.content_type.contains('/') && self.content_type.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if clean { self.content_type } else { "application/octet-stream" }
    }
}

/// The `Content-Type` and the body of a form with these fields and one file. The same form always has the same bytes.
pub fn multipart(fields: &[(&str, Cow<'_, str>)], file: FilePart<'_>) -> (String, Vec<u8>) {
    let boundary = boundary(fields, file.bytes);
    let mut body = Vec::with_capacity(file.bytes.len() + 2_048);
    for (name, value) in fields {
        body.extend(format!("--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n").bytes());
    }
    let (field, filename, content_type) = (file.field, quotable(file.filename), file.mime());
    let head = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"{field}\"; filename=\"{filename}\"\r\nContent-Type: {content_type}\r\n\r\n"
    );
    body.extend(head.bytes());
    body.extend_from_slice(file.bytes);
    body.extend(format!("\r\n--{boundary}--\r\n").bytes());
    (format!("multipart/form-data; boundary={boundary}"), body)
}

/// A hash of all values: to forge a boundary, a value would have to contain its own hash.
fn boundary(fields: &[(&str, Cow<'_, str>)], bytes: &[u8]) -> String {
    let hash = fields.iter().fold(Sha256::new(), |hash, (_, value)| hash.chain_update(value.as_bytes()).chain_update([0]));
    format!("nuncio{}", hex::encode(&hash.chain_update(bytes).finalize()[..16]))
}

fn quotable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() || matches!(c, '"' | '\\' | '/') { '_' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_form() {
        let file = FilePart { field: "photo", filename: "a.png", content_type: "image/png", bytes: b"\r\n--x" };
        let (content_type, body) = multipart(&[("caption", "Hi".into()), ("chat_id", "5".into())], file);
        let boundary = content_type.strip_prefix("multipart/form-data; boundary=").unwrap();
        let wanted = [
            "--B\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\nHi\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"chat_id\"\r\n\r\n5\r\n",
            "--B\r\nContent-Disposition: form-data; name=\"photo\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\r\n--x\r\n",
            "--B--\r\n",
        ];
        assert_eq!(String::from_utf8(body).unwrap(), wanted.concat().replace("--B", &format!("--{boundary}")));
    }

    #[test]
    fn no_name_and_no_type_can_add_a_header() {
        let content_type = "image/png\r\nX-Evil: 1";
        let (_, body) = multipart(&[], FilePart { field: "f", filename: "a\"\r\nX-Evil: 1\r\n\r\nb/../c", content_type, bytes: b"" });
        let body = String::from_utf8(body).unwrap();
        assert!(!body.contains("\nX-Evil") && body.contains("Content-Type: application/octet-stream\r\n"), "{body}");
        assert!(body.contains("filename=\"a___X-Evil: 1____b_.._c\""), "{body}");
    }

    #[test]
    fn the_boundary_depends_on_every_value() {
        let form = |field: &'static str, bytes| {
            multipart(&[("a", field.into())], FilePart { field: "f", filename: "f", content_type: "a/b", bytes }).0
        };
        assert_ne!(form("1", b"x"), form("2", b"x"));
        assert_ne!(form("1", b"x"), form("1", b"y"));
    }
}
