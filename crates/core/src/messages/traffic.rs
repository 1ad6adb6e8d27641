//! Figures for charts: how many messages went out, arrived and failed, how long it took, and what was spent.

use std::time::Duration;

use nuncio_domain::lifecycle::Wait;
use nuncio_domain::{Channel, ConnectionId, MessageId, Permission, Result, Timestamp};
use nuncio_store::{HOUR, Traffic};

use super::Messages;
use crate::base::Caller;

/// How long a message may wait for its attempt before it counts as overdue.
const PATIENCE: Duration = Duration::from_secs(60);
/// Overdue messages that are looked at.
const OVERDUE: u32 = 1_000;

/// Figures of the last hours.
#[derive(Clone, Debug)]
pub struct TrafficView {
    /// The beginning of each span of time, oldest first, the present one included.
    pub spans: Vec<Timestamp>,
    /// By span and channel, without delivery times.
    pub by_time: Vec<(Timestamp, Channel, Traffic)>,
    /// By channel and country; `""` stands for an unknown one.
    pub by_country: Vec<(Channel, String, Traffic)>,
}

/// Messages that should have been sent by now.
#[derive(Clone, Debug)]
pub struct Overdue {
    /// The connection that they wait for.
    pub connection: ConnectionId,
    /// How many were found.
    pub count: usize,
    /// Whether there are more than were looked at.
    pub more: bool,
    /// The one that has waited longest.
    pub oldest: MessageId,
    /// Since when it could have been sent.
    pub since: Timestamp,
}

impl Messages<'_> {
    /// Figures of the last `count` spans of `hours` hours, as far as this minute is written.
    pub async fn traffic(&self, caller: &Caller, count: i64, hours: i64) -> Result<TrafficView> {
        caller.require(Permission::MessagesRead)?;
        let span = hours * HOUR;
        let newest = self.ids().clock.now().millis().div_euclid(span) * span;
        let spans: Vec<_> = (0..count).rev().map(|ago| Timestamp::from_millis(newest - ago * span)).collect();
        let since = spans.first().copied().unwrap_or_default();
        let mut tx = self.inner.store.read().await?;
        let by_time = tx.traffic_by_time(caller.tenant, since, hours).await?;
        let by_country = tx.traffic_by_country(caller.tenant, since).await?;
        Ok(TrafficView { spans, by_time, by_country })
    }

    /// Messages that have waited for their attempt for more than a minute, by connection.
    pub async fn overdue(&self, caller: &Caller) -> Result<Vec<Overdue>> {
        caller.require(Permission::MessagesRead)?;
        let before = self.ids().clock.now().minus(PATIENCE);
        let found = self.inner.store.read().await?.overdue_messages(caller.tenant, before, OVERDUE).await?;
        let more = found.len() >= OVERDUE as usize;
        let mut overdue: Vec<Overdue> = Vec::new();
        for message in found {
            match overdue.iter_mut().find(|one| one.connection == message.connection) {
                Some(one) => one.count += 1,
                None => {
                    let since = message.wait.and_then(due_at).unwrap_or(before);
                    overdue.push(Overdue { connection: message.connection, count: 1, more, oldest: message.id, since });
                }
            }
        }
        Ok(overdue)
    }
}

const fn due_at(wait: Wait) -> Option<Timestamp> {
    match wait {
        Wait::Attempt { due_at } => Some(due_at),
        _ => None,
    }
}
