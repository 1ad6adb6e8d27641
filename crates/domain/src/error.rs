//! The closed list of API errors.
//!
//! To add one: a variant with its three exhaustive arms, a test that produces it, and `cargo xtask generate`.

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::limits;

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $status:literal, $summary:literal;)*) => {
        /// The `code` of an error body.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        pub enum ErrorCode { $(#[doc = $summary] $name,)* }

        impl ErrorCode {
            /// All codes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// Returns the code as it appears in the body.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $code,)* } }
            /// Returns the HTTP status.
            pub const fn status(self) -> u16 { match self { $(Self::$name => $status,)* } }
            /// Returns the meaning in one sentence.
            pub const fn summary(self) -> &'static str { match self { $(Self::$name => $summary,)* } }
        }
    };
}

codes! {
    InvalidJson = "invalid_json", 400, "The body is not JSON.";
    InvalidRequest = "invalid_request", 400, "A field, parameter or header is invalid, or the status of the resource does not allow the operation.";
    WhatsappWindowClosed = "whatsapp_window_closed", 400, "Outside the 24-hour window, WhatsApp allows only templates.";
    WindowClosed = "window_closed", 400, "The recipient has not written within the last 24 hours, as Instagram requires.";
    NoContacts = "no_contacts", 400, "The broadcast has no contacts.";
    SenderNotConfigured = "sender_not_configured", 400, "The sender has no connected channel for the message.";
    TemplateNotApproved = "template_not_approved", 400, "The WhatsApp template is not approved.";
    BroadcastNotEditable = "broadcast_not_editable", 400, "The broadcast can be edited only while it is a draft or rejected.";
    ReviewAttemptsExhausted = "review_attempts_exhausted", 400, "The broadcast was already reviewed three times.";
    DuplicateIdentifier = "duplicate_identifier", 400, "The identifier belongs to another contact.";
    Unauthorized = "unauthorized", 401, "The API key is missing or invalid.";
    InsufficientBalance = "insufficient_balance", 402, "The available balance does not cover the operation.";
    Forbidden = "forbidden", 403, "The API key lacks the permission named in details.requiredPermission.";
    NotFound = "not_found", 404, "There is no such resource in this environment.";
    MethodNotAllowed = "method_not_allowed", 405, "The path does not support the method; the Allow header lists supported methods.";
    NotAcceptable = "not_acceptable", 406, "The Accept header excludes the media types of the response.";
    RequestTimeout = "request_timeout", 408, "The body arrived too slowly.";
    IdempotencyConflict = "idempotency_conflict", 409, "The idempotency key was used by the same request; the body holds the original resource.";
    IdempotencyKeyReused = "idempotency_key_reused", 409, "The idempotency key was used by a different request; the body holds the original resource.";
    Conflict = "conflict", 409, "The resource changed or is bound elsewhere.";
    PayloadTooLarge = "payload_too_large", 413, "The body exceeds the limit of the endpoint.";
    UnsupportedMediaType = "unsupported_media_type", 415, "The operation does not accept the Content-Type of the body, or the body is compressed.";
    RateLimitExceeded = "rate_limit_exceeded", 429, "Too many requests; retry after the seconds in Retry-After.";
    InternalError = "internal_error", 500, "An internal error; the log has its cause under the request id.";
    StorageQuotaExceeded = "storage_quota_exceeded", 507, "The storage quota of the environment has no room for the message; nothing was stored.";
    Unavailable = "unavailable", 503, "The service cannot process the request now; retry after the seconds in Retry-After.";
}

impl ErrorCode {
    /// Returns whether the body also has `error: {code, message}`.
    pub const fn has_error_object(self) -> bool {
        matches!(
            self,
            Self::Unauthorized | Self::Forbidden | Self::RateLimitExceeded | Self::IdempotencyConflict | Self::IdempotencyKeyReused
        )
    }
}

/// An error of one field: where it is and what would be valid.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FieldError {
    /// The field, as the caller wrote it: `content.buttons[2].title`, `query.limit`, `header.Service-Sender`.
    pub path: String,
    /// The problem, the value, and what would be valid.
    pub message: String,
}

impl FieldError {
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: shortened(path.into(), SHOWN_PATH), message: shortened(cut_values(message.into()), SHOWN_MESSAGE) }
    }
}

