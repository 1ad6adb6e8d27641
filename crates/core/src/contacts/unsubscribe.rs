//! Taking leave by the link that a mail carries (RFC 8058): whoever has the link may; there is no caller.

use nuncio_domain::address::Parsed;
use nuncio_domain::message::{Direction, Message};
use nuncio_domain::{Error, Recipient, Result};
use nuncio_store::{Suppression, SuppressionReason};
use sha2::{Digest as _, Sha256};

use super::Suppressions;
use crate::contacts::suppressions;

/// What a link is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Leave {
    /// The name of the sender whose messages are not wanted.
    pub sender: String,
    /// Who does not want them.
    pub recipient: String,
}

impl Suppressions<'_> {
    /// What the link with this token is about. `404 not_found` for one that was not made here, or whose message is no more.
    pub async fn leave(&self, token: &str) -> Result<Leave> {
        let (message, recipient) = self.message_to_leave(token).await?;
        let world = self.world(message.tenant).await?;
        let sender = world.sender(message.sender).map(|sender| sender.name.clone()).unwrap_or_default();
        Ok(Leave { sender, recipient: recipient.identifier })
    }

    /// Takes the recipient of the link's message off its sender, as STOP does. Again is the same as once.
    pub async fn take_leave(&self, token: &str) -> Result<()> {
        let (message, recipient) = self.message_to_leave(token).await?;
        let suppression = Suppression {
            id: self.ids().next(),
            recipient,
            sender: Some(message.sender),
            reason: SuppressionReason::OptOut,
            source: format!("the link in {}", message.id),
        };
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        if tx.insert_suppression(message.tenant, &suppression, now).await? {
            suppressions::tell_opt_out(&mut *tx, message.tenant, &suppression, now).await?;
        }
        Ok(tx.commit().await?)
    }

    async fn message_to_leave(&self, token: &str) -> Result<(Message, Recipient)> {
        let unknown = || Error::not_found("message");
        // Guesses ask no database; a link whose message is gone asks it once.
        let (tenant, id) = self.mail_tokens().read_unsubscribe(token).ok_or_else(unknown)?;
        let link: [u8; 32] = Sha256::digest(token).into();
        if self.inner.dead_links.contains(&link) {
            return Err(unknown());
        }
        let found = self.inner.store.read().await?.lookup_messages(tenant, &[id]).await?.pop();
        let leads_to = found.filter(|message| message.direction == Direction::Outbound).and_then(|message| {
            // Of somebody who was erased, no address is left.
            let parsed = Parsed::parse(&message.to).ok()?;
            let recipient = Recipient::on(&parsed, message.state.route.channel).ok()?;
            Some((message, recipient))
        });
        self.inner.dead_links.note(link, leads_to.is_none());
        leads_to.ok_or_else(unknown)
    }
}
