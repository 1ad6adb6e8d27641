//! The OpenAPI document as it is published.

use std::sync::LazyLock;

use serde_json::{Value, json};

/// The document as `cargo xtask generate` wrote it. Building it at each start would cost megabytes of memory for good.
pub(crate) const PUBLISHED: &str = include_str!("../../../docs/openapi.json");

/// Returns `{"components": {"schemas": …}}` of the document. Built when a body is first invalid.
pub(crate) fn schemas() -> &'static Value {
    static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
        let mut document: Value = serde_json::from_str(PUBLISHED).expect("the document is JSON");
        json!({"components": {"schemas": document["components"]["schemas"].take()}})
    });
    &SCHEMAS
}