/// Maximum number of characters of a value that an error shows.
const SHOWN_VALUE: usize = 100;
/// Maximum number of characters of a path, which can contain the caller's names.
const SHOWN_PATH: usize = 300;
/// Maximum number of characters of a message.
const SHOWN_MESSAGE: usize = 2_000;
/// Maximum number of bytes of all field errors, as JSON.
const SHOWN_FAULTS: usize = 56 * 1024;

fn shortened(mut text: String, most: usize) -> String {
    if let Some((end, _)) = (text.len() > most).then(|| text.char_indices().nth(most)).flatten() {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// Truncates quoted values in a message. A quotation mark within a value has a backslash, as `{:?}` writes it.
fn cut_values(message: String) -> String {
    if message.len() <= SHOWN_VALUE {
        return message;
    }
    let mut out = String::new();
    let (mut quote, mut shown, mut escaped) = (None, 0, false);
    for c in message.chars() {
        let ends = quote == Some(c) && !escaped;
        match quote {
            None if matches!(c, '"' | '`') => (quote, shown) = (Some(c), 0),
            None => {}
            Some(_) if ends => quote = None,
            Some(_) => {
                escaped = c == '\\' && !escaped;
                shown += 1;
                if shown == SHOWN_VALUE + 1 {
                    out.push('…');
                }
                if shown > SHOWN_VALUE {
                    continue;
                }
            }
        }
        out.push(c);
        if out.len() > 4 * (SHOWN_MESSAGE + 1) {
            break; // truncated there anyway
        }
    }
    out
}

/// An error for a caller.
///
/// `Display` prints only the public part. The source is for the log.
pub struct Error(Box<Inner>);

struct Inner {
    code: ErrorCode,
    message: String,
    details: Map<String, Value>,
    body: Map<String, Value>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Makes an error with a public message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = shortened(cut_values(message.into()), SHOWN_MESSAGE);
        Self(Box::new(Inner { code, message, details: Map::new(), body: Map::new(), source: None }))
    }

    /// Makes a `400 invalid_request` with at most [`limits::FIELD_ERRORS`] field errors, and no more than fit in a response.
    pub fn invalid(mut errors: Vec<FieldError>) -> Self {
        let mut room = SHOWN_FAULTS;
        let mut fits = |error: &FieldError| {
            room = room.saturating_sub(serde_json::to_string(error).map_or(SHOWN_FAULTS, |json| json.len() + 1));
            room > 0
        };
        let shown = errors.iter().take(limits::FIELD_ERRORS).take_while(|error| fits(error)).count();
        let message = match errors.as_slice() {
            [one] => format!("{}: {}", one.path, one.message),
            many if many.len() > shown => format!("{} fields are invalid; details.errors lists {shown} of them", many.len()),
            many => format!("{} fields are invalid; details.errors lists them", many.len()),
        };
        errors.truncate(shown);
        Self::new(ErrorCode::InvalidRequest, message).with("errors", serde_json::to_value(errors).unwrap_or_default())
    }

    /// Fails with [`Self::invalid`] if there are field errors.
    pub fn if_any(errors: impl IntoIterator<Item = FieldError>) -> Result<()> {
        let errors: Vec<_> = errors.into_iter().collect();
        if errors.is_empty() { Ok(()) } else { Err(Self::invalid(errors)) }
    }

    /// Makes a `400 invalid_request` for one field.
    pub fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError::new(path, message)])
    }

    /// Returns whether all its field errors are about `path`, and there are any.
    pub fn is_about(&self, path: &str) -> bool {
        let errors = self.0.details.get("errors").and_then(Value::as_array);
        errors.is_some_and(|errors| !errors.is_empty() && errors.iter().all(|error| error["path"] == path))
    }

    /// Returns the message without `path` at its beginning, for a place that names the field itself or has none.
    pub fn message_without(&self, path: &str) -> &str {
        let rest = self.message().strip_prefix(path).and_then(|rest| rest.strip_prefix(": "));
        rest.unwrap_or_else(|| self.message())
    }

    /// Makes a `404 not_found`.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("{what} not found"))
    }

    /// Makes a `400 invalid_request` about the resource's state.
    pub fn wrong_state(message: impl Into<String>, current: &str, allowed: &[&str]) -> Self {
        Self::new(ErrorCode::InvalidRequest, message).at_state(current, allowed)
    }

    /// Adds the current state and the states that allow the operation. The current state is never listed, even if another condition failed:
    /// callers would take that as permission to retry.
    #[must_use]
    pub fn at_state(self, current: &str, allowed: &[&str]) -> Self {
        let others: Vec<&str> = allowed.iter().copied().filter(|status| *status != current).collect();
        self.with("currentStatus", current.into()).with("allowedFrom", others.into())
    }

    /// Makes a `500 internal_error`; `source` is only logged.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(ErrorCode::InternalError, "internal error").caused_by(source)
    }

    /// Makes a `503 unavailable`.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// Adds an entry to `details`.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.details.insert(key.to_owned(), value);
        self
    }

    /// Names the field that an error of another code than [`Self::invalid`]'s is about.
    #[must_use]
    pub fn at(self, path: impl Into<String>, message: impl Into<String>) -> Self {
        self.with("errors", serde_json::to_value([FieldError::new(path, message)]).unwrap_or_default())
    }

    /// Adds an entry next to `code` and `message`, such as the original resource of a 409.
    #[must_use]
    pub fn with_body(mut self, key: &str, value: Value) -> Self {
        self.0.body.insert(key.to_owned(), value);
        self
    }

    /// Attaches the private cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub fn code(&self) -> ErrorCode {
        self.0.code
    }

    /// The public message.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The entries of `details`.
    pub fn details(&self) -> &Map<String, Value> {
        &self.0.details
    }

    /// Returns the public JSON body.
    pub fn to_body(&self) -> Value {
        let Inner { code, message, details, body, .. } = &*self.0;
        let mut out = Map::new();
        out.insert("code".into(), code.as_str().into());
        out.insert("message".into(), message.as_str().into());
        out.insert("details".into(), Value::Object(details.clone()));
        if code.has_error_object() {
            out.insert("error".into(), serde_json::json!({"code": code.as_str(), "message": message}));
        }
        out.extend(body.clone()); // the original resource of a 409 can be named `message`
        Value::Object(out)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("code", &self.0.code)
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .field("source", &self.0.source)
            .finish()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|e| e as _)
    }
}

