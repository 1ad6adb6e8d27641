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

/// Outcome of a broadcast's recipients.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastStatistics {
    /// The broadcast.
    pub broadcast_id: BroadcastId,
    /// Its status.
    #[schema(value_type = Status)]
    pub status: &'static str,
    /// When these figures were taken.
    pub at: Timestamp,
    /// By the channel that the message took, or takes now. Recipients without a message are not in it.
    pub channels: Vec<ChannelStatistics>,
    /// By the country of the phone number, most recipients first. Email addresses, chat ids and erased recipients are not in it.
    pub countries: Vec<CountryStatistics>,
    /// Why nothing arrived, most frequent first.
    pub failures: Vec<FailureStatistics>,
    /// The counted links.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub links: Vec<LinkStatistics>,
}

/// Recipients by where they stand. Their sum is `total`.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RecipientCounts {
    /// All of them.
    pub total: u64,
    /// Not handed over, or waiting for their first attempt.
    pub pending: u64,
    /// Under way.
    pub sending: u64,
    /// Arrived.
    pub delivered: u64,
    /// Not arrived.
    pub failed: u64,
    /// Nothing was sent.
    pub skipped: u64,
    /// What they cost so far, in US dollars.
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

/// Recipients whom nothing reached, for one reason.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailureStatistics {
    /// The reason, from a closed list.
    #[schema(value_type = FailureCode)]
    pub code: &'static str,
    /// How many recipients, failed or skipped.
    pub recipients: u64,
}

/// How often a link was opened.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LinkStatistics {
    /// Where it leads.
    pub url: String,
    /// How many recipients opened it.
    pub recipients: u64,
    /// How often it was opened.
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
