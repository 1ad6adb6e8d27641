//! Unsubscribes by the link in an email (RFC 8058). The link's token is the only permission needed.

use nuncio_domain::message::{Direction, Message};
use nuncio_domain::{Error, Recipient, Result};
use nuncio_store::{Suppression, SuppressionReason};
use sha2::{Digest as _, Sha256};

use super::Suppressions;
use crate::contacts::suppressions;

/// The subject of an unsubscribe link.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnsubscribeTarget {
    /// The name of the sender to unsubscribe from.
    pub sender: String,
    pub recipient: String,
}

impl Suppressions<'_> {
    /// Returns what the link with this token is about. `404 not_found` for an unknown token, or if its message no longer exists.
    pub async fn unsubscribe_target(&self, token: &str) -> Result<UnsubscribeTarget> {
        let (message, recipient) = self.message_to_leave(token).await?;
        let config = self.tenant_config(message.tenant).await?;
        let sender = config.sender(message.sender).map(|sender| sender.name.clone()).unwrap_or_default();
        Ok(UnsubscribeTarget { sender, recipient: recipient.identifier })
    }

    /// Opts the recipient of the link's message out of its sender, like STOP. Idempotent.
    pub async fn unsubscribe(&self, token: &str) -> Result<()> {
        let (message, recipient) = self.message_to_leave(token).await?;
        let suppression = Suppression {
            id: self.ids().next(),
            recipient,
            sender: Some(message.sender),
            reason: SuppressionReason::OptOut,
            source: format!("the link in {}", message.id),
        };
        // Opening one link again and again must not keep the writer busy.
        if self.known(message.tenant, &suppression).await?.is_some() {
            return Ok(());
        }
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        if tx.insert_suppression(message.tenant, &suppression, now).await? {
            suppressions::publish_opt_out(&mut *tx, message.tenant, &suppression, now).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn message_to_leave(&self, token: &str) -> Result<(Message, Recipient)> {
        let unknown = || Error::not_found("message");
        // Guessed tokens cause no database access; a link whose message is gone causes one.
        let (tenant, id) = self.mail_tokens().read_unsubscribe(token).ok_or_else(unknown)?;
        let link: [u8; 32] = Sha256::digest(token).into();
        if self.inner.dead_links.contains(&link) {
            return Err(unknown());
        }
        let found = self.inner.store.read().await?.lookup_messages(tenant, &[id]).await?.pop();
        let leads_to = found.filter(|message| message.direction == Direction::Outbound).and_then(|message| {
            // For an erased contact there is no address.
            let recipient = Recipient::canonical(message.state.route.channel, &message.to)?;
            Some((message, recipient))
        });
        self.inner.dead_links.note(link, leads_to.is_none());
        leads_to.ok_or_else(unknown)
    }
}
