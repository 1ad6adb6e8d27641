//! `POST /v1/introspect/email`.

use nuncio_core::introspect::{EmailIntrospection, IntrospectEmail};

use crate::extract::{Body, Call};
use crate::reply::{Reply, Result};

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
