//! What messages that are being accepted will cost, so that the daily limit of a sender holds for those that arrive at the same moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nuncio_domain::{Micros, SenderId};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Amounts of this node that may not be stored yet, by sender and order of arrival.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spending(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    amounts: Mutex<(u64, HashMap<SenderId, BTreeMap<u64, Micros>>)>,
    ended: Notify,
}

/// The amount of one message. It counts until this is dropped, which must be after the message is stored or refused.
#[derive(Debug)]
pub(crate) struct Pending {
    spending: Spending,
    sender: SenderId,
    number: u64,
}

impl Spending {
    pub(crate) fn begin(&self, sender: SenderId, amount: Micros) -> Pending {
        let (next, amounts) = &mut *self.0.amounts.lock();
        *next += 1;
        amounts.entry(sender).or_default().insert(*next, amount);
        Pending { spending: self.clone(), sender, number: *next }
    }
}

impl Pending {
    /// Returns the amounts of the sender that arrived earlier.
    pub(crate) fn earlier(&self) -> Micros {
        let (_, amounts) = &*self.spending.0.amounts.lock();
        let own = amounts.get(&self.sender);
        Micros(own.into_iter().flat_map(|own| own.range(..self.number)).fold(0, |sum, (_, amount)| sum.saturating_add(amount.0)))
    }

    /// Waits until all that arrived earlier are stored or refused.
    pub(crate) async fn earlier_end(&self) {
        loop {
            let mut ended = std::pin::pin!(self.spending.0.ended.notified());
            // From here on: one may end before it is awaited.
            ended.as_mut().enable();
            let is_first = self
                .spending
                .0
                .amounts
                .lock()
                .1
                .get(&self.sender)
                .and_then(|own| own.first_key_value())
                .is_none_or(|(first, _)| *first >= self.number);
            if is_first {
                return;
            }
            ended.await;
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let (_, amounts) = &mut *self.spending.0.amounts.lock();
        if let Some(own) = amounts.get_mut(&self.sender) {
            own.remove(&self.number);
            if own.is_empty() {
                amounts.remove(&self.sender);
            }
        }
        self.spending.0.ended.notify_waiters();
    }
}
