//! Changes senders.

use nuncio_domain::{Error, Permission, Result, SenderId, TenantId};

use super::{Senders, change::WebhookFate, command::UpdateSender, connections::later, view::SenderView};
use crate::base::{Caller, Change, UseCase, check_version, parse_id};
use crate::{numbers::refuse_other_holder, webhooks::drop_waiting};

impl Senders<'_> {
    /// `PATCH /v1/senders/{id}`.
    pub async fn update(&self, caller: &Caller, id: &str, change: UpdateSender) -> Result<SenderView> {
        caller.require(UseCase::UpdateSender)?;
        if change.webhook_url.is_some() || change.webhook_events.is_some() || change.webhook_active.is_some() {
            caller.require(Permission::WebhooksWrite)?;
        }
        self.change(caller.tenant, parse_id(id, "sender")?, change).await
    }

    /// Changes a sender; absent fields stay unchanged.
    pub async fn change(&self, tenant: TenantId, id: SenderId, change: UpdateSender) -> Result<SenderView> {
        if matches!(change.webhook_url, Some(Some(_))) || change.webhook_active == Some(true) {
            self.webhooks().drop_old(tenant, Some(id)).await?;
        }
        let mut tx = self.change_config(tenant).await?;
        let found = tx.find_senders(tenant, &[id]).await?.pop();
        let mut sender = found.ok_or_else(|| Error::not_found("sender"))?;
        check_version(change.expected_version, sender.updated_at, "sender")?;
        let borne = sender.phone_number.clone();
        let shown = self.one_view(&mut *tx, tenant, sender.clone(), None).await?;
        let before = tx.find_webhook(tenant, Some(id)).await?;
        let mut errors = change.unreadable.clone();
        change.apply(&mut sender, &mut errors);
        let fate = change.webhook(self, before.as_ref(), &mut errors);
        Error::if_any(errors)?;
        if sender.phone_number != borne {
            refuse_other_holder(&mut *tx, tenant, Some(id), &sender.phone_number, self.ids().clock.now()).await?;
        }
        sender.updated_at = later(self.ids().clock.now(), Some(sender.updated_at));
        tx.update_sender(tenant, &sender).await?;
        let (stays, goes) = (matches!(fate, WebhookFate::Stays), matches!(fate, WebhookFate::Goes));
        let (mut changed, mut secret) = (None, None);
        match fate {
            WebhookFate::Stays => {}
            WebhookFate::Goes => drop(tx.delete_webhook(tenant, Some(id)).await?),
            WebhookFate::Changes(change) => {
                let (webhook, new) = self.webhooks().changed(tenant, Some(id), before, change)?;
                tx.put_webhook(tenant, &webhook).await?;
                (changed, secret) = (Some(webhook), new);
            }
        }
        let view = self.one_view(&mut *tx, tenant, sender, secret).await?;
        Change::new("sender", "update", id).from(&shown).to(&view).record(&mut *tx, tenant).await?;
        if stays {
            self.commit_change(tenant, tx).await?;
        } else {
            self.webhooks().commit(tenant, tx).await?;
        }
        if goes {
            drop_waiting(self.store(), tenant, Some(id), self.ids().clock.now()).await?;
        } else if let Some(webhook) = changed {
            self.webhooks().drop_unwanted(tenant, &webhook).await?;
        }
        Ok(view)
    }
}
