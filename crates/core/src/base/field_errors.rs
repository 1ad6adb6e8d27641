//! Validates input of several resources.

use nuncio_domain::{FieldError, limits, line};
use serde_json::{Map, Number, Value};

use super::Core;

/// Error message for a text without a visible character.
pub(crate) const BLANK: &str = "has only whitespace; must have visible text";

/// Returns whether a text is invisible: spaces, line breaks, and characters without width or ink.
pub(crate) fn is_blank(text: &str) -> bool {
    let no_ink = |c| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{2800}' | '\u{3164}' | '\u{feff}');
    text.chars().all(|c| c.is_whitespace() || c.is_control() || no_ink(c))
}

/// Reads the name of a project, without the spaces that keyboards put around it.
pub(crate) fn project_name(path: &str, name: &str) -> Result<String, FieldError> {
    let (name, mut errors) = (name.trim(), Vec::new());
    FieldErrors { errors: &mut errors }.name(path, Some(name), 1, limits::PROJECT_NAME);
    errors.pop().map_or_else(|| Ok(name.to_owned()), Err)
}

/// Collects field errors.
pub(crate) struct FieldErrors<'a> {
    pub(crate) errors: &'a mut Vec<FieldError>,
}

impl FieldErrors<'_> {
    pub(crate) fn push(&mut self, path: &str, message: impl Into<String>) {
        self.errors.push(FieldError::new(path, message));
    }

    /// Checks the length in Unicode code points.
    pub(crate) fn length(&mut self, path: &str, value: Option<&str>, least: usize, most: usize) {
        let Some(value) = value else { return };
        if value.len() >= least && value.len() <= most && least <= 1 {
            return; // fewer bytes than allowed characters
        }
        let length = value.chars().count();
        if length < least || length > most {
            let least = if least > 0 { format!("{least} to") } else { "at most".to_owned() };
            self.push(path, format!("has {length} characters; must have {least} {most}"));
        }
    }

    pub(crate) fn mime(&mut self, path: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        let good = value.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty())
            && value.len() <= 255
            && value.bytes().all(|b| b.is_ascii_graphic() || b == b' ');
        if !good {
            let shown: String = value.chars().take(64).collect();
            self.push(path, format!("is {shown:?}; must be a MIME type such as application/pdf"));
        }
    }

    /// Checks a name: one line of this many characters; a required one must be visible.
    pub(crate) fn name(&mut self, path: &str, value: Option<&str>, least: usize, most: usize) {
        let Some(value) = value else { return };
        match line::check(path, value, least, most) {
            Some(error) => self.errors.push(error),
            None if least > 0 && is_blank(value) => self.push(path, BLANK),
            None => {}
        }
    }

    pub(crate) fn count(&mut self, path: &str, count: usize, least: usize, most: usize) {
        if count < least || count > most {
            self.push(path, format!("has {count} items; must have {least} to {most}"));
        }
    }

    pub(crate) fn url(&mut self, path: &str, value: Option<&str>) {
        let Some(value) = value else { return };
        let bare = |u: &url::Url| u.username().is_empty() && u.password().is_none();
        let good = url::Url::parse(value).is_ok_and(|u| matches!(u.scheme(), "https" | "http") && u.host().is_some() && bare(&u));
        // The parser tolerates spaces and line breaks, but the text is sent as it was given.
        if !good || value.contains(|c: char| c.is_whitespace() || c.is_control()) || value.chars().count() > 2_048 {
            self.push(path, "must be an http or https URL of at most 2048 characters, without spaces, user or password");
        }
    }

    /// Checks the URL that a value of a template makes.
    pub(crate) fn link(&mut self, path: &str, url: Option<&str>) {
        let before = self.errors.len();
        self.url(path, url);
        if let (Some(error), Some(url)) = (self.errors.get_mut(before), url) {
            error.message = format!("makes the link {:?}, which {}", url.chars().take(100).collect::<String>(), error.message);
        }
    }

    pub(crate) fn range(&mut self, path: &str, value: Option<f64>, most: f64) {
        if let Some(value) = value.filter(|v| !(-most..=most).contains(v)) {
            self.push(path, format!("is {value}; must be between -{most} and {most}"));
        }
    }
}

/// Validates the metadata of any resource.
pub(crate) fn check_metadata(metadata: Option<&Map<String, Value>>, errors: &mut Vec<FieldError>) {
    let Some(metadata) = metadata else { return };
    let mut faults = FieldErrors { errors };
    if metadata.len() > limits::METADATA_KEYS {
        faults.push("metadata", format!("has {} keys; must have at most {}", metadata.len(), limits::METADATA_KEYS));
    }
    let bytes = serde_json::to_string(metadata).map_or(0, |text| text.len());
    if bytes > limits::METADATA_BYTES {
        faults.push("metadata", format!("is {bytes} bytes of JSON; must be at most {}", limits::METADATA_BYTES));
    }
    let deepest = metadata.values().map(depth).max().unwrap_or(0) + 1;
    if deepest > limits::METADATA_DEPTH {
        faults.push("metadata", format!("is nested {deepest} levels deep; must be at most {}", limits::METADATA_DEPTH));
    }
    // Bodies with it were refused before, with its exact place. Files were not.
    if metadata.iter().any(|(name, value)| name.contains('\0') || has_nul(value)) {
        faults.push("metadata", "must not contain U+0000");
    }
    if let Some(number) = metadata.values().find_map(too_large) {
        let shown: String = number.as_str().chars().take(64).collect();
        faults.push("metadata", format!("has the number {shown}, which is too large for a double; send it as a string"));
    }
}

/// Returns a number that is beyond doubles: many JSON parsers reject the whole text for it.
fn too_large(value: &Value) -> Option<&Number> {
    match value {
        // Cheap to rule out: it takes an exponent or many digits.
        Value::Number(number) => {
            let text = number.as_str();
            let may_be = text.len() > f64::MAX_10_EXP as usize || text.contains(['e', 'E']);
            Some(number).filter(|number| may_be && number.as_f64().is_none())
        }
        Value::Array(items) => items.iter().find_map(too_large),
        Value::Object(entries) => entries.values().find_map(too_large),
        _ => None,
    }
}

/// Returns whether a value has U+0000 in it, which PostgreSQL can neither store as text nor search.
pub(crate) fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(items) => items.iter().any(has_nul),
        Value::Object(entries) => entries.iter().any(|(name, value)| name.contains('\0') || has_nul(value)),
        _ => false,
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(depth).max().unwrap_or(0) + 1,
        Value::Object(entries) => entries.values().map(depth).max().unwrap_or(0) + 1,
        _ => 0,
    }
}

impl Core {
    /// Validates a URL that the server will call.
    pub(crate) fn check_url(&self, path: &str, url: &str, errors: &mut Vec<FieldError>) {
        if url.len() > limits::URL_BYTES {
            return errors.push(FieldError::new(path, format!("is {} bytes long; must be at most {}", url.len(), limits::URL_BYTES)));
        }
        if let Err(why) = self.inner.net.check_url(url) {
            errors.push(FieldError::new(path, why));
        }
    }
}
