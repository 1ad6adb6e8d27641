//! Stores the chunks of a large request before its message is accepted, each in a separate transaction.

use nuncio_store::{Accept, Accepted, Result, Store};

use crate::message_batch::Prepared;

/// Stores a new message by `write`, and its chunks before.
pub(crate) async fn accept<F>(store: &dyn Store, item: Accept, write: impl FnOnce(Box<Prepared>) -> F) -> Result<Accepted>
where
    F: Future<Output = Result<Accepted>>,
{
    let mut prepared = Box::new(Prepared::new(item)?);
    let (tenant, message, now) = (prepared.item.message.tenant, prepared.item.message.id, prepared.item.now);
    let chunks = std::mem::take(&mut prepared.chunks);
    for (index, chunk) in chunks.iter().enumerate() {
        let mut tx = store.begin().await?;
        tx.insert_spool_chunk(tenant, message, index as i32, chunk, now).await?;
        tx.commit().await?;
    }
    let accepted = write(prepared).await?;
    // Repeated rejections must not fill the disk before the purge.
    if !chunks.is_empty() && !matches!(accepted, Accepted::New { .. }) {
        let mut tx = store.begin().await?;
        tx.delete_spool(tenant, message).await?;
        tx.commit().await?;
    }
    Ok(accepted)
}
