//! `POST /v1/introspect/email`.

use nuncio_core::introspect::{EmailIntrospection, IntrospectEmail};

use crate::extract::{Body, Call};
use crate::reply::{Reply, Result};

/// Look at an email address
///
/// Judges by the address itself and by the suppressions of this environment. Its mail servers are not looked up, and nothing is sent.
#[utoipa::path(
    post, path = "/v1/introspect/email", tag = "Introspection", request_body = IntrospectEmail,
    responses((status = 200, description = "What is known of the address.", body = EmailIntrospection)),
)]
pub(crate) async fn introspect_email(
    Call(core, caller): Call,
    Body { value, .. }: Body<IntrospectEmail>,
) -> Result<Reply<EmailIntrospection>> {
    Ok(Reply::ok(core.projects().introspect_email(&caller, &value).await?))
}
