//! What messages that are being accepted will cost, so that the daily limit of a sender holds for those that arrive at the same moment.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use nuncio_domain::{Micros, SenderId};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// Amounts of this node that may not be stored yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spending(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    amounts: Mutex<Amounts>,
    ended: Notify,
}

#[derive(Debug, Default)]
struct Amounts {
    /// By sender and order of arrival.
    of: HashMap<SenderId, BTreeMap<u64, Micros>>,
    last: u64,
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
        let mut amounts = self.0.amounts.lock();
        amounts.last += 1;
        let number = amounts.last;
        amounts.of.entry(sender).or_default().insert(number, amount);
        Pending { spending: self.clone(), sender, number }
    }
}

impl Pending {
    /// Returns the amounts of the sender that arrived earlier.
    pub(crate) fn earlier(&self) -> Micros {
        let amounts = self.spending.0.amounts.lock();
        let earlier = amounts.of.get(&self.sender).into_iter().flat_map(|own| own.range(..self.number));
        Micros(earlier.fold(0, |sum, (_, amount)| sum.saturating_add(amount.0)))
    }

    /// Waits until all that arrived earlier are stored or refused.
    pub(crate) async fn earlier_end(&self) {
        loop {
            let mut ended = std::pin::pin!(self.spending.0.ended.notified());
            // From here on: one may end before it is awaited.
            ended.as_mut().enable();
            if self.is_first() {
                return;
            }
            ended.await;
        }
    }

    fn is_first(&self) -> bool {
        let amounts = self.spending.0.amounts.lock();
        amounts.of.get(&self.sender).and_then(|own| own.first_key_value()).is_none_or(|(first, _)| *first >= self.number)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut amounts = self.spending.0.amounts.lock();
        if let Some(own) = amounts.of.get_mut(&self.sender) {
            own.remove(&self.number);
            if own.is_empty() {
                amounts.of.remove(&self.sender);
            }
        }
        drop(amounts);
        self.spending.0.ended.notify_waiters();
    }
}
