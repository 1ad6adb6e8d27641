//! The OpenAPI document as it is published.

use std::io::Read as _;
use std::sync::LazyLock;

use axum::body::Bytes;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

/// The document as `cargo xtask generate` wrote it: building it at each start would cost megabytes of memory for good. It is part of the binary
/// compressed, and unpacked when it is first needed.
pub(crate) static PUBLISHED: LazyLock<Bytes> = LazyLock::new(|| {
    let mut document = Vec::new();
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/openapi.json.gz"));
    GzDecoder::new(packed).read_to_end(&mut document).expect("build.rs packed the document");
    document.into()
});

/// Returns `{"components": {"schemas": …}}` of the document. Built when a body is first invalid.
pub(crate) fn schemas() -> &'static Value {
    static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
        let mut document: Value = serde_json::from_slice(&PUBLISHED).expect("the document is JSON");
        json!({"components": {"schemas": document["components"]["schemas"].take()}})
    });
    &SCHEMAS
}
