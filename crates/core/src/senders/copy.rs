//! Copies a sender to the other environment.

use nuncio_domain::config::Project;
use nuncio_domain::profile::BusinessProfile;
use nuncio_domain::{Environment, Error, Result, SenderId};

use super::Senders;
use super::command::UpdateSender;
use super::view::SenderView;

impl Senders<'_> {
    /// Creates a sender in the environment `to` like one of the project's other environment: name, number, limits, profile, and webhook
    /// with a new secret. Provider accounts are not copied: those of the test environment are simulated, and those of the live environment
    /// belong there.
    pub async fn copy(&self, project: &Project, id: SenderId, to: Environment) -> Result<SenderView> {
        let from = project.tenant(if to == Environment::Live { Environment::Test } else { Environment::Live });
        let mut tx = self.inner.store.read().await?;
        let found = tx.find_senders(from, &[id]).await?.pop();
        let sender = found.ok_or_else(|| Error::not_found("sender to copy from the other environment"))?;
        let webhook = tx.find_webhook(from, Some(id)).await?;
        let kept = tx.accounts_of_senders(from, &[id]).await?.pop();
        drop(tx);
        let profile = kept.map(|kept| BusinessProfile { profile_picture_url: String::new(), ..kept.account.profile }).unwrap_or_default();
        let change = UpdateSender {
            name: Some(sender.name),
            phone_number: Some(Some(sender.phone_number)),
            set_as_default: None,
            webhook_url: webhook.as_ref().map(|w| Some(w.url.clone())),
            webhook_events: webhook.as_ref().map(|w| Some(w.events.clone())),
            webhook_active: webhook.as_ref().map(|w| w.active),
            email_receiving_enabled: Some(sender.email_receiving_enabled),
            allowed_countries: Some(Some(sender.allowed_countries).filter(|countries| !countries.is_empty())),
            daily_spend_limit: Some(sender.daily_spend_limit.and_then(|limit| limit.to_string().parse().ok())),
        };
        self.prepare(project.tenant(to), to, change, profile, None).await
    }
}
