//! What the messaging channels of Meta share: the Graph API with its errors, and the verification of callbacks.
//!
//! It has no kind of its own. A channel brings its paths, bodies and events, and the error codes that only it has.
//!
//! Sources: <https://developers.facebook.com/docs/graph-api/guides/error-handling>,
//! <https://developers.facebook.com/docs/graph-api/webhooks/getting-started>

mod access;
mod callback;
mod graph;
mod map;
#[cfg(feature = "scripted")]
pub mod scripted;

pub use access::{Secrets, api_version, app_secret, digits, verify_token};
pub use callback::proved;
pub use graph::{Body, ErrorData, Graph, GraphError, RequestError};
pub use map::{Classify, advice, failed, failure, outcome, repeatable};
