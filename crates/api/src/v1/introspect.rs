//! Checks recipients without sending anything.

use nuncio_core::introspect::{EmailIntrospection, IntrospectEmail, IntrospectPhone, PhoneIntrospection};

use crate::extract::{Body, Call};
use crate::reply::{Reply, Result};
use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(introspect_phone)).routes(routes!(introspect_email))
}

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

/// Look up an email address
///
/// Uses the address itself and the suppressions of this environment. Its mail servers are not looked up, and nothing is sent.
#[utoipa::path(
    post, path = "/v1/introspect/email", tag = "Introspection", request_body = IntrospectEmail,
    responses((status = 200, description = "Information about the address.", body = EmailIntrospection)),
)]
pub(crate) async fn introspect_email(
    Call(core, caller): Call,
    Body { value, .. }: Body<IntrospectEmail>,
) -> Result<Reply<EmailIntrospection>> {
    Ok(Reply::ok(core.projects().introspect_email(&caller, &value).await?))
}