/// Result of a use case.
pub type Result<T, E = Error> = std::result::Result<T, E>;

#[cfg(test)]
mod tests {
    use super::*;

    fn size(error: &Error) -> usize {
        error.to_body().to_string().len()
    }

    #[test]
    fn of_a_value_the_beginning_is_shown() {
        for c in ['x', 'é', '"', '\\', '\u{1}', '\u{1F600}'] {
            let value = c.to_string().repeat(100_000);
            let fault = FieldError::new("a", format!("is {value:?}; must be one of x, y"));
            assert!(fault.message.ends_with("…\"; must be one of x, y"), "{}", fault.message);
            assert!(fault.message.chars().count() < 140, "{}", fault.message);
            let named = Error::new(ErrorCode::InvalidRequest, format!("unknown variant `{}`, expected `a`", "x".repeat(100_000)));
            assert!(named.message().ends_with("x…`, expected `a`"), "{named}");
        }
        let long = format!("is {:?}; known are {}", "a\"b", "name, ".repeat(100));
        assert_eq!(FieldError::new("a", long.as_str()).message, long, "what would be right is shown whole");
        assert!(FieldError::new("p".repeat(1_000), "m ".repeat(10_000)).message.chars().count() <= SHOWN_MESSAGE + 1);
    }

    #[test]
    fn an_error_is_at_most_64_kb() {
        let bad = "\u{1}\"".repeat(50_000);
        let many = (0..1_000).map(|n| FieldError::new(format!("{n}{bad}"), format!("is {bad}"))).collect();
        let error = Error::invalid(many);
        let shown = error.details()["errors"].as_array().map_or(0, Vec::len);
        assert!(size(&error) <= 64 * 1024 && (1..100).contains(&shown), "{} {shown}", size(&error));
        assert!(error.message().ends_with(&format!("lists {shown} of them")));
        assert!(size(&Error::field(bad.clone(), bad.clone())) <= 64 * 1024);
        assert!(size(&Error::new(ErrorCode::Unauthorized, bad)) <= 64 * 1024);
    }

    #[test]
    fn the_state_that_was_refused_is_not_one_that_is_allowed() {
        let error = Error::wrong_state("no", "sending", &["scheduled", "queued", "sending"]);
        assert_eq!(error.details()["allowedFrom"], serde_json::json!(["scheduled", "queued"]));
        let error = Error::new(ErrorCode::BroadcastNotEditable, "no").at_state("sent", &["draft"]);
        assert_eq!((&error.details()["currentStatus"], &error.details()["allowedFrom"]), (&"sent".into(), &serde_json::json!(["draft"])));
    }
}
