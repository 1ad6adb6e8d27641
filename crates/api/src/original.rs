//! Describes what a 409 shows of the original request's resource.

use serde::Serialize;
use utoipa::ToSchema;

/// The resource that the first request made; to a key without the permission to read it, its id and status only.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes the body of an error, which core renders")]
pub(crate) enum Original<T> {
    /// All of it.
    Whole(T),
    /// What a key without that permission sees.
    Brief(Brief),
}

/// A resource as a key sees it that may not read it.
#[derive(Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Brief {
    /// Its identifier.
    id: String,
    /// Its status, if it has one.
    status: Option<String>,
}
