//! Links to media, which Meta fetches. Pure.

use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use url::Url;

/// A file in a header. WhatsApp shows documents without a name as "Untitled".
pub(crate) fn media(kind: &str, url: &str) -> Value {
    let filename = if kind == "document" { filename(url) } else { None };
    match filename {
        Some(filename) => json!({"link": url, "filename": filename}),
        None => json!({"link": url}),
    }
}

/// The name of the file at `url`, if its path has one.
pub(crate) fn filename(url: &str) -> Option<String> {
    let url = Url::parse(url).ok()?;
    let name = percent_decode_str(url.path_segments()?.next_back()?).decode_utf8().ok()?;
    (!name.is_empty() && !name.contains(char::is_control)).then(|| name.into_owned())
}
