//! Statistics of a broadcast's recipients, by channel, country, failure and link.

use std::collections::{BTreeMap, HashSet};

use nuncio_domain::broadcast::{BroadcastContact, ContactStatus, Status};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::FailureCode;
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, BroadcastId, Channel, Micros, Result, Timestamp, address};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Broadcasts, links};
use crate::base::{Caller, UseCase, identifier_hasher, parse_id};

/// Recipients per page.
const PAGE: u32 = 1_000;
/// Maximum number of spans that the pace is told in, unless it took longer than ten years.
const SPANS: i64 = 60;
/// Lengths of a span, in seconds: the shortest that needs no more than [`SPANS`] is used.
const WIDTHS: [i64; 11] = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800, 5_184_000];

/// Statistics of a broadcast.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastStatistics {
    /// The broadcast.
    pub broadcast_id: BroadcastId,
    /// Its status.
    pub status: Status,
    /// Time of these figures.
    pub at: Timestamp,
    /// By current or last channel of the message. Excludes recipients without a message.
    pub channels: Vec<ChannelStatistics>,
    /// By country of the phone number, most recipients first. Excludes email addresses, chat ids and erased recipients.
    pub countries: Vec<CountryStatistics>,
    /// Reasons for failed and skipped recipients, most frequent first.
    pub failures: Vec<FailureStatistics>,
    /// The other failed and skipped recipients, for pages.
    #[serde(skip)]
    pub without_reason: WithoutReason,
    /// When the messages were queued: spans of equal length from the first message to the last, at most 60, the empty ones included.
    pub pace: Vec<PaceStatistics>,
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
    pub channel: Channel,
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
    pub code: FailureCode,
    /// Number of failed or skipped recipients.
    pub recipients: u64,
    /// How many of them were skipped, for pages.
    #[serde(skip)]
    pub skipped: u64,
}

/// Failed and skipped recipients without a stored reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithoutReason {
    /// They had no message, or one without an attempt, when the broadcast was cancelled or finally rejected.
    pub dropped: u64,
    /// Failed; their messages have been deleted.
    pub failed: u64,
    /// Skipped; their messages have been deleted, or they were erased before they had one.
    pub skipped: u64,
}

/// Messages queued in a span of time.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PaceStatistics {
    /// Start of the span.
    pub from: Timestamp,
    /// Its length.
    pub seconds: i64,
    /// Number of recipients whose messages were queued in it.
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
        let (mut failures, mut queued) = (BTreeMap::<FailureCode, (u64, u64)>::new(), BTreeMap::<i64, u64>::new());
        let mut without_reason = WithoutReason::default();
        let (mut before, mut through) = (None, false);
        while !through {
            let mut tx = self.inner.store.read().await?;
            let page = tx.list_broadcast_contacts(caller.tenant, broadcast.id, &[], PageRequest::older(PAGE, before)).await?;
            drop(tx);
            (before, through) = (page.next, page.next.is_none());
            for contact in page.items {
                let status = contact.status.within(broadcast.status);
                if let Some(message) = contact.message {
                    *queued.entry(message.created_at().millis() / 1_000).or_default() += 1;
                }
                if let Some(channel) = contact.channel {
                    channels.entry(channel).or_default().add(status, &contact);
                }
                if contact.recipient.kind == AddressKind::Phone && !identifier_hasher::is_mark(&contact.recipient) {
                    let country = address::country(&contact.recipient.identifier);
                    countries.entry(country).or_default().add(status, &contact);
                }
                match (&contact.failure, status) {
                    (Some(failure), _) => {
                        let (all, skipped) = failures.entry(failure.code).or_default();
                        *all += 1;
                        *skipped += u64::from(status == ContactStatus::Skipped);
                    }
                    _ if status != contact.status => without_reason.dropped += 1,
                    (None, ContactStatus::Failed) => without_reason.failed += 1,
                    (None, ContactStatus::Skipped) => without_reason.skipped += 1,
                    _ => {}
                }
            }
        }
        let clicks = self.inner.store.read().await?.broadcast_clicks(caller.tenant, broadcast.id).await?;
        // Tests of earlier drafts have stored other links too.
        let tracked: HashSet<String> = links::of(&broadcast).into_iter().map(|link| link.url).collect();
        countries.remove("");
        let mut countries: Vec<_> = countries.into_iter().map(|(country, counts)| CountryStatistics { country, counts }).collect();
        countries.sort_by_key(|country| std::cmp::Reverse(country.counts.total));
        let failures = failures.into_iter().map(|(code, (recipients, skipped))| FailureStatistics { code, recipients, skipped });
        let mut failures: Vec<_> = failures.collect();
        failures.sort_by_key(|failure| (std::cmp::Reverse(failure.recipients), failure.code.as_str()));
        Ok(BroadcastStatistics {
            broadcast_id: broadcast.id,
            status: broadcast.status,
            at: self.ids().clock.now(),
            channels: channels.into_iter().map(|(channel, counts)| ChannelStatistics { channel, counts }).collect(),
            countries,
            failures,
            without_reason,
            pace: pace(&queued),
            links: clicks
                .into_iter()
                .filter(|link| tracked.contains(&link.url))
                .map(|link| LinkStatistics { url: link.url, recipients: link.recipients, clicks: link.clicks })
                .collect(),
        })
    }
}

/// Sums the messages queued in each second, since the epoch, over spans of equal length.
fn pace(queued: &BTreeMap<i64, u64>) -> Vec<PaceStatistics> {
    let Some(((first, _), (last, _))) = queued.first_key_value().zip(queued.last_key_value()) else { return Vec::new() };
    let width = WIDTHS.into_iter().find(|width| last / width - first / width < SPANS).unwrap_or(WIDTHS[WIDTHS.len() - 1]);
    let begin = first / width;
    let span = |at: i64| PaceStatistics { from: Timestamp::from_millis(at * width * 1_000), seconds: width, recipients: 0 };
    let mut spans: Vec<_> = (begin..=last / width).map(span).collect();
    for (second, recipients) in queued {
        spans[(second / width - begin) as usize].recipients += recipients;
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_is_told_in_equal_spans_without_gaps() {
        assert!(pace(&BTreeMap::new()).is_empty());
        let spans = |seconds: &[(i64, u64)]| {
            let spans = pace(&seconds.iter().copied().collect());
            (spans[0].seconds, spans[0].from.millis(), spans.iter().map(|span| span.recipients).collect::<Vec<_>>())
        };
        assert_eq!(spans(&[(100, 3)]), (1, 100_000, vec![3]));
        assert_eq!(spans(&[(100, 3), (103, 2)]), (1, 100_000, vec![3, 0, 0, 2]));
        let (width, from, counts) = spans(&[(100, 3), (104, 1), (399, 2)]);
        assert_eq!((width, from, counts.len(), counts[0], counts[59]), (5, 100_000, 60, 4, 2));
        let (width, _, counts) = spans(&[(0, 1), (365 * 86_400, 1)]);
        assert_eq!((width, counts.len(), counts.iter().sum::<u64>()), (604_800, 53, 2));
    }
}
