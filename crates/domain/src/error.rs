//! The closed list of errors that a caller can meet.
//!
//! To add one: a variant here with its three exhaustive arms, a test that produces it, and `cargo xtask generate`.

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
            /// Every code there is.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
            /// The text that stands in the body.
            pub const fn as_str(self) -> &'static str { match self { $(Self::$name => $code,)* } }
            /// The HTTP status that it is answered with.
            pub const fn status(self) -> u16 { match self { $(Self::$name => $status,)* } }
            /// What it means, in one sentence.
            pub const fn summary(self) -> &'static str { match self { $(Self::$name => $summary,)* } }
        }
    };
}

codes! {
    InvalidJson = "invalid_json", 400, "The body is not JSON.";
    InvalidRequest = "invalid_request", 400, "A field, parameter or header is wrong, or the resource is in a state that does not allow the operation.";
    WhatsappWindowClosed = "whatsapp_window_closed", 400, "Outside the 24-hour window WhatsApp carries templates only.";
    WindowClosed = "window_closed", 400, "The recipient has not written within the last 24 hours, outside of which Instagram carries nothing.";
    NoContacts = "no_contacts", 400, "The broadcast has no contacts.";
    SenderNotConfigured = "sender_not_configured", 400, "The sender has no connected channel that could carry the message.";
    TemplateNotApproved = "template_not_approved", 400, "The WhatsApp template is not approved.";
    BroadcastNotEditable = "broadcast_not_editable", 400, "The broadcast can be edited only while it is a draft or rejected.";
    ReviewAttemptsExhausted = "review_attempts_exhausted", 400, "The broadcast was reviewed three times already.";
    DuplicateIdentifier = "duplicate_identifier", 400, "The identifier belongs to another contact.";
    Unauthorized = "unauthorized", 401, "The API key is missing or invalid.";
    InsufficientBalance = "insufficient_balance", 402, "The available balance does not cover the operation.";
    Forbidden = "forbidden", 403, "The API key lacks the permission named in details.required.";
    NotFound = "not_found", 404, "There is no such resource in this world.";
    MethodNotAllowed = "method_not_allowed", 405, "The path does not support the method; Allow lists those it does.";
    NotAcceptable = "not_acceptable", 406, "Only application/json can be answered.";
    IdempotencyConflict = "idempotency_conflict", 409, "The idempotency key was used by the same request; the body holds the original resource.";
    IdempotencyKeyReused = "idempotency_key_reused", 409, "The idempotency key was used by a different request; the body holds the original resource.";
    Conflict = "conflict", 409, "The resource changed or is bound elsewhere.";
    PayloadTooLarge = "payload_too_large", 413, "The body exceeds the limit of the endpoint.";
    UnsupportedMediaType = "unsupported_media_type", 415, "The body must be application/json.";
    RateLimitExceeded = "rate_limit_exceeded", 429, "Too many requests; Retry-After says when to come back.";
    InternalError = "internal_error", 500, "Something went wrong inside; the request id finds it in the log.";
    StorageQuotaExceeded = "storage_quota_exceeded", 507, "The environment keeps as many bytes of messages as its quota allows; nothing was stored.";
    Unavailable = "unavailable", 503, "The service cannot take the request now; Retry-After says when to come back.";
}

impl ErrorCode {
    /// Whether the body also carries `error: {code, message}`.
    pub const fn has_error_object(self) -> bool {
        matches!(
            self,
            Self::Unauthorized | Self::Forbidden | Self::RateLimitExceeded | Self::IdempotencyConflict | Self::IdempotencyKeyReused
        )
    }
}

/// One fault of a request: where it is and what would be right.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct FieldError {
    /// The field, as the caller wrote it: `content.buttons[2].title`, `query.limit`, `header.Service-Sender`.
    pub path: String,
    /// What was wrong, with what value, and what would be right.
    pub message: String,
}

impl FieldError {
    /// A fault of `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// An error on its way to a caller.
///
/// `Display` prints the public half only. The source is for the log.
pub struct Error(Box<Inner>);

struct Inner {
    code: ErrorCode,
    message: String,
    details: Map<String, Value>,
    body: Map<String, Value>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with a public message.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Inner { code, message: message.into(), details: Map::new(), body: Map::new(), source: None }))
    }

    /// `400 invalid_request` with the faults that were found, at most [`limits::FAULTS`] of them.
    pub fn invalid(mut errors: Vec<FieldError>) -> Self {
        let message = match errors.as_slice() {
            [one] => format!("{}: {}", one.path, one.message),
            many if many.len() > limits::FAULTS => {
                format!("{} fields are invalid; details.errors lists {} of them", many.len(), limits::FAULTS)
            }
            many => format!("{} fields are invalid; details.errors lists them", many.len()),
        };
        errors.truncate(limits::FAULTS);
        Self::new(ErrorCode::InvalidRequest, message).with("errors", serde_json::to_value(errors).unwrap_or_default())
    }

    /// `400 invalid_request` for one field.
    pub fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(vec![FieldError::new(path, message)])
    }

    /// `404 not_found`.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("{what} not found"))
    }

    /// `400 invalid_request` because of the state that the resource is in.
    pub fn wrong_state(message: impl Into<String>, current: &str, allowed: &[&str]) -> Self {
        Self::new(ErrorCode::InvalidRequest, message).with("currentStatus", current.into()).with("allowedFrom", allowed.into())
    }

    /// `500 internal_error`; `source` goes to the log and nowhere else.
    pub fn internal(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(ErrorCode::InternalError, "internal error").caused_by(source)
    }

    /// `503 unavailable`.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unavailable, message)
    }

    /// Adds an entry to `details`.
    #[must_use]
    pub fn with(mut self, key: &str, value: Value) -> Self {
        self.0.details.insert(key.to_owned(), value);
        self
    }

    /// Adds an entry beside `code` and `message`, such as the original resource of a 409.
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

    /// The code.
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

    /// The JSON body that a caller sees.
    pub fn to_body(&self) -> Value {
        let Inner { code, message, details, body, .. } = &*self.0;
        let mut out = Map::new();
        out.insert("code".into(), code.as_str().into());
        out.insert("message".into(), message.as_str().into());
        out.insert("details".into(), Value::Object(details.clone()));
        if code.has_error_object() {
            out.insert("error".into(), serde_json::json!({"code": code.as_str(), "message": message}));
        }
        out.extend(body.clone()); // the original resource of a 409 stands under its name, which may be `message`
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

/// What use cases answer.
pub type Result<T, E = Error> = std::result::Result<T, E>;
