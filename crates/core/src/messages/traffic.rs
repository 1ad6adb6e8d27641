//! Figures for charts: messages sent, delivered and failed, delivery times and spending.

use std::time::Duration;

use nuncio_domain::{Channel, ConnectionId, MessageId, Permission, Result, Timestamp, id::Id as _, message::Wait};
use nuncio_store::{HOUR, Traffic};

use super::Messages;
use crate::base::Caller;

/// Waiting time after which a message is overdue.
const PATIENCE: Duration = Duration::from_secs(60);
/// An overdue message that was accepted within this time is a recent one.
const RECENT: Duration = Duration::from_secs(300);
/// Maximum number of overdue messages read.
const OVERDUE: u32 = 1_000;

/// Figures of a period.
#[derive(Clone, Debug)]
pub struct TrafficView {
    /// Start of each span, oldest first, including the current one.
    pub spans: Vec<Timestamp>,
    /// By span and channel, without delivery times.
    pub by_time: Vec<(Timestamp, Channel, Traffic)>,
    /// By channel and country; `""` if unknown.
    pub by_country: Vec<(Channel, String, Traffic)>,
}

/// Overdue messages of a connection.
#[derive(Clone, Debug)]
pub struct Overdue {
    pub connection: ConnectionId,
    pub count: usize,
    /// Whether more messages may be overdue than were read.
    pub more: bool,
    /// The one that has waited longest.
    pub oldest: MessageId,
    /// When that one was due.
    pub since: Timestamp,
    /// How many of `count` were accepted in the last five minutes: whether the queue grows.
    pub recent: usize,
}

impl Messages<'_> {
    /// Returns figures of the last `count` spans of `hours` hours. The newest minute can be incomplete.
    pub async fn traffic(&self, caller: &Caller, count: i64, hours: i64) -> Result<TrafficView> {
        caller.require(Permission::MessagesRead)?;
        let span = hours * HOUR;
        let newest = self.ids().clock.now().millis().div_euclid(span) * span;
        let spans: Vec<_> = (0..count).rev().map(|ago| Timestamp::from_millis(newest - ago * span)).collect();
        let since = spans.first().copied().unwrap_or_default();
        // At the same time: for a busy month, each adds up tens of thousands of rows.
        let store = &self.inner.store;
        let by_time = async { store.read().await?.traffic_by_time(caller.tenant, since, hours).await };
        let by_country = async { store.read().await?.traffic_by_country(caller.tenant, since).await };
        let (by_time, by_country) = tokio::try_join!(by_time, by_country)?;
        Ok(TrafficView { spans, by_time, by_country })
    }

    /// Returns messages that were due more than a minute ago, by connection.
    pub async fn overdue(&self, caller: &Caller) -> Result<Vec<Overdue>> {
        caller.require(Permission::MessagesRead)?;
        let now = self.ids().clock.now();
        let before = now.minus(PATIENCE);
        let found = self.inner.store.read().await?.overdue_messages(caller.tenant, before, OVERDUE).await?;
        let more = found.len() >= OVERDUE as usize;
        let mut overdue: Vec<Overdue> = Vec::new();
        for message in found {
            let recent = usize::from(now.since(message.id.created_at()) <= RECENT);
            match overdue.iter_mut().find(|one| one.connection == message.connection) {
                Some(one) => {
                    one.count += 1;
                    one.recent += recent;
                }
                None => {
                    let since = message.wait.and_then(due_at).unwrap_or(before);
                    overdue.push(Overdue { connection: message.connection, count: 1, more, oldest: message.id, since, recent });
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
