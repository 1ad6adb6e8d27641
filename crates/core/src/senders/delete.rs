//! Deletes senders.

use std::time::Duration;

use nuncio_domain::{Error, ErrorCode, Result, SenderId, TenantId, broadcast::Status, config::Sender, limits, page::PageRequest};
use nuncio_store::Tx;

use super::Senders;
use crate::base::{Caller, Change, UseCase, parse_id};
use crate::webhooks::drop_waiting;

/// More than the clocks of two nodes can differ.
const SKEW: Duration = Duration::from_secs(120);

impl Senders<'_> {
    /// `DELETE /v1/senders/{id}`.
    pub async fn delete(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::DeleteSender)?;
        self.remove(caller.tenant, parse_id(id, "sender")?).await
    }

    /// Deletes a sender that is not the default and has no messages to send. Its messages stay readable.
    pub async fn remove(&self, tenant: TenantId, id: SenderId) -> Result<()> {
        // Scanning all unfinished messages can take a while, so it is done before the transaction, which checks the rest.
        let since = self.ids().clock.now().minus(SKEW);
        let mut tx = self.inner.store.read().await?;
        removable(&find(&mut *tx, tenant, id).await?)?;
        not_busy(tx.has_queued_messages(tenant, id, None).await?)?;
        drop(tx);
        let mut tx = self.change_config(tenant).await?;
        let sender = find(&mut *tx, tenant, id).await?;
        removable(&sender)?;
        not_busy(tx.has_queued_messages(tenant, id, Some(since)).await?)?;
        no_broadcasts(&mut *tx, tenant, id).await?;
        let view = self.one_view(&mut *tx, tenant, sender, None).await?;
        Change::new("sender", "delete", id).from(&view).record(&mut *tx, tenant).await?;
        self.removed(&mut *tx, tenant, id).await?;
        tx.delete_sender(tenant, id).await?;
        self.webhooks().commit(tenant, tx).await?;
        Ok(drop_waiting(self.store(), tenant, Some(id), self.ids().clock.now()).await?)
    }

    /// Deletes or detaches what belongs to a sender, in the transaction that deletes it. The store deletes its connections.
    async fn removed(&self, tx: &mut dyn Tx, tenant: TenantId, id: SenderId) -> Result<()> {
        tx.delete_webhook(tenant, Some(id)).await?;
        tx.delete_account(tenant, id).await?;
        tx.unassign_numbers(tenant, id, self.ids().clock.now()).await?;
        Ok(())
    }
}

async fn find(tx: &mut dyn Tx, tenant: TenantId, id: SenderId) -> Result<Sender> {
    let found = tx.find_senders(tenant, &[id]).await?.pop();
    found.ok_or_else(|| Error::not_found("sender"))
}

fn removable(sender: &Sender) -> Result<()> {
    if sender.is_default {
        let message = "the default sender cannot be deleted; make another sender the default first";
        return Err(Error::new(ErrorCode::InvalidRequest, message).with("reason", "default_sender".into()));
    }
    Ok(())
}

/// Statuses of broadcasts that can still send.
const UNSENT: &[Status] =
    &[Status::PendingReview, Status::Rejected, Status::Approved, Status::Escalated, Status::Scheduled, Status::Sending, Status::Paused];

async fn no_broadcasts(tx: &mut dyn Tx, tenant: TenantId, sender: SenderId) -> Result<()> {
    let mut page = PageRequest::newest(limits::PAGE_MAX);
    loop {
        let found = tx.list_broadcasts(tenant, UNSENT, page).await?;
        if let Some(broadcast) = found.items.iter().find(|broadcast| broadcast.sender == sender) {
            let message = format!("the sender's broadcast {} is {}; wait for it, or cancel it", broadcast.id, broadcast.status);
            return Err(Error::new(ErrorCode::InvalidRequest, message).with("reason", "queued_messages".into()));
        }
        let Some(next) = found.next else { return Ok(()) };
        page = PageRequest::older(limits::PAGE_MAX, Some(next));
    }
}

fn not_busy(busy: bool) -> Result<()> {
    if busy {
        let message = "the sender has unsent messages; wait for them, or cancel them";
        return Err(Error::new(ErrorCode::InvalidRequest, message).with("reason", "queued_messages".into()));
    }
    Ok(())
}
