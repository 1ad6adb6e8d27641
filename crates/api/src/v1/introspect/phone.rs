//! `POST /v1/introspect/phone`.

use nuncio_core::introspect::{IntrospectPhone, PhoneIntrospection};

use crate::extract::{Body, Call};
use crate::reply::{Reply, Result};

/// Look up a phone number
///
/// Uses the numbering plans and this environment's contacts. No provider is queried, and nothing is sent.
#[utoipa::path(
    post, path = "/v1/introspect/phone", tag = "Introspection", request_body = IntrospectPhone,
    responses((status = 200, description = "Information about the number.", body = PhoneIntrospection)),
)]
pub(crate) async fn introspect_phone(
    Call(core, caller): Call,
    Body { value, .. }: Body<IntrospectPhone>,
) -> Result<Reply<PhoneIntrospection>> {
    Ok(Reply::ok(core.projects().introspect_phone(&caller, &value).await?))
}
