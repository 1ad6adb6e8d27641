//! Stores the chunks of a large request before its message is accepted, each in a separate transaction.

use nuncio_domain::{MessageId, TenantId};
use nuncio_store::{Accepted, Result, Store};

use crate::message_batch::Prepared;

/// A message whose chunks are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spooled {
    tenant: TenantId,
    message: MessageId,
}

/// Stores the chunks of a message; `None` if it has none.
pub(crate) async fn write(store: &dyn Store, prepared: &mut Prepared) -> Result<Option<Spooled>> {
    let chunks = std::mem::take(&mut prepared.chunks);
    let spooled = Spooled { tenant: prepared.item.message.tenant, message: prepared.item.message.id };
    for (index, chunk) in chunks.iter().enumerate() {
        let mut tx = store.begin().await?;
        tx.insert_spool_chunk(spooled.tenant, spooled.message, index as i32, chunk, prepared.item.now).await?;
        tx.commit().await?;
    }
    Ok((!chunks.is_empty()).then_some(spooled))
}

impl Spooled {
    /// Deletes the chunks unless the message was stored: repeated rejections must not fill the disk before the purge.
    pub(crate) async fn delete_unless_accepted(self, store: &dyn Store, accepted: &Accepted) -> Result<()> {
        if matches!(accepted, Accepted::New { .. }) {
            return Ok(());
        }
        let mut tx = store.begin().await?;
        tx.delete_spool(self.tenant, self.message).await?;
        tx.commit().await
    }
}
