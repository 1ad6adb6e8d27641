//! Bytes as base64, which may be as large as a request.

use std::ops::Deref;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text in base64. Shared, so that a request can be cloned without its attachments.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Base64(Arc<String>);

impl From<String> for Base64 {
    fn from(text: String) -> Self {
        Self(Arc::new(text))
    }
}

impl Deref for Base64 {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl Serialize for Base64 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}
