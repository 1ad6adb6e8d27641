//! Serialises new secrets, and deserialises fields of a PATCH, where null and absent differ.

use nuncio_domain::Redacted;
use serde::{Deserialize, Deserializer, Serialize as _, Serializer};

/// For a field that cannot be cleared: rejects null.
pub(crate) fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// For a field that null clears.
pub(crate) fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// For a field of a PUT, where null and absent are equal.
pub(crate) fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    Option::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// For a secret that only the response that creates it shows.
pub(crate) fn shown_once<S: Serializer>(secret: &Option<Redacted<String>>, serializer: S) -> Result<S::Ok, S::Error> {
    secret.as_ref().map(Redacted::expose).serialize(serializer)
}
