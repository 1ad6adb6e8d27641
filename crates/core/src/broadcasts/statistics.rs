//! Statistics of a broadcast's recipients, by channel, country, failure and link.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::{BroadcastContact, ContactStatus, Status};
use nuncio_domain::message::FailureCode;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, BroadcastId, Channel, Micros, Result, Timestamp, address};
use serde::Serialize;
use utoipa::ToSchema;

use super::Broadcasts;
use crate::base::{Caller, UseCase, identifier_hasher, parse_id};

/// Recipients per page.
const PAGE: u32 = 1_000;

/// Statistics of a broadcast.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastStatistics {
    /// The broadcast.
    pub broadcast_id: BroadcastId,
    /// Its status.
    #[schema(value_type = Status)]
    pub status: &'static str,
    /// Time of these figures.
    pub at: Timestamp,
    /// By current or last channel of the message. Excludes recipients without a message.
    pub channels: Vec<ChannelStatistics>,
    /// By country of the phone number, most recipients first. Excludes email addresses, chat ids and erased recipients.
    pub countries: Vec<CountryStatistics>,
    /// Reasons for failed and skipped recipients, most frequent first.
    pub failures: Vec<FailureStatistics>,
    /// The counted links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub links: Vec<LinkStatistics>,
}

/// Recipients by status. Their sum is `total`.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipientCounts {
    /// All recipients.
    pub total: u64,
    /// Without a queued message, or waiting for the first attempt.
    pub pending: u64,
    /// In flight.
    pub sending: u64,
    /// Delivered.
    pub delivered: u64,
    /// Failed.
    pub failed: u64,
    /// Nothing was sent.
    pub skipped: u64,
    /// Cost so far, in US dollars.
    pub cost: Micros,
}

/// Recipients of one channel.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelStatistics {
    /// The channel.
    #[schema(value_type = Channel)]
    pub channel: &'static str,
    /// Its recipients.
    #[serde(flatten)]
    pub counts: RecipientCounts,
}

/// Recipients in one country.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountryStatistics {
    /// ISO 3166-1 alpha-2.
    pub country: String,
    /// Its recipients.
    #[serde(flatten)]
    pub counts: RecipientCounts,
}

/// Failed and skipped recipients with one reason.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatistics {
    /// The reason, from a closed list.
    #[schema(value_type = FailureCode)]
    pub code: &'static str,
    /// Number of failed or skipped recipients.
    pub recipients: u64,
}

/// Clicks on a link.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatistics {
    /// Target URL.
    pub url: String,
    /// Number of recipients that opened it.
    pub recipients: u64,
    /// Number of times it was opened.
    pub clicks: u64,
}

impl RecipientCounts {
    fn add(&mut self, status: ContactStatus, contact: &BroadcastContact) {
        self.total += 1;
        *match status {
            ContactStatus::Pending | ContactStatus::Queued => &mut self.pending,
            ContactStatus::Sending => &mut self.sending,
            ContactStatus::Delivered => &mut self.delivered,
            ContactStatus::Failed => &mut self.failed,
            ContactStatus::Skipped => &mut self.skipped,
        } += 1;
        self.cost.0 += contact.cost.map_or(0, |cost| cost.0);
    }
}

impl Broadcasts<'_> {
    /// Returns statistics of a broadcast. Reads all recipients: a few seconds per million.
    pub async fn statistics(&self, caller: &Caller, id: &str) -> Result<BroadcastStatistics> {
        caller.require(UseCase::GetBroadcastStatistics)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let (mut channels, mut countries) = (BTreeMap::<Channel, RecipientCounts>::new(), BTreeMap::<String, RecipientCounts>::new());
        let mut failures = BTreeMap::<&'static str, u64>::new();
        let (mut before, mut through) = (None, false);
        while !through {
            let mut tx = self.inner.store.read().await?;
            let page = tx.list_broadcast_contacts(caller.tenant, broadcast.id, &[], PageRequest::older(PAGE, before)).await?;
            drop(tx);
            (before, through) = (page.next, page.next.is_none());
            for contact in page.items {
                let dropped = broadcast.status == Status::Cancelled && contact.status == ContactStatus::Pending;
                let status = if dropped { ContactStatus::Skipped } else { contact.status };
                if let Some(channel) = contact.channel {
                    channels.entry(channel).or_default().add(status, &contact);
                }
                if contact.recipient.kind == AddressKind::Phone && !identifier_hasher::is_mark(&contact.recipient) {
                    let country = address::country(&contact.recipient.identifier);
                    countries.entry(country).or_default().add(status, &contact);
                }
                if let Some(failure) = &contact.failure {
                    *failures.entry(failure.code.as_str()).or_default() += 1;
                }
            }
        }
        let links = self.inner.store.read().await?.broadcast_clicks(caller.tenant, broadcast.id).await?;
        countries.remove("");
        let mut countries: Vec<_> = countries.into_iter().map(|(country, counts)| CountryStatistics { country, counts }).collect();
        countries.sort_by_key(|country| std::cmp::Reverse(country.counts.total));
        let mut failures: Vec<_> = failures.into_iter().map(|(code, recipients)| FailureStatistics { code, recipients }).collect();
        failures.sort_by_key(|failure| std::cmp::Reverse(failure.recipients));
        Ok(BroadcastStatistics {
            broadcast_id: broadcast.id,
            status: broadcast.status.as_str(),
            at: self.ids().clock.now(),
            channels: channels.into_iter().map(|(channel, counts)| ChannelStatistics { channel: channel.as_str(), counts }).collect(),
            countries,
            failures,
            links: links
                .into_iter()
                .map(|link| LinkStatistics { url: link.url, recipients: link.recipients, clicks: link.clicks })
                .collect(),
        })
    }
}
