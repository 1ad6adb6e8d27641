//! `DELETE /v1/senders/{id}`.

use nuncio_domain::SenderId;

use crate::extract::{Call, Path};
use crate::reply::{NoContent, Result};

/// Delete a sender
///
/// Its connections, webhook and profile are deleted too; its messages stay readable. For the default sender, and one with messages still
/// to be sent, the response is 400; `details.reason` is `default_sender` or `queued_messages`, also for a
/// broadcast that can still send.
#[utoipa::path(
    delete, path = "/v1/senders/{id}", tag = "Senders",
    params(("id" = SenderId, Path, description = "The sender.")),
    responses((status = 204, description = "Deleted.")),
)]
pub(crate) async fn delete_sender(Call(core, caller): Call, Path(id): Path<String>) -> Result<NoContent> {
    core.senders().delete(&caller, &id).await?;
    Ok(NoContent)
}
