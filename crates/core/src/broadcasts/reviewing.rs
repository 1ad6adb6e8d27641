//! The automated review of a broadcast.

use nuncio_domain::Result;
use nuncio_domain::broadcast::{Broadcast, Operation};

use super::Broadcasts;
use super::act::is_ahead;
use super::change::fingerprint;
use super::contacts::merged;
use crate::review::{self, Subject};

/// Of how many recipients the values of variables are looked at.
const SAMPLE: u32 = 100;

impl Broadcasts<'_> {
    /// Reviews a broadcast, and sends it on its way or back.
    pub(super) async fn review(&self, broadcast: &Broadcast) -> Result<()> {
        let now = self.ids().clock.now();
        let subject = self.subject_of(broadcast).await?;
        let result = review::review(&subject, now);
        let passes = review::passes(&result);
        let reviewed = fingerprint(broadcast);
        let operation = |broadcast: &Broadcast| match passes {
            true => Operation::Pass { ahead: is_ahead(broadcast, now) },
            false => Operation::Reject,
        };
        self.change_as(broadcast.tenant, broadcast.id, operation, None, |broadcast, _| {
            broadcast.body.review = Some(result.clone());
            broadcast.body.reviewed_content = Some(reviewed.clone());
            Ok(())
        })
        .await?;
        Ok(())
    }

    async fn subject_of(&self, broadcast: &Broadcast) -> Result<Subject> {
        let world = self.world(broadcast.tenant).await?;
        let body = &broadcast.body;
        let mut texts: Vec<String> = [&body.text, &body.email_subject].into_iter().flatten().cloned().collect();
        let mut links: Vec<String> = body.content.iter().filter_map(|c| c.media_url.clone()).collect();
        // A template that is gone says nothing; its recipients fail one by one.
        if let Ok(Some(template)) = self.template_of(broadcast).await {
            let content = template.content;
            texts.push(content.body);
            texts.extend(
                [content.sms_body, content.telegram_body, content.instagram_body, content.footer, content.header_content]
                    .into_iter()
                    .flatten(),
            );
            links.extend(content.buttons.iter().filter_map(|b| b.url.clone()));
            texts.extend(content.buttons.into_iter().map(|b| b.text));
            let mut tx = self.inner.store.read().await?;
            for contact in tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, None, SAMPLE).await? {
                let values = merged(broadcast, &contact.variables);
                let values = [values.template_variables, values.template_button_variables, values.template_header_variables];
                texts.extend(values.into_iter().flatten().flat_map(std::collections::BTreeMap::into_values));
            }
        }
        texts.sort_unstable();
        texts.dedup();
        let sender = world.sender(broadcast.sender).map(|s| s.name.clone()).unwrap_or_default();
        Ok(Subject { texts, html: broadcast.html.clone(), links, sender })
    }
}
